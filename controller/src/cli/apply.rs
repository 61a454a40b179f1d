//! `farrier apply`.

use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;
use farrier_shared::contract::Name;

use super::client::{Client, item};
use super::failure::Failure;
use super::manifest::{self, Manifest};
use super::output::{Done, DoneFormat, Output, printable};

/// Largest file read, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// Create or change hosts, machines and secrets from YAML files.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  farrier apply -f hosts.yaml\n  cat *.yaml | farrier apply -f -\n  farrier apply --dry-run -f hosts.yaml"
)]
pub(crate) struct ApplyArgs {
    /// File of YAML documents, `-` for standard input; may be given several times
    #[arg(short, long = "filename", required = true, value_name = "FILE")]
    filename: Vec<PathBuf>,
    /// Check everything, change nothing
    #[arg(long)]
    dry_run: bool,
    /// How to tell what was done
    #[arg(short, long, value_enum, default_value_t)]
    output: DoneFormat,
}

pub(super) async fn apply(
    client: &Client,
    namespace: &Name,
    args: &ApplyArgs,
    output: &Output,
) -> Result<(), Failure> {
    // Everything is read and checked, here and by the controller, before anything is stored.
    let mut manifests: Vec<Manifest> = Vec::new();
    for file in &args.filename {
        let text = read_input(file, "-f")?;
        manifests.extend(manifest::read(&shown(file), &text, namespace)?);
    }
    for manifest in &manifests {
        send(client, manifest, true).await?;
    }
    for manifest in &manifests {
        let created = send(client, manifest, args.dry_run).await?;
        let what = match (created, args.dry_run) {
            (true, false) => "created",
            (false, false) => "configured",
            (true, true) => "would be created",
            (false, true) => "would be configured",
        };
        let Manifest { kind, namespace, name, .. } = manifest;
        let done = Done { kind: kind.to_string(), namespace, name, result: what };
        output.done(args.output, &done, &format!("{kind}/{name} {what}"))?;
    }
    Ok(())
}

async fn send(client: &Client, manifest: &Manifest, dry_run: bool) -> Result<bool, Failure> {
    let mut path = item(&manifest.namespace, manifest.kind, &manifest.name);
    if dry_run {
        path.push_str("?dryRun=true");
    }
    client.put(&path, &manifest.body).await.map_err(|failure| failure.within(&manifest.place))
}

fn shown(file: &std::path::Path) -> String {
    if file.as_os_str() == "-" { "standard input".to_owned() } else { printable(&file.display().to_string()) }
}

/// The text of a file or of standard input. `flag` is named in errors.
pub(super) fn read_input(file: &std::path::Path, flag: &str) -> Result<zeroize::Zeroizing<String>, Failure> {
    let mut text = zeroize::Zeroizing::new(String::new());
    let opened: std::io::Result<Box<dyn std::io::Read>> = if file.as_os_str() == "-" {
        Ok(Box::new(std::io::stdin()))
    } else {
        std::fs::File::open(file).map(|f| Box::new(f) as Box<dyn std::io::Read>)
    };
    let unreadable = |problem: String| {
        Failure::invalid(flag, format!("cannot read {}: {problem}", shown(file)), "give a readable text file")
    };
    opened
        .and_then(|source| source.take(MAX_FILE + 1).read_to_string(&mut text))
        .map_err(|e| unreadable(e.to_string()))?;
    // Half a file could pass for a whole one.
    let whole = u64::try_from(text.len()).is_ok_and(|len| len <= MAX_FILE);
    if whole { Ok(text) } else { Err(unreadable(format!("it is larger than {MAX_FILE} bytes"))) }
}
