//! What the admin API takes, refuses and shows.

mod listening;
mod objects;
mod watching;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost};
use serde_json::{Value, json};

use super::*;
use crate::fixture::{Answer, Fixture, ask, host, key, machine};

fn scripts() -> Arc<Renderer> {
    Arc::new(Renderer {
        ca: Arc::new(vec![b'x'; 300]),
        url_base: "https://192.0.2.1:8082".parse().unwrap(),
        reference_boot: false,
    })
}

fn api(store: &Store) -> Router {
    let info = Info {
        version: "0".to_owned(),
        url_base: "https://192.0.2.1".to_owned(),
        http_url_base: "http://192.0.2.1".to_owned(),
        inspection_image_url: "http://192.0.2.1/images/inspection".to_owned(),
    };
    let clock = Arc::new(crate::clock::ManualClock::at(crate::fixture::start()));
    router(Admin {
        store: store.clone(),
        progress: Progress::new(),
        clock,
        info: Arc::new(info),
        scripts: scripts(),
    })
}

async fn send(store: &Store, method: &str, path: &str, body: &Value) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(format!("/apis/v1/namespaces/lab/{path}"))
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap();
    ask(&api(store), "127.0.0.1", request).await
}

fn error(answer: &Answer) -> Problem {
    serde_json::from_slice::<ErrorBody>(&answer.body).unwrap().error
}

fn with(object: &impl serde::Serialize, pointer: &str, value: Value) -> Value {
    let mut object = serde_json::to_value(object).unwrap();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value;
    object
}

fn secret(data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s1", "namespace": "lab" }, "stringData": data })
}
