//! Secret: user-data and BMC credentials.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use super::Resource;
use super::metadata::ObjectMeta;

/// Key of user-data in a bootstrap Secret.
pub const USER_DATA_KEY: &str = "value";

/// Annotation of a user-data Secret that was made for one machine: its name. The Secret goes when that machine does.
pub const USER_DATA_OF: &str = "farrier/user-data-of";

/// An opaque bag of named bytes. `stringData` is accepted on the way in and merged into `data`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Secret {
    /// `v1`.
    pub api_version: String,
    /// `Secret`.
    pub kind: String,
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Kubernetes' type; kept, not interpreted.
    #[serde(default, rename = "type", skip_serializing_if = "String::is_empty")]
    pub secret_type: String,
    /// Values, base64 in YAML.
    #[serde(default)]
    pub data: BTreeMap<String, SecretBytes>,
    /// Values as plain text; write-only.
    #[serde(default, skip_serializing)]
    pub string_data: BTreeMap<String, Zeroizing<String>>,
}

/// Bytes that are redacted in `Debug` and zeroized on drop.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretBytes(Zeroizing<Vec<u8>>);

impl SecretBytes {
    /// Takes the bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The plain bytes. Never log them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretBytes({} bytes, redacted)", self.0.len())
    }
}

impl Serialize for SecretBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&*self.0))
    }
}

impl<'de> Deserialize<'de> for SecretBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        let bytes = STANDARD.decode(text.as_bytes()).map_err(|_| {
            serde::de::Error::custom(
                "not standard base64 (use stringData for plain text; the value is withheld)",
            )
        })?;
        Ok(Self::new(bytes))
    }
}

impl Secret {
    /// A new Secret.
    pub fn new(metadata: ObjectMeta, data: BTreeMap<String, SecretBytes>) -> Self {
        Self {
            api_version: Self::API_VERSION.to_owned(),
            kind: Self::KIND.to_owned(),
            metadata,
            secret_type: String::new(),
            data,
            string_data: BTreeMap::new(),
        }
    }

    /// Moves `stringData` into `data`, as an API server does on write.
    pub fn merge_string_data(&mut self) {
        for (key, text) in std::mem::take(&mut self.string_data) {
            self.data.insert(key, SecretBytes::new(text.as_bytes().to_vec()));
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("metadata", &self.metadata)
            .field("data", &self.data)
            .finish_non_exhaustive()
    }
}

impl Resource for Secret {
    const KIND: &'static str = "Secret";
    const API_VERSION: &'static str = "v1";
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
