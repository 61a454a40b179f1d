//! `farrier-fleet`: measures a controller with a fleet that is played.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use farrier_tests::fleet;

/// A fleet of played servers against a real controller.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// The controller's program [default: `farrier` beside this one].
    #[arg(long, global = true)]
    farrier: Option<PathBuf>,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measures how fast hosts become Ready, what that costs, and what they cost when left alone.
    Bench {
        /// Numbers of hosts.
        #[arg(long, value_delimiter = ',', default_values_t = [100, 1000, 10_000])]
        hosts: Vec<usize>,
        /// Seconds each fleet is left alone to measure its idle cost; a BMC is asked every 300.
        #[arg(long, default_value_t = 300)]
        idle: u64,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(std::io::stderr).init();
    let cli = Cli::parse();
    let program = match cli.farrier {
        Some(program) => program,
        None => std::env::current_exe().context("find this program")?.with_file_name("farrier"),
    };
    match cli.task {
        Task::Bench { hosts, idle } => {
            let mut all = Vec::new();
            for count in hosts {
                let measured = fleet::measure(&program, count, Duration::from_secs(idle)).await?;
                eprintln!("{measured:?}");
                all.push(measured);
            }
            print!("{}", fleet::table(&all));
            Ok(())
        }
    }
}
