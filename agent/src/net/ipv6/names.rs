//! Lists of domain names as router advertisements and DHCPv6 carry them: uncompressed labels (RFC 1035, section 3.1).

/// Longest name, in bytes (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;
/// Most names taken of one list.
const MAX_NAMES: usize = 8;

/// The names in a list; what follows one that cannot be read is left out, and so is padding.
pub(crate) fn read(mut bytes: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    while names.len() < MAX_NAMES {
        let Some((name, rest)) = one(bytes) else { break };
        bytes = rest;
        // An empty name is padding (RFC 8106, section 5.2).
        if !name.is_empty() {
            names.push(name);
        }
    }
    names
}

fn one(mut bytes: &[u8]) -> Option<(String, &[u8])> {
    let mut name = String::new();
    loop {
        let (&len, rest) = bytes.split_first()?;
        if len == 0 {
            return Some((name, rest));
        }
        // Lengths of 64 and more are pointers, which these lists may not have; they are longer than what is there
        // or hold what no name does.
        let (label, rest) = rest.split_at_checked(usize::from(len)).filter(|_| len < 64)?;
        if !label.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')) {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        name.extend(label.iter().map(|b| char::from(b.to_ascii_lowercase())));
        if name.len() > MAX_NAME {
            return None;
        }
        bytes = rest;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_read_and_padding_is_not() {
        let bytes = b"\x03Lab\x07example\x00\x01b\x00\x00\x00\x00";
        assert_eq!(read(bytes), ["lab.example", "b"]);
    }

    #[test]
    fn what_is_no_name_ends_the_list() {
        assert_eq!(read(b"\x01a\x00\xc0\x00"), ["a"]);
        assert_eq!(read(b"\x01a\x00\x03b c\x00"), ["a"]);
        assert_eq!(read(b"\x01a\x00\x05b"), ["a"]);
        assert_eq!(read(b"\x01a"), [""; 0]);
        assert_eq!(read(&[1, b'a', 0].repeat(20)).len(), MAX_NAMES);
        assert_eq!(read(&[[63].as_slice(), &[b'a'; 63]].concat().repeat(5)), [""; 0], "too long");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(read(&bytes).iter().all(|name| !name.is_empty() && name.len() <= MAX_NAME));
        }
    }
}
