//! A clock and its sources made of plain data.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use super::bounds::Heard;
use super::*;

const BOUNDS: Bounds = Bounds { earliest: 1000, latest: 9000, ordered: None };
const WAIT: Duration = Duration::from_millis(50);
const FIRST: &str = "10.0.0.1";
const SECOND: &str = "10.0.0.2";

/// What a time server does.
#[derive(Clone, Copy)]
enum Server {
    Says(Unix),
    IsUnsure,
    IsSilent,
}

struct Fakes {
    servers: BTreeMap<IpAddr, Server>,
    controller: Option<Unix>,
}

impl Fakes {
    fn new(servers: &[(&str, Server)], controller: Option<Unix>) -> Self {
        Self {
            servers: servers.iter().map(|(ip, server)| (ip.parse().unwrap(), *server)).collect(),
            controller,
        }
    }
}

impl Sources for Fakes {
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        if name == "time.lab" { Ok(vec![SECOND.parse().unwrap()]) } else { Err("no such name".to_owned()) }
    }

    async fn ntp(&self, server: IpAddr) -> Result<Unix, String> {
        match self.servers.get(&server) {
            Some(Server::Says(time)) => Ok(*time),
            Some(Server::IsUnsure) => Err("the server does not know the time".to_owned()),
            Some(Server::IsSilent) | None => std::future::pending().await,
        }
    }

    async fn controller(&self, _: &Bounds) -> Result<Heard, String> {
        self.controller.map(|time| Heard { time, valid_since: 3000 }).ok_or_else(|| "no way to it".to_owned())
    }
}

/// A clock that may refuse to be set.
struct Fake {
    time: Mutex<Unix>,
    refuses: bool,
}

impl Clock for Fake {
    fn now(&self) -> Unix {
        *self.time.lock().unwrap()
    }

    fn set(&self, time: Unix) -> io::Result<()> {
        if self.refuses {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        *self.time.lock().unwrap() = time;
        Ok(())
    }
}

/// Where the time was learnt, and what a clock at `time` says afterwards.
async fn settled(time: Unix, fakes: &Fakes, given: &[&str], named: &[&str]) -> (Option<Source>, Unix) {
    let clock = Fake { time: Mutex::new(time), refuses: false };
    let given: Vec<NtpServer> = given.iter().map(|text| text.parse().unwrap()).collect();
    let named: Vec<IpAddr> = named.iter().map(|text| text.parse().unwrap()).collect();
    let source = settle_by(&clock, fakes, &BOUNDS, &given, &named, WAIT).await;
    (source, clock.now())
}

#[tokio::test]
async fn the_clock_follows_the_first_believable_time_server() {
    use Server::{IsSilent, IsUnsure, Says};
    let ntp = |text: &str| Some(Source::Ntp(text.parse().unwrap()));
    for (why, servers, given, named, expected) in [
        (
            "the network's",
            [(FIRST, Says(5000)), (SECOND, Says(6000))],
            &[][..],
            &[FIRST][..],
            (ntp(FIRST), 5000),
        ),
        (
            "the operator's before it",
            [(FIRST, Says(5000)), (SECOND, Says(6000))],
            &[SECOND],
            &[FIRST],
            (ntp(SECOND), 6000),
        ),
        (
            "by name",
            [(FIRST, Says(5000)), (SECOND, Says(6000))],
            &["time.lab"],
            &[FIRST],
            (ntp(SECOND), 6000),
        ),
        (
            "a name nobody knows",
            [(FIRST, Says(5000)), (SECOND, Says(6000))],
            &["x.lab"],
            &[FIRST],
            (ntp(FIRST), 5000),
        ),
        (
            "beside a dead one",
            [(FIRST, IsSilent), (SECOND, Says(6000))],
            &[],
            &[FIRST, SECOND],
            (ntp(SECOND), 6000),
        ),
        (
            "beside one that is unsure",
            [(FIRST, IsUnsure), (SECOND, Says(6000))],
            &[],
            &[FIRST, SECOND],
            (ntp(SECOND), 6000),
        ),
        (
            "beside one of another age",
            [(FIRST, Says(999)), (SECOND, Says(6000))],
            &[FIRST],
            &[SECOND],
            (ntp(SECOND), 6000),
        ),
        ("back too", [(FIRST, Says(1500)), (SECOND, IsSilent)], &[], &[FIRST], (ntp(FIRST), 1500)),
    ] {
        let fakes = Fakes::new(&servers, Some(8000));
        assert_eq!(settled(2000, &fakes, given, named).await, expected, "{why}");
    }
}

#[tokio::test]
async fn without_a_believable_time_server_the_controller_is_asked() {
    use Server::{IsSilent, Says};
    for (why, clock, servers, controller, expected) in [
        ("none at all", 0, &[][..], Some(5000), (Some(Source::Controller), 5000)),
        ("one that is dead", 0, &[(FIRST, IsSilent)], Some(5000), (Some(Source::Controller), 5000)),
        ("one of another age", 0, &[(FIRST, Says(9001))], Some(5000), (Some(Source::Controller), 5000)),
        ("a clock that may be right", 4000, &[], Some(5000), (None, 4000)),
        ("a controller that is not reached", 0, &[(FIRST, IsSilent)], None, (None, 0)),
    ] {
        assert_eq!(settled(clock, &Fakes::new(servers, controller), &[], &[FIRST]).await, expected, "{why}");
    }
}

#[tokio::test]
async fn a_clock_that_cannot_be_set_ends_nothing_and_one_that_is_right_is_left() {
    let fakes = Fakes::new(&[(FIRST, Server::Says(5000))], None);
    for (time, refuses, after) in
        [(0, true, 0), (4999, false, 4999), (5001, false, 5001), (4998, false, 5000)]
    {
        let clock = Fake { time: Mutex::new(time), refuses };
        let named = [FIRST.parse().unwrap()];
        let source = settle_by(&clock, &fakes, &BOUNDS, &[], &named, WAIT).await;
        assert_eq!((source, clock.now()), (Some(Source::Ntp(named[0])), after));
    }
}

#[test]
fn the_systems_clock_is_read_and_takes_no_time_it_cannot_tell() {
    assert!(SystemClock.now() > BUILT, "whoever runs this does so after it was built");
    assert_eq!(SystemClock.set(Unix::MAX).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}
