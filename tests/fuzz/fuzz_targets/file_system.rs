//! The first bytes of partitions.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farrier_agent::fuzzing::file_system(data));
