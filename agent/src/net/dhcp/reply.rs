//! Reads a server's message, trusting nothing in it.
//!
//! The codec stops at the first option it cannot read, and takes some lengths on trust. So only what we asked
//! for, in the form it must have, is handed to it; a long option is put together first (RFC 3396), and the
//! `sname` and `file` fields are searched when option 52 says that options went on there.

use std::collections::BTreeMap;

use dhcproto::v4::Message;
use dhcproto::{Decodable as _, decoder::Decoder};

/// Fixed fields and the magic cookie.
const HEADER: usize = 240;
const COOKIE: [u8; 4] = [0x63, 0x82, 0x53, 0x63];
const SNAME: std::ops::Range<usize> = 44..108;
const FILE: std::ops::Range<usize> = 108..236;
const PAD: u8 = 0;
const OVERLOAD: u8 = 52;
const END: u8 = 255;
/// Ethernet addresses only.
const ADDRESS_LEN: u8 = 6;

/// Options we use, in the order they are handed on: those that may still be malformed inside come last.
const USED: [u8; 13] = [53, 54, 1, 51, 58, 59, 3, 6, 42, 26, 15, 121, 119];

/// The message in a UDP payload; [`None`] when it is not DHCP for Ethernet.
pub(super) fn read(payload: &[u8]) -> Option<Message> {
    let header = payload.get(..HEADER)?;
    if header[2] != ADDRESS_LEN || header[236..] != COOKIE {
        return None;
    }
    let mut options = BTreeMap::new();
    gather(&payload[HEADER..], &mut options);
    let overload = options.get(&OVERLOAD).and_then(|v: &Vec<u8>| v.first().copied()).unwrap_or(0);
    if overload & 1 != 0 {
        gather(&header[FILE], &mut options);
    }
    if overload & 2 != 0 {
        gather(&header[SNAME], &mut options);
    }
    let mut clean = header.to_vec();
    for code in USED {
        let Some(value) = options.get(&code).and_then(|value| in_form(code, value)) else { continue };
        // Long ones, such as many routes, are split again as they came.
        for part in value.chunks(usize::from(u8::MAX)) {
            clean.extend([code, u8::try_from(part.len()).unwrap_or(u8::MAX)]);
            clean.extend(part);
        }
    }
    clean.push(END);
    Message::decode(&mut Decoder::new(&clean)).ok()
}

/// Collects options up to the end mark; parts of one option are joined.
fn gather(mut area: &[u8], options: &mut BTreeMap<u8, Vec<u8>>) {
    while let Some((&code, rest)) = area.split_first() {
        match code {
            PAD => area = rest,
            END => return,
            _ => {
                let Some((&len, rest)) = rest.split_first() else { return };
                let Some((value, rest)) = rest.split_at_checked(usize::from(len)) else { return };
                options.entry(code).or_default().extend(value);
                area = rest;
            }
        }
    }
}

/// An option of the length its meaning demands (RFC 2132). One of a fixed length that is there twice, as some relays
/// add it, has been joined: the first counts.
fn in_form(code: u8, value: &[u8]) -> Option<&[u8]> {
    let unit = match code {
        26 => 2,
        1 | 3 | 6 | 42 | 51 | 54 | 58 | 59 => 4,
        _ => 1,
    };
    let is_list = !matches!(code, 1 | 26 | 51 | 53 | 54 | 58 | 59);
    let whole = !value.is_empty() && value.len().is_multiple_of(unit);
    if is_list { whole.then_some(value) } else { value.get(..unit).filter(|_| whole) }
}

#[cfg(test)]
mod tests {
    use dhcproto::v4::{DhcpOption, OptionCode};
    use proptest::prelude::*;

    use super::*;

