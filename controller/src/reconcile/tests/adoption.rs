//! Hosts that are taken over as they are, by way of the admin API.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use farrier_shared::contract::ProviderId;
use farrier_shared::resource::machine::MachinePhase;
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost};
use serde_json::{Value, json};

use super::fleet::{Fleet, key, scripts};
use crate::admin::{Admin, Info, router};
use crate::fixture::{Answer, ask};

fn machine(name: &str) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "Beskar7Machine",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "inspectionImageURL": "http://farrier.example:8080/images/inspection",
            "targetImageURL": "https://images.example/os.raw",
            "targetImageDigest": format!("sha256:{}", "ab".repeat(32)),
        },
    })
}

async fn adopt(fleet: &Fleet, host: &str, machine: &Value) -> Answer {
    let info = Info {
        version: "0".to_owned(),
        url_base: "https://farrier.example:8082".to_owned(),
        http_url_base: "http://farrier.example:8080".to_owned(),
        inspection_image_url: "http://farrier.example:8080/images/inspection".to_owned(),
    };
    let admin = Admin {
        store: fleet.store.clone(),
        progress: fleet.progress.clone(),
        clock: Arc::clone(&fleet.clock),
        info: Arc::new(info),
        scripts: scripts(),
    };
    let request = Request::post(format!("/apis/v1/namespaces/default/hosts/{host}/adopt"))
        .header("content-type", "application/json")
        .body(Body::from(machine.to_string()))
        .unwrap();
    ask(&router(admin), "127.0.0.1", request).await
}

#[tokio::test(start_paused = true)]
async fn s185_an_installed_host_is_adopted_ready_and_never_booted() {
    let fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    fleet.bmcs.with("h1.bmc.example", |b| b.on = true);
    fleet.until_host("h1", 5, HostState::Available).await;
    assert_eq!(adopt(&fleet, "h1", &machine("m1")).await.status, StatusCode::CREATED);
    let host = fleet.until_host("h1", 60, HostState::Ready).await;
    assert_eq!(host.spec.consumer_ref.unwrap().name, "m1");
    let installed = fleet.until_phase("m1", 60, MachinePhase::Provisioned).await;
    assert_eq!(installed.spec.provider_id, Some(ProviderId::of(&key("h1"))));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let touched = fleet.bmc("h1", |b| b.log.iter().any(|l| l != "clear"));
    assert!(!touched, "neither booted nor switched");
    let history = fleet.store.history(&key("h1")).await.unwrap();
    assert!(history.iter().any(|entry| entry.event == "Adopted"), "{history:?}");

    // Asked again, nothing changes; asked for another machine, it is refused.
    assert_eq!(adopt(&fleet, "h1", &machine("m1")).await.status, StatusCode::CREATED);
    let other = adopt(&fleet, "h1", &machine("m2")).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert!(other.text().contains("in use by machine m1"), "{}", other.text());
    assert!(fleet.store.get::<Beskar7Machine>(&key("m2")).await.unwrap().is_none(), "nothing is left behind");
}

#[tokio::test(start_paused = true)]
async fn s186_an_adoption_that_was_cut_off_before_its_claim_is_gone_on_with() {
    let fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    fleet.add_host("h2").await;
    fleet.until_host("h2", 5, HostState::Available).await;
    // The machine alone is there: it takes no other host, however many are free.
    let mut waiting: Beskar7Machine = serde_json::from_value(machine("m1")).unwrap();
    waiting.spec.provider_id = Some(ProviderId::of(&key("h1")));
    fleet.store.create(waiting).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    for host in fleet.store.list::<PhysicalHost>(None).await.unwrap() {
        assert!(host.spec.consumer_ref.is_none(), "{}", host.metadata.name);
    }
    assert_eq!(adopt(&fleet, "h1", &machine("m1")).await.status, StatusCode::CREATED);
    fleet.until_host("h1", 60, HostState::Ready).await;
    fleet.until_phase("m1", 60, MachinePhase::Provisioned).await;
}

#[tokio::test(start_paused = true)]
async fn hosts_in_use_and_machines_of_another_host_are_not_adopted() {
    let fleet = Fleet::start().await;
    fleet.deploying("h1", "m1").await;
    let in_use = adopt(&fleet, "h1", &machine("m2")).await;
    assert_eq!(in_use.status, StatusCode::CONFLICT);
    assert_eq!(adopt(&fleet, "none", &machine("m2")).await.status, StatusCode::NOT_FOUND);
    fleet.add_host("h2").await;
    fleet.until_host("h2", 5, HostState::Available).await;
    let taken = adopt(&fleet, "h2", &machine("m1")).await;
    assert_eq!(taken.status, StatusCode::CONFLICT);
    assert!(taken.text().contains("machine m1 exists already"), "{}", taken.text());
    let mut elsewhere = machine("m2");
    elsewhere["spec"]["providerID"] = json!("b7://default/h1");
    assert_eq!(adopt(&fleet, "h2", &elsewhere).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let host: PhysicalHost = fleet.store.get(&key("h2")).await.unwrap().unwrap();
    assert!(host.spec.consumer_ref.is_none());
}
