//! BMC names are absolute: a search domain must not turn one name into another.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Resolves every name with a dot at its end. Host header and SNI keep the name as written.
#[derive(Debug)]
pub(super) struct AbsoluteNames;

/// The name does not resolve.
#[derive(Debug, thiserror::Error)]
#[error("{name} does not resolve")]
pub(super) struct DnsFailed {
    name: String,
}

impl Resolve for AbsoluteNames {
    fn resolve(&self, name: Name) -> Resolving {
        let absolute = absolute(name.as_str());
        Box::pin(async move {
            let found = tokio::net::lookup_host((absolute.as_str(), 0)).await;
            let found: Vec<_> = found.map_err(|_| DnsFailed { name: absolute.clone() })?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn absolute(name: &str) -> String {
    format!("{}.", name.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s133_names_get_exactly_one_dot_at_their_end() {
        assert_eq!(absolute("bmc1.lab"), "bmc1.lab.");
        assert_eq!(absolute("bmc1.lab."), "bmc1.lab.");
    }
}
