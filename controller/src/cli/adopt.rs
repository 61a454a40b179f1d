//! `farrier adopt`.

use clap::Args;
use farrier_shared::contract::{Digest, Name, WebUrl};
use farrier_shared::resource::API_VERSION;
use serde_json::json;

use super::client::{Client, item};
use super::failure::Failure;
use super::output::Output;
use crate::admin::Kind;

/// Take over a host whose operating system is installed already.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  farrier adopt rack1-u7 --image https://images/os.img.zst --digest sha256:9f86d0…\n  farrier adopt rack1-u7 --machine web-1 --image https://images/os.img.zst --digest sha256:9f86d0…\n\nThe host becomes Ready as it is: it is neither booted nor written, and nothing checks what is on its disk. Image\nand digest are for the record. Releasing the host later powers it off, as with any other."
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
    output.line(format!("machine/{machine} adopts host {} as it is", args.host))?;
    output.line(format!("follow it with: farrier watch {} --until Ready", args.host))
}
