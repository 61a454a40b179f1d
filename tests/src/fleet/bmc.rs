//! The BMCs of a fleet: Redfish at one loopback address each, and behind it a power switch.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::secure::Identity;
use super::{address, mac, name};

pub(super) const USER: &str = "operator";
pub(super) const PASSWORD: &str = "fleet-bmc-password";
/// Ports tried before giving up.
const TRIES: u16 = 20;
const SYSTEM: &str = "/redfish/v1/Systems/1";
const NICS: &str = "/redfish/v1/Systems/1/EthernetInterfaces";
const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";

/// What the power switch of a server did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switched {
    /// On, or off and on again; the boot override is used up.
    On {
        network: bool,
    },
    Off,
}

#[derive(Clone, Copy, Debug, Default)]
struct Switch {
    on: bool,
    network_once: bool,
}

struct Shared {
    switches: Vec<Mutex<Switch>>,
    switched: mpsc::UnboundedSender<(usize, Switched)>,
    authorization: String,
}

/// All BMCs; they stop answering when this is dropped.
#[derive(Debug)]
pub(super) struct Bmcs {
    /// The port all of them listen at.
    pub(super) port: u16,
    /// The certificate all of them show, in PEM.
    pub(super) certificate: String,
    _serving: JoinSet<()>,
}

impl Bmcs {
    /// Starts `count` BMCs; their switches tell `switched`.
    pub(super) async fn serve(
        count: usize,
        switched: mpsc::UnboundedSender<(usize, Switched)>,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            switches: std::iter::repeat_with(Mutex::default).take(count).collect(),
            switched,
            authorization: format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}"))),
        });
        let app = Router::new().fallback(answer).with_state(shared);
        let (port, listeners) = listen(count).await?;
        let identity = Identity::new()?;
        let mut serving = JoinSet::new();
        for listener in listeners {
            let (app, listener) = (app.clone(), identity.at(listener));
            serving.spawn(async move {
                axum::serve(listener, app).await.ok();
            });
        }
        Ok(Self { port, certificate: identity.certificate, _serving: serving })
    }
}

/// One port at every address. Below those the kernel hands out, since firmware has the same addresses.
async fn listen(count: usize) -> Result<(u16, Vec<TcpListener>)> {
    let mut taken = None;
    let own = u16::try_from(std::process::id() % 10_000)?;
    for port in (0..TRIES).map(|offset| 20_000 + (own + offset * 97) % 10_000) {
        let mut listeners = Vec::with_capacity(count);
        for number in 0..count {
            match TcpListener::bind(SocketAddr::from((address(number), port))).await {
                Ok(listener) => listeners.push(listener),
                Err(error) => {
                    taken = Some(anyhow::Error::from(error).context(format!("{}:{port}", address(number))));
                    break;
                }
            }
        }
        if listeners.len() == count {
            return Ok((port, listeners));
        }
    }
    Err(taken.unwrap_or_else(|| anyhow::anyhow!("no port was tried"))).context("listen as BMCs")
}

/// The server is told by the address the request was sent to.
async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let to = text(header::HOST).parse::<SocketAddr>().ok().and_then(|at| match at.ip() {
        std::net::IpAddr::V4(ip) => u32::from(ip).checked_sub(u32::from(address(0))),
        std::net::IpAddr::V6(_) => None,
    });
    let number = to.and_then(|n| usize::try_from(n).ok()).filter(|n| *n < shared.switches.len());
    let Some(number) = number else { return StatusCode::MISDIRECTED_REQUEST.into_response() };
    let path = uri.path();
    if path == "/redfish/v1/" {
        return Json(json!({ "Systems": { "@odata.id": "/redfish/v1/Systems" } })).into_response();
    }
    if text(header::AUTHORIZATION) != shared.authorization {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match (method, path) {
        (Method::GET, "/redfish/v1/Systems") => collection(&[SYSTEM]),
        (Method::GET, SYSTEM) => Json(shared.show(number)).into_response(),
        (Method::GET, NICS) => collection(&[
            "/redfish/v1/Systems/1/EthernetInterfaces/1",
            "/redfish/v1/Systems/1/EthernetInterfaces/2",
        ]),
        (Method::GET, nic) if nic.starts_with(NICS) => Json(
            json!({ "@odata.id": nic, "MACAddress": mac(number), "IPv4Addresses": [], "IPv6Addresses": [] }),
        )
        .into_response(),
        (Method::PATCH, SYSTEM) => shared.patch(number, &body),
        (Method::POST, RESET) => shared.reset(number, &body),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn collection(members: &[&str]) -> Response {
    let members: Vec<Value> = members.iter().map(|member| json!({ "@odata.id": member })).collect();
    Json(json!({ "Members": members })).into_response()
}

impl Shared {
    fn with<T>(&self, number: usize, act: impl FnOnce(&mut Switch) -> T) -> T {
        act(&mut self.switches[number].lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn show(&self, number: usize) -> Value {
        let switch = self.with(number, |switch| *switch);
        json!({
            "@odata.id": SYSTEM, "Id": "1", "Manufacturer": "Acme", "Model": "Anvil 2000",
            "SerialNumber": name(number),
            "PowerState": if switch.on { "On" } else { "Off" },
            "Status": { "Health": "OK", "HealthRollup": "OK", "State": "Enabled" },
            "Boot": {
                "BootSourceOverrideEnabled": if switch.network_once { "Once" } else { "Disabled" },
                "BootSourceOverrideTarget": if switch.network_once { "Pxe" } else { "None" },
                "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Hdd"],
                "BootSourceOverrideMode": "UEFI",
            },
            "EthernetInterfaces": { "@odata.id": NICS },
            "Actions": { "#ComputerSystem.Reset": {
                "target": RESET,
                "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "GracefulShutdown", "ForceRestart"],
            } },
        })
    }

    fn patch(&self, number: usize, body: &[u8]) -> Response {
        let patch: Value = serde_json::from_slice(body).unwrap_or_default();
        let boot = &patch["Boot"];
        let once =
            match (boot["BootSourceOverrideTarget"].as_str(), boot["BootSourceOverrideEnabled"].as_str()) {
                (Some("Pxe"), Some("Once")) => true,
                (Some("None"), Some("Disabled")) => false,
                _ => return StatusCode::BAD_REQUEST.into_response(),
            };
        self.with(number, |switch| switch.network_once = once);
        StatusCode::NO_CONTENT.into_response()
    }

    fn reset(&self, number: usize, body: &[u8]) -> Response {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let switched = self.with(number, |switch| {
            let on = match (request["ResetType"].as_str(), switch.on) {
                (Some("On"), false) | (Some("ForceRestart"), true) => true,
                (Some("ForceOff" | "GracefulShutdown"), true) => false,
                _ => return None,
            };
            switch.on = on;
            Some(if on {
                Switched::On { network: std::mem::take(&mut switch.network_once) }
            } else {
                Switched::Off
            })
        });
        // As real BMCs do, it refuses to go where it is.
        let Some(switched) = switched else { return StatusCode::BAD_REQUEST.into_response() };
        self.switched.send((number, switched)).ok();
        StatusCode::NO_CONTENT.into_response()
    }
}
