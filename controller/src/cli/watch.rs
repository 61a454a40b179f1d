//! `farrier watch`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use farrier_shared::contract::Name;
use farrier_shared::lifecycle::failure;
use farrier_shared::resource::{HostState, MachinePhase, PhysicalHost};
use tokio::time::Instant;

use super::client::{Client, item};
use super::failure::Failure;
use super::output::Output;
use super::watch_view::View;
use crate::admin::{HostLine, Kind};

/// How long a controller may be away, for a restart, before the watch gives up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two tries to reach it.
const RETRY: Duration = Duration::from_secs(1);
/// Longest line of the stream, in bytes.
const MAX_LINE: usize = 1 << 20;

/// How the watch shows changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum WatchFormat {
    /// Lines and a progress bar, for people.
    #[default]
    Table,
    /// One JSON object a line and change.
    Json,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Until {
    /// Free to be claimed.
    Available,
    /// Claimed.
    InUse,
    /// Booting or inspecting.
    Inspecting,
    /// Writing the operating system.
    Deploying,
    /// Installed.
    Ready,
}

/// Follow hosts live.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  farrier watch\n  farrier watch rack1-u7\n  farrier watch rack1-u7 --until Ready --timeout 1h\n  farrier watch --output json | jq .state"
)]
pub(crate) struct WatchArgs {
    /// One host [default: every host of the namespace]
    host: Option<Name>,
    /// Exit 0 when the host reaches this state, 1 when its run fails
    #[arg(long, value_enum, ignore_case = true, requires = "host")]
    until: Option<Until>,
    /// Exit 1 after this long, such as 90m
    #[arg(long, value_parser = crate::serve::duration)]
    timeout: Option<Duration>,
    /// How to show changes
    #[arg(short, long, value_enum, default_value_t)]
    output: WatchFormat,
}

/// A watch to follow.
#[derive(Debug)]
pub(super) struct Follow {
    pub(super) host: Option<Name>,
    pub(super) until: Option<HostState>,
    pub(super) timeout: Option<Duration>,
    pub(super) json: bool,
}

pub(super) async fn watch(
    client: &Client,
    namespace: &Name,
    args: &WatchArgs,
    output: &Output,
) -> Result<(), Failure> {
    if let Some(host) = &args.host {
        // An unknown host is an error now, not silence for ever.
        client.get::<PhysicalHost>(&item(namespace, Kind::Host, host)).await?;
    }
    let until = args.until.map(|until| match until {
        Until::Available => HostState::Available,
        Until::InUse => HostState::InUse,
        Until::Inspecting => HostState::Inspecting,
        Until::Deploying => HostState::Deploying,
        Until::Ready => HostState::Ready,
    });
    let json = args.output == WatchFormat::Json;
    follow(client, namespace, &Follow { host: args.host.clone(), until, timeout: args.timeout, json }, output)
        .await
}

/// Follows until the state is reached, the run fails, the time is up, or the reader leaves.
pub(super) async fn follow(
    client: &Client,
    namespace: &Name,
    follow: &Follow,
    output: &Output,
) -> Result<(), Failure> {
    let mut view = View::new(output, follow.json);
    let following = stream(client, namespace, follow, &mut view);
    match follow.timeout {
        None => following.await,
        Some(limit) => tokio::time::timeout(limit, following).await.unwrap_or_else(|_| {
            let hint = "the controller goes on by itself; watch again, or see `farrier describe host`";
            Err(Failure::failed(format!("not there after {limit:?}"), hint))
        }),
    }
}

