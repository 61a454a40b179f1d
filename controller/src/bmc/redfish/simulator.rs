//! A BMC for tests: a power-state machine behind Redfish, with faults on demand.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bmc::{HostAccess, Trust};
use crate::listen::{Limits, Shares, serve_tcp};

/// A fault of every answer while it is set.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    Status(u16),
    Slow(Duration),
    Garbage,
    Redirect(String),
    ForeignSystem(String),
    Oversize,
}

/// How an interface answers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Nic {
    Well,
    Status(u16),
    Slow(Duration),
}

#[derive(Debug)]
pub(super) struct Machine {
    /// Where it shows its system.
    pub(super) system: &'static str,
    pub(super) power: &'static str,
    /// The state to show at the next reads, before `power` is shown.
    pub(super) lag: Vec<&'static str>,
    pub(super) allowed: Option<Vec<&'static str>>,
    pub(super) manufacturer: &'static str,
    /// Who made the BMC, as its root says.
    pub(super) vendor: Value,
    pub(super) fault: Option<Fault>,
    pub(super) version: u32,
    /// Changes made by somebody else just before our next patch.
    pub(super) interference: u32,
    pub(super) resets: Vec<String>,
    pub(super) patches: Vec<Value>,
    pub(super) requests: usize,
    /// Loses its answers to resets.
    pub(super) mute: bool,
    /// Takes resets without doing them.
    pub(super) stuck: bool,
    /// What its interfaces answer, by number; those it lists.
    pub(super) interfaces: Vec<Nic>,
}

/// The running simulator.
#[derive(Clone, Debug)]
pub(super) struct Simulator {
    pub(super) at: SocketAddr,
    machine: Arc<Mutex<Machine>>,
}

impl Simulator {
    pub(super) async fn start(power: &'static str) -> Self {
        Self::serve(power, None).await
    }

    pub(super) async fn start_tls(power: &'static str, tls: Arc<ServerConfig>) -> Self {
        Self::serve(power, Some(tls)).await
    }

    async fn serve(power: &'static str, tls: Option<Arc<ServerConfig>>) -> Self {
        let machine = Machine {
            system: "/redfish/v1/Systems/1",
            power,
            lag: vec![],
            allowed: Some(vec!["On", "ForceOff", "GracefulShutdown", "ForceRestart"]),
            manufacturer: "QEMU",
            vendor: Value::Null,
            fault: None,
            version: 1,
            interference: 0,
            resets: vec![],
            patches: vec![],
            requests: 0,
            mute: false,
            stuck: false,
            interfaces: vec![Nic::Well],
        };
        let machine = Arc::new(Mutex::new(machine));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let app = axum::Router::new().fallback(answer).with_state(Arc::clone(&machine));
        tokio::spawn(serve_tcp(
            listener,
            tls,
            app,
            Limits::ADMIN,
            Shares::unlimited(),
            CancellationToken::new(),
        ));
        Self { at, machine }
    }

    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Machine) -> T) -> T {
        change(&mut self.machine.lock().unwrap())
    }

    pub(super) fn access(&self) -> HostAccess {
        access(&format!("http://{}", self.at))
    }
}

pub(super) fn access(base: &str) -> HostAccess {
    HostAccess {
        base: base.parse().unwrap(),
        username: "admin".to_owned().into(),
        password: "hunter2".to_owned().into(),
        trust: Trust::System,
    }
}

async fn answer(State(machine): State<Arc<Mutex<Machine>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let fault = {
        let mut machine = machine.lock().unwrap();
        machine.requests += 1;
        machine.fault.clone()
    };
    match fault {
        Some(Fault::Status(code)) => return StatusCode::from_u16(code).unwrap().into_response(),
        Some(Fault::Slow(by)) => tokio::time::sleep(by).await,
        Some(Fault::Garbage) => return "<html>hunter2</html>".into_response(),
        Some(Fault::Redirect(to)) => return (StatusCode::FOUND, [(header::LOCATION, to)]).into_response(),
        Some(Fault::Oversize) => return Body::from(vec![b' '; (1 << 20) + 1]).into_response(),
        Some(Fault::ForeignSystem(_)) | None => {}
    }
    // admin:hunter2
    if parts.headers.get(header::AUTHORIZATION).is_none_or(|v| v != "Basic YWRtaW46aHVudGVyMg==") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let path = parts.uri.path();
    let asked = {
        let machine = machine.lock().unwrap();
        (1..=machine.interfaces.len()).find(|n| path == nic(*n)).map(|n| (n, machine.interfaces[n - 1]))
    };
    if let Some((number, manner)) = asked {
        return interface(number, manner).await;
    }
    let mut machine = machine.lock().unwrap();
    match (parts.method, path) {
        (Method::GET, "/redfish/v1/") => {
            let root = json!({ "Vendor": machine.vendor, "Systems": { "@odata.id": "/redfish/v1/Systems" } });
            axum::Json(root).into_response()
        }
        (Method::GET, "/redfish/v1/Systems") => {
            let first = match machine.fault.clone() {
                Some(Fault::ForeignSystem(link)) => link,
                _ => machine.system.to_owned(),
            };
            axum::Json(
                json!({ "Members": [{ "@odata.id": first }, { "@odata.id": "/redfish/v1/Systems/2" }] }),
            )
            .into_response()
        }
        (Method::GET, path) if path == machine.system => machine.show(),
        (Method::GET, "/redfish/v1/Nics") => {
            let links = (1..=machine.interfaces.len()).map(|n| json!({ "@odata.id": nic(n) }));
            axum::Json(json!({ "Members": links.collect::<Vec<_>>() })).into_response()
        }
        (Method::PATCH, path) if path == machine.system => machine.patch(&parts.headers, &body),
        (Method::POST, "/redfish/v1/Systems/1/Reset") => {
            let answer = machine.reset(&body);
            if machine.mute { cut_off() } else { answer }
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A connection that ends before its answer does.
fn cut_off() -> Response {
    let broken = futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("cut off"))]);
    Body::from_stream(broken).into_response()
}

