//! `farrier get`.

use std::io::Write as _;

use clap::Args;
use farrier_shared::contract::{Name, Time};
use farrier_shared::lifecycle::host_view;
use farrier_shared::resource::{
    Beskar7Machine, HostState, MachinePhase, ObjectMeta, PhysicalHost, condition,
};
use serde::Deserialize;

use super::client::{Client, collection, item};
use super::failure::Failure;
use super::output::{Format, Output, printable};
use super::table::{WIDTH, age, render};
use crate::admin::{Kind, SecretView};
use crate::clock::SystemClock;

/// List objects, or show one.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  farrier get hosts\n  farrier get hosts -A\n  farrier get host rack1-u7 --output yaml\n  farrier get machines --output json\n\nSecrets are shown by key and size, never by value."
)]
pub(crate) struct GetArgs {
    /// hosts, machines or secrets
    kind: Kind,
    /// Name of one object
    name: Option<Name>,
    /// Objects of every namespace
    #[arg(short = 'A', long, conflicts_with = "name")]
    all_namespaces: bool,
    /// How to show them
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Debug, Deserialize)]
struct Items {
    items: Vec<serde_json::Value>,
}

pub(super) async fn get(
    client: &Client,
    namespace: &Name,
    args: &GetArgs,
    output: &Output,
) -> Result<(), Failure> {
    let items = match &args.name {
        Some(name) => {
            let object: serde_json::Value = client.get(&item(namespace, args.kind, name)).await?;
            if args.output != Format::Table {
                return output.value(&object, args.output);
            }
            vec![object]
        }
        None => {
            let path = if args.all_namespaces {
                format!("/apis/v1/{}", args.kind.segment())
            } else {
                collection(namespace, args.kind)
            };
            client.get::<Items>(&path).await?.items
        }
    };
    if args.output != Format::Table {
        return output.value(&serde_json::json!({ "items": items }), args.output);
    }
    if items.is_empty() {
        // Not on standard output, so that a script sees an empty list.
        let place = if args.all_namespaces { "any namespace" } else { namespace.as_str() };
        let _ = writeln!(std::io::stderr(), "no {} in {place}", args.kind.segment());
        return Ok(());
    }
    for line in table(args, items, output)? {
        output.line(line)?;
    }
    Ok(())
}

fn typed<T: serde::de::DeserializeOwned>(items: Vec<serde_json::Value>) -> Result<Vec<T>, Failure> {
    let hint = "use the farrier command of the controller's version, or --output json";
    let read = |value| {
        serde_json::from_value(value).map_err(|_| Failure::failed("the answer is not understood", hint))
    };
    items.into_iter().map(read).collect()
}

fn table(args: &GetArgs, items: Vec<serde_json::Value>, output: &Output) -> Result<Vec<String>, Failure> {
    let now = SystemClock::shared().now();
    let mut states = Vec::new();
    let (head, rows): (Vec<&str>, Vec<(ObjectMeta, Vec<String>)>) = match args.kind {
        Kind::Host => {
            let hosts: Vec<PhysicalHost> = typed(items)?;
            states = hosts.iter().map(|h| h.status.state).collect();
            let head = vec!["NAME", "STATE", "MACHINE", "POWER", "AGE", "MESSAGE"];
            (head, hosts.into_iter().map(|h| (h.metadata.clone(), host_row(&h, now))).collect())
        }
        Kind::Machine => {
            let machines: Vec<Beskar7Machine> = typed(items)?;
            let head = vec!["NAME", "PHASE", "HOST", "AGE", "MESSAGE"];
            (head, machines.into_iter().map(|m| (m.metadata.clone(), machine_row(&m, now))).collect())
        }
        Kind::Secret => {
            let secrets: Vec<SecretView> = typed(items)?;
            let head = vec!["NAME", "AGE", "KEYS"];
            (head, secrets.into_iter().map(|s| (s.metadata.clone(), secret_row(&s, now))).collect())
        }
    };
    let (mut head, mut state_column) = (head, 1);
    let rows: Vec<Vec<String>> = if args.all_namespaces {
        head.insert(0, "NAMESPACE");
        state_column += 1;
        rows.into_iter()
            .map(|(meta, row)| std::iter::once(meta.namespace.to_string()).chain(row).collect())
            .collect()
    } else {
        rows.into_iter().map(|(_, row)| row).collect()
    };
    let width = output.is_terminal().then_some(WIDTH);
    Ok(render(&head, &rows, width, |row, column, cell| match states.get(row) {
        Some(state) if column == state_column => output.state(*state, 0),
        _ => cell,
    }))
}

fn since(meta: &ObjectMeta, now: Time) -> String {
    meta.creation_timestamp.map(|t| age(now.since(t).as_secs())).unwrap_or_default()
}

fn host_row(host: &PhysicalHost, now: Time) -> Vec<String> {
    let state =
        if host.status.state == HostState::New { "New".to_owned() } else { host.status.state.to_string() };
    vec![
        host.metadata.name.to_string(),
        state,
        host_view::consumer(host).map(|n| n.to_string()).unwrap_or_default(),
        printable(&host.status.observed_power_state),
        since(&host.metadata, now),
        printable(&host.status.error_message),
    ]
}

fn machine_row(machine: &Beskar7Machine, now: Time) -> Vec<String> {
    let phase = machine.status.phase.map_or("", phase_text);
    let host = machine.spec.provider_id.as_ref().map(|id| id.host().name.to_string());
    let told = condition::get(&machine.status.conditions, "InfrastructureReady");
    let told = told.or_else(|| condition::get(&machine.status.conditions, "PhysicalHostAssociated"));
    vec![
        machine.metadata.name.to_string(),
        phase.to_owned(),
        host.or_else(|| machine.spec.host_name.as_ref().map(Name::to_string)).unwrap_or_default(),
        since(&machine.metadata, now),
        told.map(|c| printable(&c.message)).unwrap_or_default(),
    ]
}

/// A phase as in YAML.
pub(super) fn phase_text(phase: MachinePhase) -> &'static str {
    match phase {
        MachinePhase::Pending => "Pending",
        MachinePhase::Inspecting => "Inspecting",
        MachinePhase::Provisioning => "Provisioning",
        MachinePhase::Provisioned => "Provisioned",
        MachinePhase::Failed => "Failed",
    }
}

fn secret_row(secret: &SecretView, now: Time) -> Vec<String> {
    let keys: Vec<String> = secret.data_sizes.iter().map(|(key, size)| format!("{key} ({size} B)")).collect();
    vec![secret.metadata.name.to_string(), since(&secret.metadata, now), keys.join(", ")]
}
