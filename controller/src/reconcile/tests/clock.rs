//! The machine's clock is set while hosts have runs.

use std::time::Duration;

use farrier_shared::resource::HostState;

use super::fleet::Fleet;

const YEAR: i64 = 365 * 24 * 3600;

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_ends_no_run_and_keeps_none_alive() {
    for seconds in [50 * YEAR, -5 * YEAR, 7200, -7200] {
        let fleet = Fleet::start().await;
        fleet.deploying("h1", "m1").await;
        fleet.hands.set(seconds);
        tokio::time::sleep(Duration::from_secs(19 * 60)).await;
        assert_eq!(fleet.host("h1").await.status.state, HostState::Deploying, "{seconds}");
        let (now, credentials) = (fleet.clock.now(), fleet.credentials("h1").await);
        let left = credentials.token_expires_at.since(now);
        assert!((30 * 60..60 * 60).contains(&left.as_secs()), "{seconds}: the token has {left:?} left");
        let began = fleet.host("h1").await.status.deploying_timestamp.unwrap();
        assert!((19 * 60..21 * 60).contains(&now.since(began).as_secs()), "{seconds}: {began}, now {now}");
        fleet.until_host("h1", 180, HostState::Error).await;
    }
}

#[tokio::test(start_paused = true)]
async fn hosts_without_a_run_are_left_alone_when_the_clock_is_set() {
    let fleet = Fleet::start().await;
    fleet.add_host("h1").await;
    let host = fleet.until_host("h1", 5, HostState::Available).await;
    fleet.hands.set(-YEAR);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(fleet.host("h1").await.metadata.resource_version, host.metadata.resource_version);
}