fn nic(number: usize) -> String {
    format!("/redfish/v1/Nics/{number}")
}

async fn interface(number: usize, manner: Nic) -> Response {
    match manner {
        Nic::Status(code) => return StatusCode::from_u16(code).unwrap().into_response(),
        Nic::Slow(by) => tokio::time::sleep(by).await,
        Nic::Well => {}
    }
    axum::Json(json!({
        "IPv4Addresses": [
            { "Address": format!("10.0.{}.5", number - 1) }, { "Address": "203.0.113.9" }, { "Address": null },
        ],
        "IPv6Addresses": [{ "Address": "fd00::5" }],
    }))
    .into_response()
}

impl Machine {
    fn etag(&self) -> String {
        format!("W/\"{}\"", self.version)
    }

    fn show(&mut self) -> Response {
        let power = if self.lag.is_empty() { self.power } else { self.lag.remove(0) };
        let mut reset = json!({ "target": "/redfish/v1/Systems/1/Reset" });
        if let Some(allowed) = &self.allowed {
            reset["ResetType@Redfish.AllowableValues"] = json!(allowed);
        }
        let system = json!({
            "@odata.id": "/redfish/v1/Systems/1",
            "Manufacturer": self.manufacturer, "Model": "sim", "SerialNumber": "S-1", "PowerState": power,
            "OperatingSystem": { "@odata.id": "/redfish/v1/Systems/1/OperatingSystem" },
            "Boot": { "BootSourceOverrideMode": "UEFI",
                      "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Hdd"] },
            "EthernetInterfaces": { "@odata.id": "/redfish/v1/Nics" },
            "Actions": { "#ComputerSystem.Reset": reset },
        });
        ([(header::ETAG, self.etag())], axum::Json(system)).into_response()
    }

    fn patch(&mut self, headers: &HeaderMap, body: &Bytes) -> Response {
        if self.interference > 0 {
            self.interference -= 1;
            self.version += 1;
        }
        // Compared as strong tags by Lenovo, which never match weak ones.
        let mine = if self.manufacturer == "Lenovo" { self.etag().replace("W/", "") } else { self.etag() };
        if headers.get(header::IF_MATCH).is_none_or(|tag| tag.to_str().unwrap() != mine) {
            return StatusCode::PRECONDITION_FAILED.into_response();
        }
        self.version += 1;
        self.patches.push(serde_json::from_slice(body).unwrap());
        StatusCode::NO_CONTENT.into_response()
    }

    fn reset(&mut self, body: &Bytes) -> Response {
        let body: Value = serde_json::from_slice(body).unwrap();
        let kind = body["ResetType"].as_str().unwrap().to_owned();
        let refuse = |id: &str| {
            let error = json!({ "error": { "code": "Base.1.8.GeneralError", "@Message.ExtendedInfo":
                [{ "MessageId": id, "Message": "hunter2" }] } });
            (StatusCode::BAD_REQUEST, axum::Json(error)).into_response()
        };
        self.resets.push(kind.clone());
        if self.allowed.as_ref().is_some_and(|list| !list.contains(&kind.as_str())) {
            return refuse("Base.1.8.ActionParameterNotSupported");
        }
        let next = match (kind.as_str(), self.power) {
            ("On", "Off") | ("ForceRestart" | "PowerCycle", "On") => "On",
            ("ForceOff" | "GracefulShutdown", "On") => "Off",
            _ => return refuse("iLO.2.8.InvalidOperationForSystemState"),
        };
        if !self.stuck {
            // What is seen first is the state before.
            self.lag = vec![self.power, if next == "On" { "PoweringOn" } else { "PoweringOff" }];
            self.power = next;
        }
        StatusCode::NO_CONTENT.into_response()
    }
}
