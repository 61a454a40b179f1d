//! `farrier adopt`.

use clap::Args;
use farrier_shared::contract::{Digest, Name, WebUrl};
use farrier_shared::resource::API_VERSION;
use serde_json::json;

use super::client::{Client, item};
use super::failure::Failure;
use super::output::{Done, DoneFormat, Output};
use crate::admin::Kind;

const EXAMPLES: &str = "\
Examples:
  farrier adopt rack1-u7 --image https://images/os.img.zst \\
      --digest sha256:9f86d0…
  farrier adopt rack1-u7 --machine web-1 --image https://images/os.img.zst \\
      --digest sha256:9f86d0…

The host becomes Ready as it is: it is neither booted nor written, and nothing
checks what is on its disk. Image and digest are for the record. There is no
user-data to give, since none is planted: what the system was made with is on
its disk. Releasing the host later powers it off, as with any other; to install
it anew, release it and provision it.";

/// Take over a host whose operating system is installed already.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES
)]
pub(crate) struct AdoptArgs {
    /// The host; nobody's, and New or Available
    host: Name,
    /// Name of the machine that is made for it [default: that of the host]
    #[arg(long)]
    machine: Option<Name>,
    /// URL of the image it was installed from
    #[arg(long, value_name = "URL")]
    image: WebUrl,
    /// Digest of that image as served: sha256: and 64 hex digits
    #[arg(long)]
    digest: Digest,
    /// Where vmlinuz and initrd.img of the inspection image are [default: as the controller says]
    #[arg(long, value_name = "URL")]
    inspection_image_url: Option<WebUrl>,
    /// How to tell what was done
    #[arg(short, long, value_enum, default_value_t)]
    output: DoneFormat,
}

pub(super) async fn adopt(
    client: &Client,
    namespace: &Name,
    args: &AdoptArgs,
    output: &Output,
) -> Result<(), Failure> {
    let inspection = match &args.inspection_image_url {
        Some(url) => url.to_string(),
        None => client.info().await?.inspection_image_url,
    };
    let machine = args.machine.as_ref().unwrap_or(&args.host);
    let body = json!({
        "apiVersion": API_VERSION,
        "kind": "Beskar7Machine",
        "metadata": { "name": machine, "namespace": namespace },
        "spec": {
            "inspectionImageURL": inspection,
            "targetImageURL": args.image,
            "targetImageDigest": args.digest,
            "hostName": args.host,
        },
    });
    client.post(&format!("{}/adopt", item(namespace, Kind::Host, &args.host)), &body).await?;
    let done = Done { kind: Kind::Machine.to_string(), namespace, name: machine, result: "created" };
    let text = format!(
        "machine/{machine} adopts host {host} as it is\nfollow it with: farrier watch {host} --until Ready",
        host = args.host
    );
    output.done(args.output, &done, &text)
}
