//! Frames by which switches name themselves.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farrier_agent::fuzzing::lldp(data));
