//! `farrier delete` and `farrier release`.

use clap::Args;
use farrier_shared::contract::Name;
use farrier_shared::lifecycle::host_view;
use farrier_shared::resource::{Beskar7Machine, PhysicalHost};

use super::client::{Client, item};
use super::failure::Failure;
use super::output::{Done, DoneFormat, Output};
use crate::admin::Kind;

/// Delete an object.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  farrier delete machine web-1\n  farrier delete host rack1-u7\n\nDeleting a machine powers its host off and makes the host available again;\nuser-data that `farrier provision` stored for it goes too. Deleting a host\nneither touches its power nor its disks."
)]
pub(crate) struct DeleteArgs {
    /// host, machine or secret
    kind: Kind,
    /// Its name
    name: Name,
    /// Delete a host although a machine has it: the machine goes and takes another
    #[arg(long)]
    force: bool,
    /// How to tell what was done
    #[arg(short, long, value_enum, default_value_t)]
    output: DoneFormat,
}

/// Release a host.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  farrier release rack1-u7    # by host\n  farrier release web-1       # by machine\n\nThe host is powered off and becomes available; its disks stay as they are.\nUser-data that `farrier provision` stored for the machine goes with it."
)]
pub(crate) struct ReleaseArgs {
    /// The machine, or the host it has
    name: Name,
    /// How to tell what was done
    #[arg(short, long, value_enum, default_value_t)]
    output: DoneFormat,
}

pub(super) async fn delete(
    client: &Client,
    namespace: &Name,
    args: &DeleteArgs,
    output: &Output,
) -> Result<(), Failure> {
    if args.kind == Kind::Host && !args.force {
        let host: PhysicalHost = client.get(&item(namespace, Kind::Host, &args.name)).await?;
        if let Some(machine) = host_view::consumer(&host) {
            let name = &args.name;
            let hint =
                format!("`farrier release {name}` first; with --force the machine looks for another host");
            return Err(Failure::failed(format!("host {name} is in use by machine {machine}"), hint));
        }
    }
    client.delete(&item(namespace, args.kind, &args.name)).await?;
    let done = Done { kind: args.kind.to_string(), namespace, name: &args.name, result: "deleted" };
    output.done(args.output, &done, &format!("{}/{} deleted", args.kind, args.name))
}

pub(super) async fn release(
    client: &Client,
    namespace: &Name,
    args: &ReleaseArgs,
    output: &Output,
) -> Result<(), Failure> {
    let by_host = match client.get::<PhysicalHost>(&item(namespace, Kind::Host, &args.name)).await {
        Ok(host) => Some(host),
        Err(Failure::NotFound { .. }) => None,
        Err(other) => return Err(other),
    };
    let machine = match by_host.as_ref().map(host_view::consumer) {
        Some(Some(machine)) => machine,
        Some(None) => {
            let hint = "nothing to do; see `farrier get hosts`";
            return Err(Failure::failed(format!("host {} is not claimed by any machine", args.name), hint));
        }
        None => {
            client.get::<Beskar7Machine>(&item(namespace, Kind::Machine, &args.name)).await?.metadata.name
        }
    };
    match client.delete(&item(namespace, Kind::Machine, &machine)).await {
        Err(Failure::NotFound { .. }) if by_host.is_some() => {
            let problem = format!("host {} is claimed by machine {machine}, which does not exist", args.name);
            let hint = format!(
                "`farrier delete host {} --force` and apply it again; its disks stay as they are",
                args.name
            );
            return Err(Failure::failed(problem, hint));
        }
        deleted => deleted?,
    }
    let done = Done { kind: Kind::Machine.to_string(), namespace, name: &machine, result: "deleted" };
    let text = format!("machine/{machine} deleted; its host becomes available when it is powered off");
    output.done(args.output, &done, &text)
}
