//! The client against a real TLS server.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use farrier_shared::contract::callback::{Event, EventName, MAX_BOOTSTRAP_BODY, MAX_INSPECTION_BODY};
use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::{HostKey, InspectionReport};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use reqwest::dns::{Name, Resolve, Resolving};

use super::{CallbackError, Client, Policy};

const TOKEN: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ";

/// The only name there is leads here.
struct Here;

impl Resolve for Here {
    fn resolve(&self, name: Name) -> Resolving {
        let known = name.as_str() == "controller.test";
        Box::pin(async move {
            if !known {
                return Err("no such name".into());
            }
            Ok(Box::new([SocketAddr::from(([127, 0, 0, 1], 0))].into_iter()) as _)
        })
    }
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }
}

#[derive(Clone)]
enum Answer {
    Status(u16),
    Body(Vec<u8>),
    Elsewhere,
}

#[derive(Clone)]
struct Seen {
    line: String,
    headers: HeaderMap,
    body: Bytes,
}

#[derive(Default)]
struct Script {
    answers: VecDeque<Answer>,
    then: Option<Answer>,
    seen: Vec<Seen>,
}

struct Controller {
    script: Arc<Mutex<Script>>,
    handle: Handle<SocketAddr>,
    authority: Authority,
    port: u16,
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.handle.shutdown();
    }
}

async fn answer(
    State(script): State<Arc<Mutex<Script>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut script = script.lock().unwrap();
    script.seen.push(Seen { line: format!("{method} {}", uri.path()), headers, body });
    let next = script.answers.pop_front().or_else(|| script.then.clone());
    match next.unwrap_or(Answer::Status(202)) {
        Answer::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Answer::Body(body) => body.into_response(),
        Answer::Elsewhere => Redirect::temporary("https://controller.test/elsewhere").into_response(),
    }
}

impl Controller {
    async fn start(answers: &[Answer], then: Answer) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let script =
            Script { answers: answers.iter().cloned().collect(), then: Some(then), seen: Vec::new() };
        let script = Arc::new(Mutex::new(script));
        let authority = Authority::new();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["controller.test".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &authority.issuer).unwrap();
        let tls = RustlsConfig::from_pem(leaf.pem().into(), key.serialize_pem().into()).await.unwrap();
        let app = Router::new().fallback(answer).with_state(Arc::clone(&script));
        let handle = Handle::new();
        let server = axum_server::bind_rustls(SocketAddr::from(([127, 0, 0, 1], 0)), tls);
        tokio::spawn(server.handle(handle.clone()).serve(app.into_make_service()));
        let port = handle.listening().await.unwrap().port();
        Self { script, handle, authority, port }
    }

    fn params(&self, ca_pem: &str) -> BootParams {
        BootParams {
            api: format!("https://controller.test:{}", self.port).parse().unwrap(),
            host: HostKey::new("default".parse().unwrap(), "node-1".parse().unwrap()),
            token: TOKEN.parse().unwrap(),
            target: "http://images.test/x".parse().unwrap(),
            target_digest: format!("sha256:{}", "0".repeat(64)).parse().unwrap(),
            provider_id: "b7://default/node-1".parse().unwrap(),
            ca_pem: ca_pem.as_bytes().to_vec(),
            disk: None,
            static_ip: None,
            timeout: Duration::from_millis(200),
            debug: false,
            bootif: None,
            extra: std::collections::HashMap::new(),
        }
    }

    fn client_trusting(&self, ca_pem: &str) -> Client {
        Client::new(&self.params(ca_pem), Arc::new(Here), brisk()).unwrap()
    }

    fn client(&self) -> Client {
        self.client_trusting(&self.authority.pem)
    }

    fn seen(&self) -> Vec<Seen> {
        self.script.lock().unwrap().seen.clone()
    }
}

/// Patience in milliseconds.
fn brisk() -> Policy {
    let ms = Duration::from_millis;
    Policy {
        connect: Duration::from_secs(5),
        call: Duration::from_secs(5),
        first_wait: ms(1),
        longest_wait: ms(4),
        poll: ms(10),
        patience: ms(1500),
        installed_patience: ms(2500),
        ..Policy::default()
    }
}

