//! `farrier provision`.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use farrier_shared::contract::callback::MAX_BOOTSTRAP_BODY;
use farrier_shared::contract::{Digest, DiskPin, Name, WebUrl};
use farrier_shared::lifecycle::host_view;
use farrier_shared::resource::secret::USER_DATA_OF;
use farrier_shared::resource::{API_VERSION, Beskar7Machine, HostState, MachinePhase, PhysicalHost};
use serde::Deserialize;
use serde_json::json;

use super::agent_option::{self, MachineOption};
use super::apply::read_input;
use super::client::{Client, collection, item};
use super::failure::Failure;
use super::output::{Done, DoneFormat, Output};
use super::watch::{self, Follow};
use crate::admin::{Kind, SecretView};

const EXAMPLES: &str = "\
Examples:
  farrier provision rack1-u7 --image https://images/os.img.zst \\
      --digest sha256:9f86d0… --user-data user-data.yaml --wait
  farrier provision rack1-u7 --image https://images/os.img.zst \\
      --digest sha256:9f86d0… --user-data user-data.yaml \\
      --option verify=readback --option on-failure=reboot

The digest is that of the file as served. Everything on the target disk is lost.";

/// Install an operating system on a host.
#[derive(Debug, Args)]
#[command(
    override_usage = "farrier provision [OPTIONS] --image <URL> --digest <DIGEST>\n                         --user-data <FILE> <HOST>",
    after_help = format!("{EXAMPLES}\n\n{}", agent_option::help())
)]
pub(crate) struct ProvisionArgs {
    /// The host; it must be Available
    host: Name,
    /// URL of the image, http or https
    #[arg(long, value_name = "URL")]
    image: WebUrl,
    /// Digest of the image file as served: sha256: and 64 hex digits
    #[arg(long)]
    digest: Digest,
    /// File with user-data for the machine, `-` for standard input
    #[arg(long, value_name = "FILE")]
    user_data: PathBuf,
    /// Disk to write, such as /dev/sda [default: the smallest that fits]
    #[arg(long)]
    disk: Option<DiskPin>,
    /// Tell the agent more, such as verify=readback; may be given several times, see below for the keys
    #[arg(long = "option", value_name = "KEY=VALUE")]
    options: Vec<MachineOption>,
    /// Name of the machine [default: that of the host]
    #[arg(long)]
    name: Option<Name>,
    /// Where vmlinuz and initrd.img of the inspection image are [default: as the controller says]
    #[arg(long, value_name = "URL")]
    inspection_image_url: Option<WebUrl>,
    /// Follow the installation; exit 0 when the host is Ready, 1 when it failed
    #[arg(long)]
    wait: bool,
    /// Give up waiting after this long, such as 90m
    #[arg(long, value_parser = crate::serve::duration, requires = "wait")]
    timeout: Option<Duration>,
    /// How to tell what was done, and with --wait what happens
    #[arg(short, long, value_enum, default_value_t)]
    output: DoneFormat,
}

#[derive(Debug, Deserialize)]
struct Machines {
    items: Vec<Beskar7Machine>,
}

