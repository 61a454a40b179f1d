//! Label selectors, as Kubernetes matches them.

use std::collections::BTreeMap;

use crate::resource::machine::{LabelRequirement, LabelSelector};

/// A selector that cannot be understood; terminal for the machine that has it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Not one of the four operators.
    #[error(
        "hostSelector: operator {found:?} of key {key:?} is unknown; expected In, NotIn, Exists or DoesNotExist"
    )]
    Operator {
        /// Label key of the requirement.
        key: String,
        /// What was given, cut to a printable length.
        found: String,
    },
    /// Values where none may be, or none where some must be.
    #[error("hostSelector: operator {operator} of key {key:?} {problem}")]
    Values {
        /// Label key of the requirement.
        key: String,
        /// The operator.
        operator: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
    /// Not a label key or value at all.
    #[error("hostSelector: {found:?} is not a valid label {part}")]
    Label {
        /// `key` or `value`.
        part: &'static str,
        /// What was given, cut to a printable length.
        found: String,
    },
}

type Labels = BTreeMap<String, String>;

/// A selector whose every part is understood.
#[derive(Debug)]
pub struct Selector<'a> {
    equal: &'a Labels,
    requirements: Vec<(&'a str, Operator<'a>)>,
}

#[derive(Debug)]
enum Operator<'a> {
    In(&'a [String]),
    NotIn(&'a [String]),
    Exists,
    DoesNotExist,
}

impl<'a> Selector<'a> {
    /// Checks a selector before it is used on any host.
    ///
    /// # Errors
    /// The first part that cannot be understood.
    pub fn parse(selector: &'a LabelSelector) -> Result<Self, SelectorError> {
        for (key, value) in &selector.match_labels {
            check_key(key)?;
            check_value(value)?;
        }
        let requirements =
            selector.match_expressions.iter().map(parse_requirement).collect::<Result<_, _>>()?;
        Ok(Self { equal: &selector.match_labels, requirements })
    }

    /// Labels with the one value that each must have: whoever lacks one of them is not matched. More may be asked.
    pub fn required(&self) -> impl Iterator<Item = (&str, &str)> {
        let equal = self.equal.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let only = self.requirements.iter().filter_map(|(key, operator)| match operator {
            Operator::In([value]) => Some((*key, value.as_str())),
            _ => None,
        });
        equal.chain(only)
    }

    /// Whether these labels satisfy every part. An empty selector takes everything.
    pub fn matches(&self, labels: &Labels) -> bool {
        let equal = self.equal.iter().all(|(k, v)| labels.get(k) == Some(v));
        equal
            && self.requirements.iter().all(|(key, operator)| {
                let value = labels.get(*key);
                match operator {
                    Operator::In(values) => value.is_some_and(|v| values.contains(v)),
                    Operator::NotIn(values) => value.is_none_or(|v| !values.contains(v)),
                    Operator::Exists => value.is_some(),
                    Operator::DoesNotExist => value.is_none(),
                }
            })
    }
}

fn parse_requirement(wanted: &LabelRequirement) -> Result<(&str, Operator<'_>), SelectorError> {
    check_key(&wanted.key)?;
    wanted.values.iter().try_for_each(|v| check_value(v))?;
    let values = |operator, must_have: bool| {
        let problem = if must_have { "needs at least one value" } else { "takes no values" };
        if wanted.values.is_empty() == must_have {
            Err(SelectorError::Values { key: wanted.key.clone(), operator, problem })
        } else {
            Ok(())
        }
    };
    let operator = match wanted.operator.as_str() {
        "In" => values("In", true).map(|()| Operator::In(&wanted.values)),
        "NotIn" => values("NotIn", true).map(|()| Operator::NotIn(&wanted.values)),
        "Exists" => values("Exists", false).map(|()| Operator::Exists),
        "DoesNotExist" => values("DoesNotExist", false).map(|()| Operator::DoesNotExist),
        other => {
            let found = other.chars().take(64).collect();
            Err(SelectorError::Operator { key: wanted.key.clone(), found })
        }
    }?;
    Ok((&wanted.key, operator))
}

/// Whether a text may be the name part of a key or a value: at most 63 of letters, digits, `-_.`, letter or
/// digit at both ends.
fn is_label_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    text.len() <= 63
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
        && edge(bytes.first())
        && edge(bytes.last())
}

/// Whether a text may be a label's value; it may be empty.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_label_text(text)
}

fn check_key(key: &str) -> Result<(), SelectorError> {
    let valid = match key.split_once('/') {
        Some((prefix, name)) => prefix.parse::<crate::contract::Name>().is_ok() && is_label_text(name),
        None => is_label_text(key),
    };
    let found = || key.chars().take(64).collect();
    if valid { Ok(()) } else { Err(SelectorError::Label { part: "key", found: found() }) }
}

fn check_value(value: &str) -> Result<(), SelectorError> {
    let found = || value.chars().take(64).collect();
    if is_label_value(value) { Ok(()) } else { Err(SelectorError::Label { part: "value", found: found() }) }
}
