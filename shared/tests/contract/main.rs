//! The wire contract: exact bytes, and every value that must be taken or refused.
#![expect(clippy::unwrap_used, reason = "fixtures are known to be well-formed")]

mod binding;
mod bodies;
mod boot_script;
mod capacity;
mod cmdline;
mod disk_options;
mod options;
mod secrets;
mod validation;
mod values;