pub(super) async fn provision(
    client: &Client,
    namespace: &Name,
    args: &ProvisionArgs,
    output: &Output,
) -> Result<(), Failure> {
    let user_data = read_input(&args.user_data, "--user-data")?;
    if user_data.trim().is_empty() || user_data.len() > MAX_BOOTSTRAP_BODY {
        let problem = format!("the file holds {} bytes, expected 1 to {MAX_BOOTSTRAP_BODY}", user_data.len());
        return Err(Failure::invalid("--user-data", problem, "give the file the machine should start with"));
    }
    let options = agent_option::texts(&args.options)?;
    must_be_free(client, namespace, &args.host).await?;
    let inspection = match &args.inspection_image_url {
        Some(url) => url.to_string(),
        None => client.info().await?.inspection_image_url,
    };
    let machine = args.name.clone().unwrap_or_else(|| args.host.clone());
    let secret_name = format!("{machine}-user-data");
    let secret_name: Name = secret_name.parse().map_err(|_| {
        Failure::invalid(
            "--name",
            format!("{secret_name:?} would be too long a name"),
            "give a shorter --name",
        )
    })?;
    match client.get::<Beskar7Machine>(&item(namespace, Kind::Machine, &machine)).await {
        Err(Failure::NotFound { .. }) => {}
        Ok(_) => {
            let hint = format!("choose another --name, or `farrier delete machine {machine}` first");
            return Err(Failure::failed(format!("machine {machine} exists already"), hint));
        }
        Err(other) => return Err(other),
    }
    must_not_replace(client, namespace, &secret_name, &machine).await?;
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret_name,
            "namespace": namespace,
            "annotations": { (USER_DATA_OF): machine },
        },
        "data": { "value": STANDARD.encode(user_data.as_bytes()) },
    });
    let mut spec = json!({
        "inspectionImageURL": inspection,
        "targetImageURL": args.image,
        "targetImageDigest": args.digest,
        "hostName": args.host,
        "bootstrap": { "dataSecretName": secret_name },
    });
    if let Some(disk) = &args.disk {
        spec["targetDisk"] = json!(disk);
    }
    if !options.is_empty() {
        spec["agentOptions"] = json!(options);
    }
    let body = json!({
        "apiVersion": API_VERSION,
        "kind": "Beskar7Machine",
        "metadata": { "name": machine, "namespace": namespace },
        "spec": spec,
    });
    // Refused, it must leave no user-data behind.
    client.put(&format!("{}?dryRun=true", item(namespace, Kind::Machine, &machine)), &body).await?;
    client.put(&item(namespace, Kind::Secret, &secret_name), &secret).await?;
    client.post(&collection(namespace, Kind::Machine), &body).await?;
    let done = Done { kind: Kind::Machine.to_string(), namespace, name: &machine, result: "created" };
    output.done(args.output, &done, &format!("machine/{machine} created for host {}", args.host))?;
    let json = args.output == DoneFormat::Json;
    if !args.wait && json {
        return Ok(());
    }
    if !args.wait {
        return output.line(format!("follow it with: farrier watch {}", args.host));
    }
    let follow =
        Follow { host: Some(args.host.clone()), until: Some(HostState::Ready), timeout: args.timeout, json };
    watch::follow(client, namespace, &follow, output).await
}

/// Checks that the user-data Secret is new or left over from an earlier try, and nobody else's.
async fn must_not_replace(
    client: &Client,
    namespace: &Name,
    secret: &Name,
    machine: &Name,
) -> Result<(), Failure> {
    match client.get::<SecretView>(&item(namespace, Kind::Secret, secret)).await {
        Err(Failure::NotFound { .. }) => Ok(()),
        Err(other) => Err(other),
        Ok(found)
            if found.metadata.annotations.get(USER_DATA_OF).is_some_and(|of| of == machine.as_str()) =>
        {
            Ok(())
        }
        Ok(_) => {
            let hint = format!(
                "choose another --name, or `farrier delete secret {secret}` first if it is not needed"
            );
            Err(Failure::failed(
                format!("secret {secret} exists already and was not made by provision"),
                hint,
            ))
        }
    }
}

/// Checks before anything is stored that the installation can begin at once.
async fn must_be_free(client: &Client, namespace: &Name, name: &Name) -> Result<(), Failure> {
    let host: PhysicalHost = client.get(&item(namespace, Kind::Host, name)).await?;
    if let Some(machine) = host_view::consumer(&host) {
        let hint = format!("`farrier release {name}` first, or choose another host");
        return Err(Failure::failed(format!("host {name} is in use by machine {machine}"), hint));
    }
    if host.metadata.deletion_timestamp.is_some() {
        return Err(Failure::failed(format!("host {name} is being deleted"), "choose another host"));
    }
    if host.status.state != HostState::Available {
        let state = if host.status.state == HostState::New {
            "New (not looked at yet)"
        } else {
            host.status.state.as_str()
        };
        let why = &host.status.error_message;
        let told = if why.is_empty() { String::new() } else { format!(": {why}") };
        let hint = format!("see `farrier describe host {name}`; a host is Available once its BMC answers");
        return Err(Failure::failed(format!("host {name} is {state}, not Available{told}"), hint));
    }
    let machines: Machines = client.get(&collection(namespace, Kind::Machine)).await?;
    let waits = |m: &&Beskar7Machine| {
        m.spec.host_name.as_ref() == Some(name)
            && !matches!(m.status.phase, Some(MachinePhase::Failed | MachinePhase::Provisioned))
    };
    match machines.items.iter().find(waits) {
        Some(machine) => {
            let other = &machine.metadata.name;
            let hint = format!("`farrier delete machine {other}` first, or choose another host");
            Err(Failure::failed(format!("machine {other} already waits for host {name}"), hint))
        }
        None => Ok(()),
    }
}
