//! Watches: what they tell, and how many there may be.

use super::*;

#[tokio::test]
async fn a_watch_tells_every_host_and_then_what_changes() {
    use futures_util::StreamExt as _;
    use tower::ServiceExt as _;

    let fixture = Fixture::in_state(HostState::Deploying).await;
    let progress = Progress::new();
    let clock = Arc::new(fixture.clock.clone());
    let info = Arc::new(Info {
        version: String::new(),
        url_base: String::new(),
        http_url_base: String::new(),
        inspection_image_url: String::new(),
    });
    let (store, progress_of) = (fixture.store.clone(), progress.clone());
    let router = router(Admin { store, progress: progress_of, clock, info, scripts: scripts() });
    let request = Request::builder().uri("/apis/v1/watch?namespace=lab&host=h1").body(Body::empty()).unwrap();
    let mut lines = router.oneshot(request).await.unwrap().into_body().into_data_stream();
    let mut next =
        async || serde_json::from_slice::<HostLine>(&lines.next().await.unwrap().unwrap()).unwrap();
    let first = next().await;
    assert_eq!(
        (first.state, first.machine.as_deref(), first.bytes),
        (HostState::Deploying, Some("m1"), None)
    );
    let event =
        serde_json::from_str(r#"{"event":"Installing","run":"run-0001","step":"write","bytes":5,"total":9}"#)
            .unwrap();
    progress.record(&fixture.key, crate::progress::ProgressEntry { event, at: crate::fixture::start() });
    let second = next().await;
    assert_eq!((second.step.as_deref(), second.bytes, second.total), (Some("write"), Some(5), Some(9)));
    fixture.store.create(host("h2")).await.unwrap();
    fixture.change_host(|host| host.status.state = HostState::Ready).await;
    let third = next().await;
    assert_eq!((third.name.as_str(), third.state, third.step), ("h1", HostState::Ready, None));
    fixture.store.delete::<PhysicalHost>(&fixture.key).await.unwrap();
    assert!(next().await.deleted);
}

#[tokio::test]
async fn a_watch_goes_on_without_a_host_that_is_damaged() {
    use futures_util::StreamExt as _;
    use tower::ServiceExt as _;

    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for name in ["h1", "h2"] {
        store.create(host(name)).await.unwrap();
    }
    let db = rusqlite::Connection::open(dir.path().join("farrier.db")).unwrap();
    db.execute("UPDATE documents SET body = '{}' WHERE name = 'h1'", []).unwrap();
    let request = Request::builder().uri("/apis/v1/watch").body(Body::empty()).unwrap();
    let mut lines = api(&store).oneshot(request).await.unwrap().into_body().into_data_stream();
    let first: HostLine = serde_json::from_slice(&lines.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(first.name.as_str(), "h2");
}

#[tokio::test]
async fn watches_leave_connections_for_commands() {
    use tower::ServiceExt as _;

    let router = api(&Store::in_memory().unwrap());
    let watch = async || {
        let request = Request::builder().uri("/apis/v1/watch").body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap()
    };
    let mut open = Vec::new();
    for _ in 0..watch::MAX_WATCHES {
        open.push(watch().await);
    }
    assert!(open.iter().all(|answer| answer.status() == StatusCode::OK));
    assert_eq!(watch().await.status(), StatusCode::SERVICE_UNAVAILABLE);
    open.pop();
    // Its task notices that the client has left.
    while watch().await.status() != StatusCode::OK {
        tokio::task::yield_now().await;
    }
    const { assert!(watch::MAX_WATCHES < crate::listen::Limits::ADMIN.connections) };
}
