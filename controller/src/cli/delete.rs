//! `farrier delete` and `farrier release`.

use clap::Args;
use farrier_shared::contract::Name;
use farrier_shared::lifecycle::host_view;
use farrier_shared::resource::{Beskar7Machine, PhysicalHost};

use super::client::{Client, item};
use super::failure::Failure;
use super::output::{Done, DoneFormat, Output};
use crate::admin::Kind;

const DELETE_EXAMPLES: &str = "\
Examples:
  farrier delete machine web-1
  farrier delete machine web-1 --force-release   # its host's BMC is dead
  farrier delete host rack1-u7

Deleting a machine has its host told to power off and makes the host available
again, whether it does so or not; `farrier describe host` says when its BMC did
not take the order. User-data that `farrier provision` stored for the machine
goes too. Deleting a host neither touches its power nor its disks.";

const RELEASE_EXAMPLES: &str = "\
Examples:
  farrier release rack1-u7    # by host
  farrier release web-1       # by machine
  farrier release web-1 --force-release    # the host's BMC is dead

The host is told to power off and becomes available, whether it does so or not;
`farrier describe host` says when its BMC did not take the order. Its disks stay
as they are. User-data that `farrier provision` stored for the machine goes with
it.";

/// Delete an object.
#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub(crate) struct DeleteArgs {
    /// host, machine or secret
    kind: Kind,
    /// Its name
    name: Name,
    /// Delete a host although a machine has it: the machine goes and takes another
    #[arg(long)]
    force: bool,
    /// Let go of a machine's host without asking its BMC, also when the deletion has begun
    #[arg(long)]
    force_release: bool,
    /// How to tell what was done
    #[arg(short, long, value_enum, default_value_t)]
    output: DoneFormat,
}

/// Release a host.
#[derive(Debug, Args)]
#[command(after_help = RELEASE_EXAMPLES)]
pub(crate) struct ReleaseArgs {
    /// The machine, or the host it has
    name: Name,
    /// Let go of the host without asking its BMC, also when the release has begun
    #[arg(long)]
    force_release: bool,
    /// How to tell what was done
    #[arg(short, long, value_enum, default_value_t)]
    output: DoneFormat,
}

/// What is to be deleted, and how a machine's host is let go.
fn path(namespace: &Name, kind: Kind, name: &Name, force_release: bool) -> String {
    let path = item(namespace, kind, name);
    if force_release { format!("{path}?forceRelease=true") } else { path }
}

pub(super) async fn delete(
    client: &Client,
    namespace: &Name,
    args: &DeleteArgs,
    output: &Output,
) -> Result<(), Failure> {
    if args.force_release && args.kind != Kind::Machine {
        let hint = "leave it out; `farrier delete host --force` deletes a host that is in use";
        return Err(Failure::invalid("--force-release", "only machines have a host", hint));
    }
    if args.kind == Kind::Host && !args.force {
        let host: PhysicalHost = client.get(&item(namespace, Kind::Host, &args.name)).await?;
        if let Some(machine) = host_view::consumer(&host) {
            let name = &args.name;
            let hint =
                format!("`farrier release {name}` first; with --force the machine looks for another host");
            return Err(Failure::failed(format!("host {name} is in use by machine {machine}"), hint));
        }
    }
    client.delete(&path(namespace, args.kind, &args.name, args.force_release)).await?;
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
    match client.delete(&path(namespace, Kind::Machine, &machine, args.force_release)).await {
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
    let how = if args.force_release { "is left as it is" } else { "is told to power off" };
    let text = format!("machine/{machine} deleted; its host {how} and becomes available");
    output.done(args.output, &done, &text)
}
