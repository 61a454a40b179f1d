//! The client against the shapes of real BMCs: see `recorded/README.md` for where they come from.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use farrier_shared::lifecycle::PowerState;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::RedfishConnector;
use super::simulator::access;
use super::transport::Pace;
use crate::bmc::{Bmc, BootMode, Connector as _, ResetKind};
use crate::listen::{Limits, Shares, serve_tcp};

const FAMILIES: [(&str, &str); 7] = [
    ("Dell iDRAC9", include_str!("recorded/dell_idrac9.json")),
    ("HPE iLO5", include_str!("recorded/hpe_ilo5.json")),
    ("Lenovo XCC", include_str!("recorded/lenovo_xcc.json")),
    ("Supermicro X12", include_str!("recorded/supermicro_x12.json")),
    ("Supermicro X13", include_str!("recorded/supermicro_x13.json")),
    ("OpenBMC", include_str!("recorded/openbmc.json")),
    ("AMI MegaRAC", include_str!("recorded/ami_megarac.json")),
];

#[derive(Clone, Debug, Deserialize)]
struct Manner {
    etag: String,
    tag: String,
    if_match: String,
    mode: String,
    settings: Option<String>,
    #[serde(default)]
    slash: bool,
}

/// A BMC of one family: its tree, and what was done to it.
#[derive(Debug, Deserialize)]
struct Recorded {
    manner: Manner,
    system: String,
    resources: BTreeMap<String, Value>,
    #[serde(skip)]
    resets: Vec<String>,
    /// Changes somebody else makes just before our next patches.
    #[serde(skip)]
    interference: u32,
}

type Shared = Arc<Mutex<Recorded>>;

impl Recorded {
    fn get(&self, path: &str) -> Response {
        let Some(resource) = self.resources.get(path) else {
            let slashed = format!("{path}/");
            if self.manner.slash && self.resources.contains_key(&slashed) {
                return (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, slashed)]).into_response();
            }
            return StatusCode::NOT_FOUND.into_response();
        };
        let mut response = axum::Json(resource.clone()).into_response();
        if self.manner.etag == "header" {
            response.headers_mut().insert(header::ETAG, HeaderValue::from_str(&self.manner.tag).unwrap());
        }
        response
    }

    fn precondition(&mut self, headers: &HeaderMap) -> Option<StatusCode> {
        if self.interference > 0 {
            self.interference -= 1;
            return (self.manner.if_match != "ignored").then_some(StatusCode::PRECONDITION_FAILED);
        }
        let given = headers.get(header::IF_MATCH).map(|v| v.to_str().unwrap());
        match (self.manner.if_match.as_str(), given) {
            ("ignored", _) | ("checked" | "strong", None) | (_, Some("*")) => None,
            ("demanded", None) => Some(StatusCode::PRECONDITION_REQUIRED),
            ("strong", Some(tag)) if tag.starts_with("W/") => Some(StatusCode::PRECONDITION_FAILED),
            (_, Some(tag)) => (tag != self.manner.tag).then_some(StatusCode::PRECONDITION_FAILED),
            (other, None) => panic!("no such manner: {other}"),
        }
    }

    fn patch(&mut self, path: &str, headers: &HeaderMap, body: &Value) -> Response {
        if let Some(refused) = self.precondition(headers) {
            return refused.into_response();
        }
        let takes = self.manner.settings.clone().unwrap_or_else(|| self.system.clone());
        if path != takes {
            return refusal("Ami.1.0.OperationSupportedInFutureStateURI");
        }
        let given = body["Boot"].as_object().unwrap();
        if self.manner.mode == "fixed" && given.contains_key("BootSourceOverrideMode") {
            return refusal("iLO.2.14.PropertyNotWritableOrUnknown");
        }
        let boot = self.resources.get_mut(&takes).unwrap()["Boot"].as_object_mut().unwrap();
        for (key, value) in given {
            assert!(boot.contains_key(key), "{key} is no property of its Boot");
            boot.insert(key.clone(), value.clone());
        }
        let pxe = boot["BootSourceOverrideTarget"] == "Pxe";
        if self.manner.mode == "falls-back"
            && pxe
            && given.get("BootSourceOverrideMode") != Some(&json!("UEFI"))
        {
            boot.insert("BootSourceOverrideMode".to_owned(), json!("Legacy"));
            boot.insert("BootSourceOverrideEnabled".to_owned(), json!("Disabled"));
        }
        StatusCode::NO_CONTENT.into_response()
    }

    fn allowed(&self) -> Vec<String> {
        let action = &self.resources[&self.system]["Actions"]["#ComputerSystem.Reset"];
        let texts = |list: &Value| serde_json::from_value::<Vec<String>>(list.clone()).unwrap();
        match action.get("ResetType@Redfish.AllowableValues") {
            Some(list) => texts(list),
            None => {
                let info = action["@Redfish.ActionInfo"].as_str().unwrap();
                texts(&self.resources[info]["Parameters"][0]["AllowableValues"])
            }
        }
    }

    fn reset(&mut self, body: &Value) -> Response {
        let kind = body["ResetType"].as_str().unwrap().to_owned();
        if !self.allowed().contains(&kind) {
            return refusal("Base.1.8.ActionParameterNotSupported");
        }
        self.resets.push(kind.clone());
        let system = self.system.clone();
        let power = &mut self.resources.get_mut(&system).unwrap()["PowerState"];
        let next = match (kind.as_str(), power.as_str().unwrap()) {
            ("On" | "ForceOn", "Off") | ("ForceRestart" | "PowerCycle", "On") => "On",
            ("ForceOff" | "GracefulShutdown" | "PushPowerButton", "On") => "Off",
            _ => return refusal("Base.1.8.InvalidOperationForSystemState"),
        };
        *power = json!(next);
        StatusCode::NO_CONTENT.into_response()
    }
}