fn event() -> Event {
    serde_json::from_str(r#"{"event":"Installing","step":"write","bytes":5}"#).unwrap()
}

#[tokio::test]
async fn each_call_goes_to_its_path_with_the_bearer_token() {
    let controller = Controller::start(&[], Answer::Status(202)).await;
    let client = controller.client();
    client.report(&InspectionReport::default()).await.unwrap();
    assert!(client.event(&event()).await.unwrap());
    client.provisioned().await.unwrap();
    assert!(client.provision_failed("write: no").await.unwrap());
    assert!(client.logs(b"line\n").await.unwrap());
    let seen = controller.seen();
    let lines: Vec<_> = seen.iter().map(|s| s.line.as_str()).collect();
    assert_eq!(
        lines,
        [
            "POST /api/v1/inspection/default/node-1",
            "POST /api/v1/events/default/node-1",
            "POST /api/v1/provisioned/default/node-1",
            "POST /api/v1/provision-failed/default/node-1",
            "POST /api/v1/logs/default/node-1",
        ]
    );
    assert!(seen.iter().all(|s| s.headers["authorization"] == format!("Bearer {TOKEN}")));
    let event: Event = serde_json::from_slice(&seen[1].body).unwrap();
    assert_eq!((event.event, event.bytes), (EventName::Installing, Some(5)));
    assert_eq!(seen[2].body, r#"{"status":"provisioned"}"#);
    assert_eq!(seen[3].body, r#"{"reason":"write: no"}"#);
    assert_eq!(seen[4].body, "line\n");
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused_at_once_and_sees_no_token() {
    let controller = Controller::start(&[], Answer::Status(202)).await;
    let client = controller.client_trusting(&Authority::new().pem);
    let error = client.report(&InspectionReport::default()).await.unwrap_err();
    assert!(matches!(error, CallbackError::Tls { .. }), "{error}");
    let error = client.bootstrap().await.unwrap_err();
    assert!(matches!(error, CallbackError::Tls { .. }), "{error}");
    assert!(controller.seen().is_empty());
}

#[tokio::test]
async fn a_bundle_without_a_certificate_is_told() {
    let controller = Controller::start(&[], Answer::Status(202)).await;
    for bundle in ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let error = Client::new(&controller.params(bundle), Arc::new(Here), brisk()).unwrap_err();
        assert!(error.to_string().contains("beskar7.ca") || matches!(error, CallbackError::Setup { .. }));
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_until_patience_ends_and_what_cannot_once() {
    for (status, passes) in [
        (500, true),
        (503, true),
        (429, true),
        (408, true),
        (400, false),
        (401, false),
        (404, false),
        (413, false),
    ] {
        let controller = Controller::start(&[], Answer::Status(status)).await;
        let error = controller.client().report(&InspectionReport::default()).await.unwrap_err();
        let requests = controller.seen().len();
        assert!(if passes { requests > 5 } else { requests == 1 }, "{requests} for {status}");
        assert!(error.to_string().contains(&format!("HTTP {status}")), "{error}");
        assert!(error.to_string().contains("controller.test"), "{error}");
        assert!(!format!("{error} {error:?}").contains(TOKEN));
    }
}

#[tokio::test]
async fn trouble_that_passes_is_no_failure() {
    let trouble: Vec<_> = [503, 429, 500, 408].repeat(3).into_iter().map(Answer::Status).collect();
    let controller = Controller::start(&trouble, Answer::Status(202)).await;
    controller.client().report(&InspectionReport::default()).await.unwrap();
    assert_eq!(controller.seen().len(), 13);
    let controller = Controller::start(&trouble, Answer::Status(202)).await;
    controller.client().provisioned().await.unwrap();
    assert_eq!(controller.seen().len(), 13);
    let controller = Controller::start(&trouble, Answer::Status(202)).await;
    assert!(controller.client().provision_failed("write: no").await.unwrap());
    assert_eq!(controller.seen().len(), 13);
}

#[tokio::test]
async fn an_installed_system_is_told_of_with_more_patience() {
    let controller = Controller::start(&[], Answer::Status(503)).await;
    let begin = std::time::Instant::now();
    let error = controller.client().provisioned().await.unwrap_err();
    assert!(matches!(error, CallbackError::Exhausted { .. }), "{error}");
    assert!(begin.elapsed() > brisk().patience, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn the_log_is_not_insisted_on() {
    let controller = Controller::start(&[], Answer::Status(503)).await;
    let error = controller.client().logs(b"line\n").await.unwrap_err();
    assert!(matches!(error, CallbackError::Exhausted { attempts: 5, .. }), "{error}");
}

#[tokio::test]
async fn a_controller_that_is_not_there_is_tried_and_named() {
    let controller = Controller::start(&[], Answer::Status(202)).await;
    let mut params = controller.params(&controller.authority.pem);
    params.api = "https://controller.test:1".parse().unwrap();
    let client = Client::new(&params, Arc::new(Here), brisk()).unwrap();
    let error = client.report(&InspectionReport::default()).await.unwrap_err();
    assert!(matches!(&error, CallbackError::Exhausted { attempts: 6.., .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let controller = Controller::start(&[], Answer::Elsewhere).await;
    let error = controller.client().report(&InspectionReport::default()).await.unwrap_err();
    assert!(matches!(error, CallbackError::Refused { status: 307, .. }), "{error}");
    assert_eq!(controller.seen().len(), 1);
}

#[tokio::test]
async fn user_data_is_waited_for() {
    let wait = [404, 500, 404].map(Answer::Status);
    let data = Answer::Body(b"#cloud-config\n\xff".to_vec());
    let controller = Controller::start(&wait, data).await;
    assert_eq!(**controller.client().bootstrap().await.unwrap(), *b"#cloud-config\n\xff");
    assert_eq!(controller.seen().len(), 4);
}

#[tokio::test]
async fn user_data_is_not_waited_for_in_vain() {
    let controller = Controller::start(&[], Answer::Status(404)).await;
    let error = controller.client().bootstrap().await.unwrap_err();
    assert!(matches!(error, CallbackError::NoUserData { .. }), "{error}");
    assert!(controller.seen().len() > 2);
    for status in [401, 403, 400] {
        let controller = Controller::start(&[], Answer::Status(status)).await;
        let error = controller.client().bootstrap().await.unwrap_err();
        assert!(matches!(error, CallbackError::Refused { .. }), "{error}");
        assert_eq!(controller.seen().len(), 1);
    }
}

#[tokio::test]
async fn user_data_may_be_a_mebibyte_and_no_more() {
    let whole = vec![7; MAX_BOOTSTRAP_BODY];
    let controller = Controller::start(&[Answer::Body(whole.clone())], Answer::Status(202)).await;
    assert_eq!(**controller.client().bootstrap().await.unwrap(), whole);
    let controller = Controller::start(&[], Answer::Body(vec![7; MAX_BOOTSTRAP_BODY + 1])).await;
    let error = controller.client().bootstrap().await.unwrap_err();
    assert!(matches!(error, CallbackError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn s114_a_controller_without_farriers_own_calls_is_left_in_peace() {
    let controller = Controller::start(&[], Answer::Status(404)).await;
    let client = controller.client();
    assert!(!client.event(&event()).await.unwrap());
    assert!(!client.logs(b"").await.unwrap());
    assert!(!client.provision_failed("write: no").await.unwrap());
    let error = client.provisioned().await.unwrap_err();
    assert!(matches!(error, CallbackError::Refused { status: 404, .. }), "{error}");
}

#[tokio::test]
async fn a_report_too_large_for_the_contract_goes_without_what_the_contract_does_not_know() {
    let controller = Controller::start(&[], Answer::Status(202)).await;
    let farrier = serde_json::json!({ "disks": "x".repeat(MAX_INSPECTION_BODY) });
    let report =
        InspectionReport { model: "M".into(), farrier: Some(farrier), ..InspectionReport::default() };
    controller.client().report(&report).await.unwrap();
    let sent = InspectionReport::from_json(&controller.script.lock().unwrap().seen[0].body).unwrap();
    assert_eq!((sent.model.as_str(), sent.farrier), ("M", None));
}

#[tokio::test]
async fn logs_and_reasons_are_cut_to_what_the_controller_takes() {
    let controller = Controller::start(&[], Answer::Status(202)).await;
    let client = controller.client();
    let mut log = vec![b'a'; 1 << 20];
    log.extend_from_slice(b"the end");
    client.logs(&log).await.unwrap();
    client.provision_failed(&"ü".repeat(200)).await.unwrap();
    let seen = controller.seen();
    assert_eq!(seen[0].body.len(), 1 << 20);
    assert!(seen[0].body.ends_with(b"the end"));
    assert_eq!(seen[1].body, format!(r#"{{"reason":"{}"}}"#, "ü".repeat(128)));
}

#[test]
fn nothing_secret_shows_in_debug_output() {
    rustls::crypto::ring::default_provider().install_default().ok();
    let authority = Authority::new();
    let cmdline = format!(
        "beskar7.api=https://controller.test:8082 beskar7.namespace=default beskar7.host=node-1 \
         beskar7.token={TOKEN} beskar7.target=http://i.test/x beskar7.target-digest=sha256:{} \
         beskar7.provider-id=b7://default/node-1 beskar7.ca=AAAA",
        "0".repeat(64)
    );
    let mut params = BootParams::parse(&cmdline).unwrap();
    params.ca_pem = authority.pem.into_bytes();
    let client = Client::new(&params, Arc::new(Here), Policy::default()).unwrap();
    assert_eq!(format!("{client:?}"), "Client(controller.test:8082 for default/node-1)");
}
