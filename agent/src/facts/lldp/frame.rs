//! What a switch says of itself (IEEE 802.1AB, clause 8).

use std::net::Ipv4Addr;

use serde::Serialize;

/// The switch and its port at the other end of the cable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Neighbour {
    /// Chassis id, most often an address.
    pub chassis_id: String,
    /// Port id, such as `Ethernet1/7`.
    pub port_id: String,
    /// The port in a person's words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub port_description: String,
    /// Name of the switch.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system_name: String,
}

/// Reads a frame's payload. [`None`] when it lacks chassis or port, which every frame must have: then nothing of it
/// is to be believed. What comes after a broken field is left out.
pub fn parse(payload: &[u8]) -> Option<Neighbour> {
    let mut found = Neighbour::default();
    let mut rest = payload;
    while let [first, second, tail @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([first & 1, *second]));
        let Some((value, next)) = tail.split_at_checked(length) else { break };
        rest = next;
        match first >> 1 {
            0 => break,
            1 => found.chassis_id = id(value, 4, 5),
            2 => found.port_id = id(value, 3, 4),
            4 => found.port_description = text(value),
            5 => found.system_name = text(value),
            _ => {}
        }
    }
    (!found.chassis_id.is_empty() && !found.port_id.is_empty()).then_some(found)
}

/// An id led by its subtype, of which one is an Ethernet address and one a network address.
fn id(value: &[u8], mac: u8, network: u8) -> String {
    match value {
        [kind, octets @ ..] if *kind == mac && octets.len() == 6 => {
            let pairs: Vec<String> = octets.iter().map(|o| format!("{o:02x}")).collect();
            pairs.join(":")
        }
        // Address family 1 is IPv4.
        [kind, 1, a, b, c, d] if *kind == network => Ipv4Addr::new(*a, *b, *c, *d).to_string(),
        [_, rest @ ..] => text(rest),
        [] => String::new(),
    }
}

/// Printable, trimmed; at most the 511 bytes a field can have.
fn text(value: &[u8]) -> String {
    let text: String =
        String::from_utf8_lossy(value).chars().filter(|c| !c.is_control() && *c != '\u{fffd}').collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn field(kind: u8, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(value.len()).unwrap();
        let mut out = (u16::from(kind) << 9 | length).to_be_bytes().to_vec();
        out.extend(value);
        out
    }

    /// As a top-of-rack switch sends it.
    fn frame() -> Vec<u8> {
        [
            field(1, &[4, 0x44, 0x4c, 0xa8, 0x01, 0x02, 0x03]),
            field(2, b"\x05Ethernet1/7"),
            field(3, &[0, 120]),
            field(4, b"rack1-u7 nic1\x07"),
            field(5, b"tor-1.example"),
            field(127, &[0, 0x80, 0xc2, 1, 0, 100]),
            field(0, &[]),
            field(5, b"after the end"),
        ]
        .concat()
    }

    #[test]
    fn a_switch_is_told_by_chassis_port_and_name() {
        let expected = Neighbour {
            chassis_id: "44:4c:a8:01:02:03".into(),
            port_id: "Ethernet1/7".into(),
            port_description: "rack1-u7 nic1".into(),
            system_name: "tor-1.example".into(),
        };
        assert_eq!(parse(&frame()), Some(expected));
        let by_address = [field(1, &[5, 1, 192, 0, 2, 1]), field(2, &[3, 2, 0, 0, 0, 0, 1])].concat();
        let found = parse(&by_address).unwrap();
        assert_eq!((found.chassis_id.as_str(), found.port_id.as_str()), ("192.0.2.1", "02:00:00:00:00:01"));
    }

    #[test]
    fn a_frame_cut_before_chassis_and_port_is_nothing_and_after_them_what_it_holds() {
        let whole = frame();
        let port_ends = field(1, &[0; 7]).len() + field(2, b"\x05Ethernet1/7").len();
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut]).is_some(), cut >= port_ends, "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }
    }
}
