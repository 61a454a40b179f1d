//! The management controller, as far as SMBIOS knows of it: types 38 (IPMI) and 42 (host interface).
//!
//! Its own address on the management network is not in these tables.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use super::smbios::{Structure, structures};

const IPMI: u8 = 38;
const HOST_INTERFACE: u8 = 42;
/// Interface type "network", and protocol "Redfish over IP" (DSP0270, section 8).
const NETWORK: u8 = 0x40;
const REDFISH: u8 = 0x04;

/// What is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Management {
    /// How the host talks IPMI to it, such as `KCS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ipmi_interface: Option<&'static str>,
    /// IPMI version, such as `2.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ipmi_version: Option<String>,
    /// Address of its Redfish service on the link between it and the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host_interface_address: Option<String>,
}

/// What the table says; [`None`] when it knows of none.
pub(super) fn controller(table: &[u8]) -> Option<Management> {
    let mut found = None;
    for s in structures(table) {
        match s.kind {
            IPMI => {
                let management: &mut Management = found.get_or_insert_default();
                management.ipmi_interface = interface(s.byte(0x04));
                // One digit a nibble.
                management.ipmi_version = s.byte(0x05).map(|v| format!("{}.{}", v >> 4, v & 0x0f));
            }
            HOST_INTERFACE if s.byte(0x04) == Some(NETWORK) => {
                let management: &mut Management = found.get_or_insert_default();
                management.host_interface_address = redfish(&s).map(|ip| ip.to_string());
            }
            _ => {}
        }
    }
    found
}

fn interface(code: Option<u8>) -> Option<&'static str> {
    match code? {
        1 => Some("KCS"),
        2 => Some("SMIC"),
        3 => Some("BT"),
        4 => Some("SSIF"),
        _ => None,
    }
}

/// The first protocol record that is Redfish over IP: the service's UUID and the host's own address and mask come
/// before the format of the service's address and that address.
fn redfish(s: &Structure<'_>) -> Option<IpAddr> {
    let mut at = 0x06 + usize::from(s.byte(0x05)?);
    let records = s.byte(at)?;
    at += 1;
    for _ in 0..records {
        let (protocol, length) = (s.byte(at)?, usize::from(s.byte(at + 1)?));
        if protocol == REDFISH {
            let data = at + 2;
            let (format, from) = (s.byte(data + 51)?, data + 52);
            // It may not lie beyond its record.
            if length < 68 {
                return None;
            }
            let octets: Vec<u8> = (from..from + 16).filter_map(|n| s.byte(n)).collect();
            let octets: [u8; 16] = octets.try_into().ok()?;
            let ip = match format {
                1 => IpAddr::V4(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3])),
                2 => IpAddr::V6(Ipv6Addr::from(octets)),
                _ => return None,
            };
            return Some(ip).filter(|ip| !ip.is_unspecified());
        }
        at += 2 + length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::smbios::build::structure;

    /// A type 42 as servers have it: no interface data, one Redfish record.
    fn host_interface(format: u8, address: [u8; 16]) -> Vec<u8> {
        let mut record = vec![0_u8; 91];
        record[51] = format;
        record[52..68].copy_from_slice(&address);
        let mut body = vec![NETWORK, 0, 1, REDFISH, 91];
        body.extend(record);
        structure(HOST_INTERFACE, &body, &[])
    }

    fn v4() -> [u8; 16] {
        let mut address = [0; 16];
        address[..4].copy_from_slice(&[169, 254, 0, 17]);
        address
    }

    #[test]
    fn ipmi_and_redfish_are_told() {
        let table = [structure(IPMI, &[1, 0x20, 0x20, 0xff], &[]), host_interface(1, v4())].concat();
        let expected = Management {
            ipmi_interface: Some("KCS"),
            ipmi_version: Some("2.0".into()),
            host_interface_address: Some("169.254.0.17".into()),
        };
        assert_eq!(controller(&table), Some(expected));
        assert_eq!(controller(&structure(1, &[], &[])), None);
    }

    #[test]
    fn a_host_interface_cut_anywhere_is_read_as_far_as_it_goes() {
        let whole = host_interface(1, v4());
        for cut in 4..whole.len() {
            let mut table = whole[..cut].to_vec();
            table[1] = u8::try_from(cut.min(usize::from(whole[1]))).unwrap();
            let _ = controller(&table);
        }
        assert_eq!(controller(&host_interface(1, [0; 16])).unwrap().host_interface_address, None);
        assert_eq!(controller(&host_interface(9, v4())).unwrap().host_interface_address, None);
    }
}
