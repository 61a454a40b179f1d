//! Checksum files.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farrier_controller::fuzzing::checksum(data));