fn refusal(id: &str) -> Response {
    let error = json!({ "error": { "code": "Base.1.8.GeneralError", "@Message.ExtendedInfo": [{ "MessageId": id }] } });
    (StatusCode::BAD_REQUEST, axum::Json(error)).into_response()
}

async fn answer(
    State(bmc): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut bmc = bmc.lock().unwrap();
    let path = uri.path();
    let action = bmc.resources[&bmc.system]["Actions"]["#ComputerSystem.Reset"]["target"].clone();
    match method {
        Method::GET => bmc.get(path),
        Method::PATCH => bmc.patch(path, &headers, &serde_json::from_slice(&body).unwrap()),
        Method::POST if action == path => bmc.reset(&serde_json::from_slice(&body).unwrap()),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

struct Rig {
    family: &'static str,
    recorded: Shared,
    bmc: Arc<dyn Bmc>,
}

impl Rig {
    async fn of((family, text): (&'static str, &str)) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let recorded: Shared = Arc::new(Mutex::new(serde_json::from_str(text).unwrap()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let app = axum::Router::new().fallback(answer).with_state(Arc::clone(&recorded));
        tokio::spawn(serve_tcp(
            listener,
            None,
            app,
            Limits::ADMIN,
            Shares::unlimited(),
            CancellationToken::new(),
        ));
        let connector = RedfishConnector::with_pace(Pace {
            poll: Duration::from_millis(2),
            settle: Duration::from_millis(200),
            ..Pace::default()
        });
        let bmc = connector.connect(&access(&format!("http://{at}"))).await;
        let bmc = bmc.unwrap_or_else(|e| panic!("{family}: {e}"));
        Self { family, recorded, bmc }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Recorded) -> T) -> T {
        act(&mut self.recorded.lock().unwrap())
    }

    /// Target, enabled and mode where the BMC takes them.
    fn boot(&self) -> [String; 3] {
        self.with(|r| {
            let place = r.manner.settings.as_ref().unwrap_or(&r.system);
            let boot = &r.resources[place]["Boot"];
            ["Target", "Enabled", "Mode"]
                .map(|field| boot[format!("BootSourceOverride{field}")].as_str().unwrap().to_owned())
        })
    }
}

#[tokio::test]
async fn every_family_tells_what_it_is() {
    for family in FAMILIES {
        let rig = Rig::of(family).await;
        let facts = rig.bmc.system_info().await.unwrap();
        assert_eq!(facts.power, Some(PowerState::Off), "{}", rig.family);
        let details = facts.details.unwrap();
        let texts = [&details.manufacturer, &details.model, &details.serial_number, &details.status.health];
        assert!(texts.iter().all(|text| !text.is_empty()), "{}: {details:?}", rig.family);
    }
}

#[tokio::test]
async fn every_family_boots_from_the_network_once_and_forgets_it_again() {
    for family in FAMILIES {
        for interference in [0, 1] {
            let rig = Rig::of(family).await;
            let before = rig.boot();
            rig.with(|r| r.interference = interference);
            let told = |e| panic!("{} {interference}: {e}", rig.family);
            rig.bmc.set_boot_pxe_once(BootMode::AsConfigured).await.unwrap_or_else(told);
            let [target, enabled, mode] = rig.boot();
            assert_eq!((target.as_str(), enabled.as_str()), ("Pxe", "Once"), "{}", rig.family);
            // As it was, but where that is only what an override that is off happens to show.
            let expected = if rig.family == "Supermicro X13" { "UEFI" } else { before[2].as_str() };
            assert_eq!(mode, expected, "{}", rig.family);
            rig.bmc.clear_boot_override().await.unwrap();
            assert_eq!(rig.boot()[..2], ["None", "Disabled"], "{}", rig.family);
        }
    }
}

#[tokio::test]
async fn every_family_takes_the_mode_it_is_in_and_those_that_can_take_the_other() {
    for family in FAMILIES {
        let rig = Rig::of(family).await;
        let manner = rig.with(|r| r.manner.mode.clone());
        rig.bmc.set_boot_pxe_once(BootMode::Uefi).await.unwrap_or_else(|e| panic!("{}: {e}", rig.family));
        assert_eq!(rig.boot(), ["Pxe", "Once", "UEFI"], "{}", rig.family);
        if manner != "falls-back" {
            let legacy = rig.bmc.set_boot_pxe_once(BootMode::Legacy).await;
            assert_eq!(legacy.is_ok(), manner == "free", "{}: {legacy:?}", rig.family);
        }
    }
}

#[tokio::test]
async fn every_family_is_switched_by_types_it_offers_and_the_power_is_confirmed() {
    for family in FAMILIES {
        let rig = Rig::of(family).await;
        for (kind, ends) in [
            (ResetKind::ForceOff, "Off"),
            (ResetKind::On, "On"),
            (ResetKind::On, "On"),
            (ResetKind::ForceRestart, "On"),
            (ResetKind::GracefulShutdown, "Off"),
            (ResetKind::ForceRestart, "On"),
            (ResetKind::ForceOff, "Off"),
        ] {
            rig.bmc.reset(kind).await.unwrap_or_else(|e| panic!("{} {kind:?}: {e}", rig.family));
            assert_eq!(rig.bmc.power_state().await.unwrap().as_str(), ends, "{} {kind:?}", rig.family);
        }
        let graceful = rig.with(|r| r.allowed().contains(&"GracefulShutdown".to_owned()));
        let polite = match rig.family {
            _ if graceful => "GracefulShutdown",
            "HPE iLO5" => "PushPowerButton",
            _ => "ForceOff",
        };
        let sent = rig.with(|r| r.resets.join(" "));
        assert_eq!(sent, format!("On ForceRestart {polite} On ForceOff"), "{}", rig.family);
    }
}
