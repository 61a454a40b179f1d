//! Boot entries of UEFI firmware.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farrier_agent::fuzzing::boot_entries(data));
