//! What makes the installed system this machine's own.

use std::fmt;

use farrier_shared::contract::ProviderId;
use sha2::{Digest as _, Sha256};

use crate::callback::UserData;

/// User-data, verbatim, and provider id.
pub struct Payload {
    /// As the controller gave it; secret.
    pub user_data: UserData,
    /// `b7://<namespace>/<host>`.
    pub provider_id: ProviderId,
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({}, {} bytes of user-data)", self.provider_id, self.user_data.len())
    }
}

impl Payload {
    /// The host's name.
    pub(super) fn hostname(&self) -> String {
        self.provider_id.host().name.to_string()
    }

    /// A UUID that is the host's for good: version 8 (RFC 9562, section 5.8) made of the provider id's SHA-256.
    pub(super) fn uuid(&self) -> String {
        let digest = Sha256::digest(self.provider_id.to_string());
        let mut bytes: [u8; 16] = std::array::from_fn(|n| digest[n]);
        bytes[6] = 0x80 | bytes[6] & 0x0f;
        bytes[8] = 0x80 | bytes[8] & 0x3f;
        let hex = hex::encode(bytes);
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(id: &str) -> Payload {
        Payload { user_data: UserData::new(b"secret".to_vec()), provider_id: id.parse().unwrap() }
    }

    #[test]
    fn a_host_has_one_uuid_and_no_other_host_has_it() {
        let uuid = payload("b7://default/node-1").uuid();
        assert_eq!(uuid, payload("b7://default/node-1").uuid());
        assert_ne!(uuid, payload("b7://default/node-2").uuid());
        let parts: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert!(uuid[14..].starts_with('8') && "89ab".contains(&uuid[19..20]), "{uuid}");
    }

    #[test]
    fn user_data_is_not_shown() {
        assert_eq!(format!("{:?}", payload("b7://a/b")), "Payload(b7://a/b, 6 bytes of user-data)");
    }
}
