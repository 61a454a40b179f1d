//! Answers of DHCPv6 servers.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farrier_agent::fuzzing::dhcp6(data));
