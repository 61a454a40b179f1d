//! The way in for fuzzers: each parser of foreign bytes, fed with any bytes at all.
//!
//! A target checks by itself what must hold of whatever comes out, so that a fuzzer finds more than panics. The
//! corpus in `tests/fuzz/corpus` runs through the same functions in the unit tests.

pub use crate::deploy::fuzzing::image;
pub use crate::disk::fuzzing::{partition_table, signatures, vpd};
pub use crate::efi::fuzzing::boot_entries;
pub use crate::facts::fuzzing::{ipmi, lldp, smbios};
pub use crate::init::modules::fuzzing::modalias;
pub use crate::net::dhcp::fuzzing::dhcp;
pub use crate::net::fuzzing::{dhcp6, router_advertisement};
pub use crate::run::fuzzing::cmdline;
pub use crate::seed::fuzzing::file_system;
pub use crate::time::fuzzing::sntp;

#[cfg(test)]
#[path = "../../tests/fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
mod tests {
    use super::corpus::{self, Target};

    /// Each target and its name, which is that of its corpus.
    const TARGETS: &[Target] = &[
        ("boot_entries", super::boot_entries),
        ("cmdline", super::cmdline),
        ("dhcp", super::dhcp),
        ("dhcp6", super::dhcp6),
        ("file_system", super::file_system),
        ("image", super::image),
        ("ipmi", super::ipmi),
        ("lldp", super::lldp),
        ("modalias", super::modalias),
        ("partition_table", super::partition_table),
        ("router_advertisement", super::router_advertisement),
        ("signatures", super::signatures),
        ("smbios", super::smbios),
        ("sntp", super::sntp),
        ("vpd", super::vpd),
    ];

    #[test]
    fn every_input_of_the_corpus_is_taken_without_a_fault() {
        corpus::take_every_input(TARGETS);
    }

    #[test]
    fn nothing_at_all_is_taken_without_a_fault() {
        corpus::take_nothing(TARGETS);
    }
}
