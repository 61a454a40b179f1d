//! `spec.agentOptions`: options for the agent as operators write them.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// Keys and values as text, ordered by key; [`validate`](super::PhysicalHost::validate) checks them against the
/// [table](crate::contract::options).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentOptionTexts(BTreeMap<String, String>);

impl AgentOptionTexts {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys without prefix and values, ordered by key.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

impl FromIterator<(String, String)> for AgentOptionTexts {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl Serialize for AgentOptionTexts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AgentOptionTexts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = BTreeMap::<String, Text>::deserialize(deserializer)?;
        Ok(read.into_iter().map(|(key, Text(value))| (key, value)).collect())
    }
}

/// A text, or what YAML makes of values nobody would think of quoting: the number of `vlan: 100`, and the truth value
/// that some readers see in `verify: off`.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Scalar;
        impl Visitor<'_> for Scalar {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a whole number")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }
            fn visit_bool<E: Error>(self, on: bool) -> Result<Text, E> {
                Ok(Text(if on { "on" } else { "off" }.to_owned()))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
        }
        deserializer.deserialize_any(Scalar)
    }
}
