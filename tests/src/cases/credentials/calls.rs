//! Calls as an agent makes them, and what comes of them.

use anyhow::Result;
use farrier_shared::contract::HostKey;
use farrier_shared::contract::paths::Callback;
use reqwest::{Client, Method};

use super::answer::{Answer, answer};
use crate::lab::{CALLBACK_PORT, CONTROLLER};

/// All there are.
pub(super) const CALLS: [Callback; 6] = [
    Callback::Inspection,
    Callback::Bootstrap,
    Callback::Provisioned,
    Callback::ProvisionFailed,
    Callback::Events,
    Callback::Logs,
];

/// Why the agent that is played here says it failed.
pub(super) const REASON: &str = "write: played by the test";

/// Makes one, with this `Authorization`.
pub(super) async fn call(
    client: &Client,
    call: Callback,
    host: &str,
    authorization: Option<&str>,
) -> Result<Answer> {
    let host = HostKey::new("default".parse()?, host.parse()?);
    let url = format!("https://{CONTROLLER}:{CALLBACK_PORT}{}", call.path(&host));
    let (method, body) = match call {
        Callback::Bootstrap => (Method::GET, String::new()),
        Callback::Inspection => (Method::POST, r#"{"manufacturer":"played"}"#.to_owned()),
        Callback::Provisioned => (Method::POST, r#"{"status":"provisioned"}"#.to_owned()),
        Callback::ProvisionFailed => (Method::POST, format!(r#"{{"reason":"{REASON}"}}"#)),
        Callback::Events => (Method::POST, r#"{"event":"Alive"}"#.to_owned()),
        Callback::Logs => (Method::POST, "a log\n".to_owned()),
    };
    let mut request = client.request(method, url).body(body);
    if let Some(authorization) = authorization {
        request = request.header("authorization", authorization);
    }
    answer(request).await
}
