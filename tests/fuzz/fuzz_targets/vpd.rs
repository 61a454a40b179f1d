//! Vital product data of SCSI and ATA disks.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farrier_agent::fuzzing::vpd(data));
