//! Answers of BMCs.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farrier_controller::fuzzing::redfish(data));
