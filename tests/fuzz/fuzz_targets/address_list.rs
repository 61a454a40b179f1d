//! Lists of BMC addresses.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farrier_controller::fuzzing::address_list(data));
