//! `farrier-image`: builds the inspection image.

use anyhow::Context;
use clap::Parser;
use farrier_image::agent_build;
use farrier_image::cli::{self, Action, Agent, Build, Cli, Output};
use farrier_image::debian::Packages;
use farrier_image::inspection;
use farrier_image::progress::Progress;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Action::Build(build) => run_build(&build),
        Action::Agent(agent) => run_agent(&agent),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_build(build: &Build) -> anyhow::Result<()> {
    let manifest = inspection::build(&build.request()?, &Progress::to_stderr())?;
    match build.output {
        Output::Text => print(&manifest.to_string())?,
        Output::Json => print(&serde_json::to_string(&manifest)?)?,
    }
    anyhow::ensure!(
        !build.within_goal || manifest.is_within_goal(),
        "the image takes {} bytes, more than the {} of profile {}; leave out modules or firmware, or build without --within-goal",
        manifest.total_bytes,
        manifest.goal_bytes,
        manifest.profile
    );
    Ok(())
}

fn run_agent(agent: &Agent) -> anyhow::Result<()> {
    let request = cli::agent_request(agent.toolchain, agent.source_date_epoch)?;
    let packages = Packages::new(&cli::absolute(&agent.cache)?);
    let built = agent_build::build(&request, &packages, &Progress::to_stderr())?;
    let path = match &agent.out {
        None => built.path.clone(),
        Some(out) => {
            std::fs::copy(&built.path, out).with_context(|| format!("cannot copy to {}", out.display()))?;
            out.clone()
        }
    };
    match agent.output {
        Output::Text => print(&path.display().to_string()),
        Output::Json => print(&serde_json::json!({ "path": path, "agent": built.record() }).to_string()),
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    match writeln!(std::io::stdout(), "{}", text.trim_end()) {
        // Whoever reads has seen enough, as `head` does.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot print"),
    }
}