    fn packet(options: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0_u8; HEADER];
        bytes[..3].copy_from_slice(&[2, 1, 6]);
        bytes[236..].copy_from_slice(&COOKIE);
        bytes.extend(options);
        bytes
    }

    #[test]
    fn an_option_nobody_can_read_does_not_hide_the_others() {
        let message =
            read(&packet(&[152, 5, 0, 0, 0, 0, 0, 51, 3, 0, 0, 1, 54, 4, 10, 0, 0, 1, 255])).unwrap();
        let server = Some(&DhcpOption::ServerIdentifier([10, 0, 0, 1].into()));
        assert_eq!(message.opts().get(OptionCode::ServerIdentifier), server);
        assert_eq!(message.opts().get(OptionCode::AddressLeaseTime), None);
    }

    #[test]
    fn of_a_number_that_is_told_twice_the_first_counts() {
        let message =
            read(&packet(&[53, 1, 5, 53, 1, 6, 51, 4, 0, 0, 0, 90, 51, 4, 0, 0, 0, 9, 255])).unwrap();
        assert_eq!(message.opts().msg_type(), Some(dhcproto::v4::MessageType::Ack));
        assert_eq!(message.opts().get(OptionCode::AddressLeaseTime), Some(&DhcpOption::AddressLeaseTime(90)));
    }

    #[test]
    fn parts_of_an_option_are_joined() {
        let message =
            read(&packet(&[6, 4, 10, 0, 0, 1, 1, 4, 255, 255, 255, 0, 6, 4, 10, 0, 0, 2, 255])).unwrap();
        let both = DhcpOption::DomainNameServer(vec![[10, 0, 0, 1].into(), [10, 0, 0, 2].into()]);
        assert_eq!(message.opts().get(OptionCode::DomainNameServer), Some(&both));
    }

    #[test]
    fn an_option_longer_than_one_part_is_taken_whole() {
        // Forty routes of seven bytes: 10.N.0.0/16 by 10.0.0.1.
        let routes: Vec<u8> = (1..=40).flat_map(|n| [16, 10, n, 10, 0, 0, 1]).collect();
        let (first, second) = routes.split_at(250);
        let mut options = vec![121, 250];
        options.extend(first);
        options.extend([53, 1, 5, 121, 30]);
        options.extend(second);
        let message = read(&packet(&options)).unwrap();
        let Some(DhcpOption::ClasslessStaticRoute(list)) =
            message.opts().get(OptionCode::ClasslessStaticRoute)
        else {
            panic!("{message:?}")
        };
        assert_eq!(list.len(), 40);
        assert!(message.opts().msg_type().is_some());
    }

    #[test]
    fn options_may_go_on_in_the_file_and_sname_fields() {
        let mut bytes = packet(&[52, 1, 3, 255]);
        bytes[FILE.start..FILE.start + 6].copy_from_slice(&[3, 4, 10, 0, 0, 1]);
        bytes[SNAME.start..SNAME.start + 3].copy_from_slice(&[53, 1, 5]);
        let message = read(&bytes).unwrap();
        assert!(message.opts().get(OptionCode::Router).is_some());
        assert!(message.opts().msg_type().is_some());
    }

    #[test]
    fn other_hardware_and_other_protocols_are_not_read() {
        let mut infiniband = packet(&[255]);
        infiniband[2] = 20;
        assert!(read(&infiniband).is_none());
        let mut bootp = packet(&[255]);
        bootp[236] = 0;
        assert!(read(&bootp).is_none());
        assert!(read(&packet(&[255])[..HEADER - 1]).is_none());
        assert!(read(&packet(&[53, 200, 5])).is_some(), "a length beyond the end ends the options");
    }

    proptest! {
        #[test]
        fn any_options_are_read_without_a_fault(options in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(read(&packet(&options)).is_some());
        }

        #[test]
        fn any_value_of_a_used_option_is_read_without_a_fault(
            at in 0..USED.len(),
            value in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let len = u8::try_from(value.len()).unwrap();
            let bytes = packet(&[&[USED[at], len], value.as_slice(), &[255]].concat());
            prop_assert!(read(&bytes).is_some());
        }

        #[test]
        fn any_bytes_are_read_without_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = read(&bytes);
        }
    }
}
