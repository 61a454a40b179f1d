//! The deploy pipeline beside `curl | decompressor | dd` and beside each stage alone, on this machine: `make bench`.
//!
//! Everything measured is a process of its own, so that its processor time and memory are its own. What this program
//! is told to do beside measuring (`install`, `sha256`) are those processes.

mod image;
mod measure;
mod pipeline;
mod server;
mod table;
mod target;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, Subcommand};
use tikv_jemallocator::Jemalloc;

use self::image::{Format, Image};
use self::measure::{Cost, measure};
use self::target::Loop;

/// As in the agent.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

#[derive(Parser)]
#[command(about = "Measures the deploy pipeline; results as a Markdown table")]
struct Args {
    #[command(subcommand)]
    part: Option<Part>,
    /// Size of the disk image in MiB.
    #[arg(long, default_value_t = 4096)]
    size: u64,
    /// Formats to measure.
    #[arg(long, value_delimiter = ',', default_value = "raw,gzip,zstd,xz")]
    formats: Vec<Format>,
    /// Each is measured so often, and the fastest taken: what disturbs only makes slower.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// A tmpfs with room for twice the image and its compressed forms.
    #[arg(long, default_value = "/dev/shm/farrier-bench")]
    dir: PathBuf,
    /// Only files, no loop device (which needs root).
    #[arg(long)]
    no_loop: bool,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Subcommand)]
enum Part {
    /// Runs another program and prints what it cost.
    #[command(hide = true)]
    Measure { command: Vec<String> },
    /// Installs an image as the agent does.
    #[command(hide = true)]
    Install { url: String, digest: String, target: PathBuf, verify: String },
    /// The digest of a file, as the agent computes it.
    #[command(hide = true)]
    Sha256 { file: PathBuf },
}

fn main() -> Result<()> {
    let args = Args::parse();
    match &args.part {
        Some(Part::Measure { command }) => measure::child(command),
        Some(Part::Install { url, digest, target, verify }) => {
            pipeline::install(url, digest, target, verify == "readback")
        }
        Some(Part::Sha256 { file }) => {
            println!("{}", pipeline::sha256(file)?);
            Ok(())
        }
        None => compare(&args),
    }
}

fn compare(args: &Args) -> Result<()> {
    std::fs::create_dir_all(&args.dir).context("the directory to work in")?;
    let server = server::Server::start(&args.dir)?;
    let raw = Image::raw(&args.dir, args.size << 20)?;
    let file = args.dir.join("target");
    let mut rows = Vec::new();
    for format in &args.formats {
        let image = raw.in_format(*format)?;
        rows.push(one(args, &server, &raw, &image, &file, "file on tmpfs")?);
    }
    if !args.no_loop {
        let disk = Loop::attach(&args.dir.join("disk"), args.size << 20)?;
        for format in &args.formats {
            let image = raw.in_format(*format)?;
            rows.push(one(args, &server, &raw, &image, disk.path(), "loop device")?);
        }
    }
    println!("{}", table::machine());
    println!("{}", table::times(args.size, &rows));
    println!("{}", table::costs(&rows));
    Ok(())
}

/// What was measured of one format to one target.
struct Row {
    format: Format,
    target: &'static str,
    ours: Cost,
    /// With the whole disk read back.
    verified: Cost,
    shell: Cost,
    fetch: Cost,
    hash: Cost,
    /// [`None`] for raw.
    decode: Option<Cost>,
    write: Cost,
}

impl Row {
    /// The longest any stage takes by itself, and its name.
    fn slowest(&self) -> (&'static str, f64) {
        let decode = self.decode.map_or(0.0, |cost| cost.seconds);
        [
            ("curl", self.fetch.seconds),
            ("sha256", self.hash.seconds),
            ("decode", decode),
            ("dd", self.write.seconds),
        ]
        .into_iter()
        .fold(("", 0.0), |slowest, stage| if stage.1 > slowest.1 { stage } else { slowest })
    }
}

fn one(
    args: &Args,
    server: &server::Server,
    raw: &Image,
    image: &Image,
    target: &Path,
    name: &'static str,
) -> Result<Row> {
    let url = server.url(image.name());
    let (own, path) = (std::env::current_exe()?, target.display().to_string());
    let own = own.display().to_string();
    let direct = if target::takes_direct(target, args.size << 20)? { "oflag=direct" } else { "" };
    let dd = format!("dd of={path} bs=1M iflag=fullblock conv=notrunc,fsync {direct} status=none");
    let decode = image.format().decompressor();
    let shell = match decode {
        Some(decode) => format!("curl -sf {url} | {decode} | {dd}"),
        None => format!("curl -sf {url} | {dd}"),
    };
    let digest = pipeline::sha256(image.path())?;
    let ours = |verify: &str| -> Vec<String> {
        [&own, "install", &url, &digest, &path, verify].map(str::to_owned).to_vec()
    };
    let bash = |line: String| vec!["bash".into(), "-c".into(), format!("set -o pipefail; {line}")];
    let fresh = || target::fill(target, args.size << 20);
    let best = |what: &str, command: Vec<String>| -> Result<Cost> {
        eprintln!("{} to {name}: {what}", image.format().name());
        let mut best: Option<Cost> = None;
        for _ in 0..args.runs.max(1) {
            fresh()?;
            let cost = measure(&command).with_context(|| command.join(" "))?;
            best = Some(best.map_or(cost, |best| best.faster(cost)));
        }
        best.context("no run")
    };
    let row = Row {
        format: image.format(),
        target: name,
        ours: best("ours", ours("off"))?,
        shell: best("shell", bash(shell))?,
        verified: best("ours with read-back", ours("readback"))?,
        fetch: best("curl alone", bash(format!("curl -sf {url} -o /dev/null")))?,
        hash: best("sha256 alone", vec![own.clone(), "sha256".into(), image.path().display().to_string()])?,
        decode: match decode {
            Some(decode) => Some(best(
                "decompressor alone",
                bash(format!("{decode} {} > /dev/null", image.path().display())),
            )?),
            None => None,
        },
        write: best("dd alone", bash(format!("{dd} if={}", raw.path().display())))?,
    };
    same(raw.path(), target)?;
    Ok(row)
}

/// What ends up on the target is the image.
fn same(raw: &Path, target: &Path) -> Result<()> {
    let status = Command::new("cmp").arg(raw).arg(target).status().context("cmp")?;
    ensure!(status.success(), "{} differs from the image", target.display());
    Ok(())
}