async fn stream(
    client: &Client,
    namespace: &Name,
    follow: &Follow,
    view: &mut View<'_>,
) -> Result<(), Failure> {
    let mut path = format!("/apis/v1/watch?namespace={namespace}");
    if let Some(host) = &follow.host {
        path.push_str(&format!("&host={host}"));
    }
    let mut seen = Instant::now();
    let mut connected_once = false;
    loop {
        match client.stream(&path).await {
            Ok(mut response) => {
                connected_once = true;
                let mut pending: Vec<u8> = Vec::new();
                while let Ok(Some(chunk)) = response.chunk().await {
                    seen = Instant::now();
                    pending.extend_from_slice(&chunk);
                    while let Some(end) = pending.iter().position(|b| *b == b'\n') {
                        let line: Vec<u8> = pending.drain(..=end).collect();
                        let Ok(line) = serde_json::from_slice::<HostLine>(&line) else { continue };
                        view.show(&line)?;
                        if let Some(end) = verdict(&line, follow.until) {
                            view.finish();
                            return end;
                        }
                    }
                    if pending.len() > MAX_LINE {
                        return Err(Failure::failed(
                            "the controller sent an endless line",
                            "restart the controller",
                        ));
                    }
                }
                // Cut off: the controller restarts, or we were too slow.
            }
            Err(failure @ Failure::Unreachable { .. }) if !connected_once || seen.elapsed() > PATIENCE => {
                return Err(failure);
            }
            Err(Failure::Unreachable { .. }) => {}
            Err(other) => return Err(other),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Whether this line ends the wait, and how.
fn verdict(line: &HostLine, until: Option<HostState>) -> Option<Result<(), Failure>> {
    let until = until?;
    let name = &line.name;
    if line.deleted {
        let hint = "somebody deleted it; apply it again to have it back";
        return Some(Err(Failure::failed(format!("host {name} is gone"), hint)));
    }
    if line.state == until {
        return Some(Ok(()));
    }
    // A BMC that does not answer heals by itself; a failed run or machine does not, and without a machine no host
    // gets beyond being free.
    let never = line.machine.is_none() && until != HostState::Available;
    let run_failed = line.state == HostState::Error && (failure::is_run_failure(&line.message) || never);
    if run_failed || line.machine_phase == Some(MachinePhase::Failed) {
        let why = if line.message.is_empty() { "no reason given" } else { &line.message };
        let mut hint = format!("see `farrier describe host {name}`");
        if line.machine.is_some() {
            hint.push_str(&format!("; then `farrier release {name}` and provision again"));
        }
        return Some(Err(Failure::failed(
            format!("host {name} failed: {}", super::output::printable(why)),
            hint,
        )));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(state: HostState, message: &str, phase: Option<MachinePhase>) -> HostLine {
        let key = farrier_shared::contract::HostKey::new("default".parse().unwrap(), "h".parse().unwrap());
        let machine = phase.map(|_| "m".to_owned());
        HostLine {
            state,
            message: message.to_owned(),
            machine,
            machine_phase: phase,
            deleted: false,
            ..HostLine::gone(&key)
        }
    }

    #[test]
    fn the_wait_ends_with_the_state_or_with_a_failure_that_does_not_heal() {
        let failed = "inspector reported deploy failure: disk gone";
        let pending = Some(MachinePhase::Pending);
        let table = [
            (line(HostState::Ready, "", Some(MachinePhase::Provisioning)), Some(true)),
            (line(HostState::Deploying, "", Some(MachinePhase::Provisioning)), None),
            (line(HostState::Error, failed, Some(MachinePhase::Provisioning)), Some(false)),
            (line(HostState::Error, "BMC unreachable (timed out); retrying every 15s", pending), None),
            (line(HostState::Error, "BMC unreachable (timed out); retrying every 15s", None), Some(false)),
            (line(HostState::Inspecting, "insufficient memory", Some(MachinePhase::Failed)), Some(false)),
            (line(HostState::Available, "", pending), None),
        ];
        for (line, expected) in table {
            let got = verdict(&line, Some(HostState::Ready)).map(|r| r.is_ok());
            assert_eq!(got, expected, "{line:?}");
            assert!(verdict(&line, None).is_none());
        }
        let away = line(HostState::Error, "BMC unreachable (timed out); retrying every 15s", None);
        assert!(verdict(&away, Some(HostState::Available)).is_none(), "it becomes free when its BMC is back");
    }
}
