//! The ends of disks.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farrier_agent::fuzzing::signatures(data));
