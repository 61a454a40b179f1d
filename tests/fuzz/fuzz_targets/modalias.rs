//! Names of devices against the patterns of drivers.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farrier_agent::fuzzing::modalias(data));
