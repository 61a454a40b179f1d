//! What agents fetch.

use super::*;

#[tokio::test]
async fn user_data_is_served_raw_and_never_cached() {
    let rig = Rig::in_state(HostState::Deploying).await;
    let answer = rig.call("GET", "bootstrap", Some(&rig.bearer()), "").await;
    assert_eq!((answer.status, answer.body.as_slice()), (StatusCode::OK, USER_DATA));
    assert_eq!(answer.headers["content-type"], "application/octet-stream");
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert_eq!(answer.headers["pragma"], "no-cache");
}

#[tokio::test]
async fn s112_user_data_that_cannot_be_found_is_not_found_whatever_the_cause() {
    let secret_key = key("lab", "m1-user-data");
    for cause in 0..5 {
        let rig = Rig::in_state(HostState::Deploying).await;
        let store = &rig.fixture.store;
        let mut machine: Beskar7Machine = store.get(&key("lab", "m1")).await.unwrap().unwrap();
        let mut secret: Secret = store.get(&secret_key).await.unwrap().unwrap();
        match cause {
            0 => store.delete::<Secret>(&secret_key).await.unwrap(),
            1 => store.delete::<Beskar7Machine>(&key("lab", "m1")).await.unwrap(),
            2 => {
                machine.spec.bootstrap = None;
                store.update(&machine).await.unwrap();
            }
            3 => {
                secret.data.clear();
                store.update(&secret).await.unwrap();
            }
            _ => {
                secret
                    .data
                    .insert("value".to_owned(), farrier_shared::resource::secret::SecretBytes::new(vec![]));
                store.update(&secret).await.unwrap();
            }
        }
        let answer = rig.call("GET", "bootstrap", Some(&rig.bearer()), "").await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (StatusCode::NOT_FOUND, "not found"),
            "cause {cause}"
        );
    }
    let rig = Rig::in_state(HostState::Deploying).await;
    let mut secret: Secret = rig.fixture.store.get(&secret_key).await.unwrap().unwrap();
    let large = farrier_shared::resource::secret::SecretBytes::new(vec![b'x'; (1 << 20) + 1]);
    secret.data.insert("value".to_owned(), large);
    rig.fixture.store.update(&secret).await.unwrap();
    let answer = rig.call("GET", "bootstrap", Some(&rig.bearer()), "").await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn s107_hardware_that_may_yet_be_refused_gets_no_user_data() {
    for (state, status) in [
        (HostState::InUse, StatusCode::NOT_FOUND),
        (HostState::Inspecting, StatusCode::NOT_FOUND),
        (HostState::Deploying, StatusCode::OK),
    ] {
        let rig = Rig::in_state(state).await;
        let ask = || async { rig.call("GET", "bootstrap", Some(&rig.bearer()), "").await };
        assert_eq!(ask().await.status, StatusCode::OK, "{state}: nothing is asked of the hardware");
        let store = &rig.fixture.store;
        let mut machine: Beskar7Machine = store.get(&key("lab", "m1")).await.unwrap().unwrap();
        machine.spec.hardware_requirements =
            Some(serde_json::from_value(serde_json::json!({ "minDiskGB": 100 })).unwrap());
        let mut machine = store.update(&machine).await.unwrap();
        assert_eq!(ask().await.status, status, "{state}");
        machine.status.phase = Some(farrier_shared::resource::MachinePhase::Failed);
        store.update(&machine).await.unwrap();
        let refused = ask().await;
        assert_eq!(
            (refused.status, refused.text().as_str()),
            (StatusCode::NOT_FOUND, "not found"),
            "{state}"
        );
    }
}
