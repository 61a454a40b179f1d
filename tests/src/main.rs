//! `farrier-lab`: builds the target OS, runs the end-to-end cases, gives the demonstration.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};
use farrier_tests::target_os::TargetOs;

/// The machine room in a box: real firmware, a real network boot, a BMC that switches real power.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// Where built images and logs go.
    #[arg(long, global = true, default_value = "build")]
    build_dir: PathBuf,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Builds the Debian disk image that the runs install.
    TargetOs,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    match cli.task {
        Task::TargetOs => {
            let os = TargetOs::build(&cli.build_dir.join("target-os"))?;
            println!("{}\n{}\n{}", os.raw.display(), os.zstd.display(), os.gzip.display());
            Ok(())
        }
    }
}
