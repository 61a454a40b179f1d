//! `farrier-lab`: builds the target OS, runs the end-to-end cases, gives the demonstration.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use farrier_tests::cases::{self, Case, Given};
use farrier_tests::demo;
use farrier_tests::lab::{Inspection, sandboxed};
use farrier_tests::runner::{self, Places};
use farrier_tests::target_os::{CloudOs, TargetOs};

/// The machine room in a box: real firmware, a real network boot, a BMC that switches real power.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// Where built images and logs go.
    #[arg(long, global = true, default_value = "build")]
    build_dir: PathBuf,
    /// Where the inspection image is [default: BUILD_DIR/inspection].
    #[arg(long, global = true)]
    inspection: Option<PathBuf>,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Builds the Debian disk image that the runs install.
    TargetOs,
    /// Runs end-to-end cases, all of them when none is named.
    E2e {
        /// Cases to run.
        cases: Vec<String>,
        /// Cases at a time.
        #[arg(long, default_value_t = 2)]
        jobs: usize,
    },
    /// Lists the end-to-end cases.
    List,
    /// Gives the demonstration: one machine from power-on to its installed system.
    Demo,
    /// Gives the demonstration in this process, which must be in namespaces of its own.
    #[command(hide = true)]
    DemoInside,
    /// Runs one case in this process, which must be in namespaces of its own.
    #[command(hide = true)]
    Case {
        /// The case.
        name: String,
    },
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let cli = Cli::parse();
    std::fs::create_dir_all(&cli.build_dir)?;
    let build = cli.build_dir.canonicalize()?;
    let inspection = cli.inspection.unwrap_or_else(|| build.join("inspection"));
    match cli.task {
        Task::TargetOs => {
            let os = TargetOs::build(&build)?;
            println!("{}\n{}", os.plain.raw.display(), os.native.raw.display());
            Ok(())
        }
        Task::E2e { cases, jobs } => {
            let chosen = if cases.is_empty() {
                runner::all()
            } else {
                cases.iter().map(|name| cases::find(name)).collect::<Result<_>>()?
            };
            Inspection::find(&inspection)?;
            TargetOs::build(&build)?;
            cloud_os(&build, &chosen)?;
            runner::run(&chosen, jobs.max(1), &Places { build, inspection })
        }
        Task::List => {
            for case in &cases::CASES {
                println!("{:<18} {}", case.name, case.shows);
            }
            Ok(())
        }
        Task::Demo => {
            Inspection::find(&inspection)?;
            TargetOs::build(&build)?;
            let mut command = sandboxed(["--build-dir".as_ref(), build.as_os_str()])?;
            let status = command.arg("--inspection").arg(&inspection).arg("demo-inside").status()?;
            anyhow::ensure!(
                status.success(),
                "the demonstration failed; its logs are in {}/demo",
                build.display()
            );
            Ok(())
        }
        Task::DemoInside => {
            let dir = build.join("demo");
            if dir.exists() {
                std::fs::remove_dir_all(&dir)?;
            }
            let inspection = Inspection::find(&inspection)?;
            block_on(demo::give(&demo::Given { dir, inspection, os: TargetOs::build(&build)? }))
        }
        Task::Case { name } => {
            let case = cases::find(&name)?;
            let given = Given {
                dir: cases::directory(&build, &name),
                inspection: Inspection::find(&inspection)?,
                os: TargetOs::build(&build)?,
                cloud_os: cloud_os(&build, &[case])?,
            };
            block_on(case.run(&given))
        }
    }
}

/// The image with cloud-init, if one of these cases installs it.
fn cloud_os(build: &Path, cases: &[&Case]) -> Result<Option<CloudOs>> {
    let wanted = cases.iter().any(|case| case.installs_cloud_os());
    wanted.then(|| CloudOs::build(build)).transpose()
}

/// Runs to the end or to a signal: the process is the first of its namespace, where signals without a handler
/// do nothing.
fn block_on(work: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            done = work => done,
            _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
            _ = terminate.recv() => anyhow::bail!("terminated"),
        }
    })
}
