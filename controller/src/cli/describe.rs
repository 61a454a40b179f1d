//! `farrier describe host`.

use clap::{Args, ValueEnum};
use farrier_shared::contract::{Name, Time};
use farrier_shared::lifecycle::{HistoryEntry, host_view};
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost, condition::Truth};
use serde_json::json;

use super::client::{Client, item};
use super::failure::Failure;
use super::get::phase_text;
use super::hardware;
use super::output::{Format, Output, printable};
use super::table::age;
use super::watch_view::bytes_text;
use super::wrap;
use crate::admin::Kind;
use crate::clock::SystemClock;
use crate::progress::ProgressEntry;

/// What can be described.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Described {
    /// A host.
    Host,
}

/// Show everything about one host.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  farrier describe host rack1-u7\n  farrier describe host rack1-u7 --output json | jq .history"
)]
pub(crate) struct DescribeArgs {
    /// host
    #[arg(value_enum)]
    kind: Described,
    /// Its name
    name: Name,
    /// How to show it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Whether firmware has come for the present run's boot script: what to know first of a host that does not report.
fn boot_script(host: &PhysicalHost, now: Time) -> String {
    let waits = matches!(host.status.state, HostState::InUse | HostState::Inspecting);
    let Some(record) = host.status.bootstrap.as_ref().filter(|b| waits && !b.boot_nonce_hash.is_empty())
    else {
        return String::new();
    };
    match (record.boot_nonce_consumed_at, record.boot_nonce_expires_at) {
        (Some(at), _) if record.boot_nonce_consumed_hash == record.boot_nonce_hash => {
            format!("fetched {} ago", age(now.since(at).as_secs()))
        }
        (_, Some(end)) if now < end => format!("not fetched yet, and may be until {end}"),
        _ => "not fetched, and no longer to be had".to_owned(),
    }
}

pub(super) async fn describe(
    client: &Client,
    namespace: &Name,
    args: &DescribeArgs,
    output: &Output,
) -> Result<(), Failure> {
    let Described::Host = args.kind;
    let path = item(namespace, Kind::Host, &args.name);
    let host: PhysicalHost = client.get(&path).await?;
    let history: Vec<HistoryEntry> = client.get(&format!("{path}/history")).await?;
    let progress: Option<ProgressEntry> = client.get(&format!("{path}/progress")).await?;
    let machine: Option<Beskar7Machine> = match host_view::consumer(&host) {
        Some(name) => match client.get(&item(namespace, Kind::Machine, &name)).await {
            Ok(machine) => Some(machine),
            Err(Failure::NotFound { .. }) => None,
            Err(other) => return Err(other),
        },
        None => None,
    };
    if args.output != Format::Table {
        let whole = json!({ "host": host, "machine": machine, "progress": progress, "history": history });
        return output.value(&whole, args.output);
    }
    let terminal = output.is_terminal();
    let write = |lines: Vec<String>| lines.iter().try_for_each(|line| output.line(line));
    let field = |name: &str, value: &str| {
        if value.is_empty() { Ok(()) } else { write(wrap::field(name, &printable(value), terminal)) }
    };
    let status = &host.status;
    field("Name", &format!("{}/{}", host.metadata.namespace, host.metadata.name))?;
    output.line(format!("{:<14}{}", "State", output.state(status.state, 0)))?;
    field("Message", &status.error_message)?;
    field("Power", &status.observed_power_state)?;
    field("BMC", &host.spec.redfish_connection.address.authority())?;
    if let Some(hardware) = &status.hardware_details {
        field(
            "Hardware",
            &format!("{} {} {}", hardware.manufacturer, hardware.model, hardware.serial_number),
        )?;
    }
    let addresses: Vec<&str> = status.addresses.iter().map(|a| a.address.as_str()).collect();
    field("Addresses", &addresses.join(", "))?;
    if let Some(report) = &status.inspection_report {
        for (heading, line) in hardware::lines(report) {
            field(heading, &line)?;
        }
    }
    field("Run", status.run.as_deref().unwrap_or_default())?;
    if let Some(machine) = &machine {
        let phase = machine.status.phase.map_or("", phase_text);
        field("Machine", &format!("{} {phase}", machine.metadata.name))?;
        field("Image", machine.spec.target_image_url.as_str())?;
    } else if let Some(name) = host_view::consumer(&host) {
        field("Machine", &format!("{name} does not exist"))?;
    }
    let now = SystemClock::shared().now();
    field("Boot script", &boot_script(&host, now))?;
    if let Some(ProgressEntry { event, at }) = &progress {
        let step = event.step.as_deref().unwrap_or_default();
        let amount = event.bytes.map(|done| bytes_text(done, event.total)).unwrap_or_default();
        field("Agent", &format!("{:?} {step} {amount} {} ({at})", event.event, event.message))?;
    }
    let conditions = status.conditions.iter().chain(machine.iter().flat_map(|m| &m.status.conditions));
    for (n, c) in conditions.enumerate() {
        let truth = match c.status {
            Truth::True => "yes",
            Truth::False => "no",
            Truth::Unknown => "?",
        };
        let head = if n == 0 { "Conditions" } else { "" };
        let start = format!("{head:<14}{:<26}{truth:<4}{}", printable(&c.kind), printable(&c.reason));
        write(wrap::columns(&start, &printable(&c.message), terminal))?;
    }
    for (n, entry) in history.iter().enumerate() {
        let head = if n == 0 { "History" } else { "" };
        let ago = age(now.since(entry.at).as_secs());
        let change =
            if entry.from == entry.to { String::new() } else { format!(" {} → {}", entry.from, entry.to) };
        let start = format!("{head:<14}{ago:>5}  {} {}{change}", entry.actor, entry.event);
        write(wrap::columns(&start, &printable(&entry.reason), terminal))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_firmware_came_for_its_script_is_told_while_it_matters() {
        let mut host = crate::fixture::host("h1");
        let now = crate::fixture::start();
        assert_eq!(boot_script(&host, now), "");
        host.status.state = HostState::Inspecting;
        let record = host.status.bootstrap.get_or_insert_default();
        record.boot_nonce_hash = "ours".to_owned();
        record.boot_nonce_expires_at = Some(now + std::time::Duration::from_secs(60));
        // Of an earlier run.
        record.boot_nonce_consumed_at = Some(now);
        record.boot_nonce_consumed_hash = "theirs".to_owned();
        assert_eq!(boot_script(&host, now), "not fetched yet, and may be until 2026-11-29T12:01:00Z");
        let late = now + std::time::Duration::from_secs(60);
        assert_eq!(boot_script(&host, late), "not fetched, and no longer to be had");
        host.status.bootstrap.as_mut().unwrap().boot_nonce_consumed_hash = "ours".to_owned();
        assert_eq!(boot_script(&host, late), "fetched 60s ago");
        host.status.state = HostState::Ready;
        assert_eq!(boot_script(&host, late), "");
    }
}
