//! What management controllers answer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farrier_agent::fuzzing::ipmi(data));
