//! The command line of `farrier-image`.

use crate::agent_build::{self, Toolchain, find_workspace};
use crate::inspection::{AgentSource, Request};
use crate::kernel::KernelSource;
use crate::modules::Profile;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  Build the agent and an image for virtual machines into build/inspection:
      farrier-image build

  An image for servers, with a directory of firmware files apt does not offer:
      farrier-image build --profile full --firmware-dir ./linux-firmware

  An image around a program already built, on a given kernel package:
      farrier-image build --agent ./farrier-agent --kernel-deb ./linux-image.deb

  Only the static agent:
      farrier-image agent

Exit codes: 0 built, 1 the build failed, 2 wrong usage.";

/// Builds the inspection image: the kernel and the initramfs that machines boot over the network.
#[derive(Debug, Parser)]
#[command(name = "farrier-image", version, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Action,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Build vmlinuz, initrd.img and manifest.json.
    #[command(after_help = EXAMPLES)]
    Build(Build),
    /// Build only the static agent and print where it is.
    #[command(after_help = EXAMPLES)]
    Agent(Agent),
}

/// How results are printed on standard output. Progress goes to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

/// Options of `build`.
#[derive(Debug, Args)]
pub struct Build {
    /// Directory for vmlinuz, initrd.img and manifest.json
    #[arg(long, value_name = "DIR", default_value = "build/inspection")]
    pub out: PathBuf,
    /// Directory that keeps downloaded packages between builds
    #[arg(long, value_name = "DIR", default_value = "build/cache")]
    pub cache: PathBuf,
    /// Which machines it is for: drivers and size
    #[arg(long, value_enum, default_value = "vm")]
    pub profile: Profile,
    /// A module list instead of the profile's: one `NAME` a line, perhaps with `load` or `optional`
    #[arg(long, value_name = "FILE")]
    pub modules: Option<PathBuf>,
    /// A static program to boot as PID 1, instead of building the agent
    #[arg(long, value_name = "PATH", conflicts_with = "toolchain")]
    pub agent: Option<PathBuf>,
    /// What builds the agent
    #[arg(long, value_enum, default_value = "auto")]
    pub toolchain: Toolchain,
    /// A Debian kernel package instead of the current one from apt
    #[arg(long, value_name = "PATH", conflicts_with = "kernel_tree")]
    pub kernel_deb: Option<PathBuf>,
    /// An unpacked kernel package: boot/vmlinuz-* and lib/modules/*
    #[arg(long, value_name = "DIR")]
    pub kernel_tree: Option<PathBuf>,
    /// A directory of firmware files, searched before firmware packages; may be repeated
    #[arg(long, value_name = "DIR")]
    pub firmware_dir: Vec<PathBuf>,
    /// Date of every file in the initramfs and earliest time of the agent's clock, in seconds since 1970; by default
    /// the day of the source's last commit
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH")]
    pub source_date_epoch: Option<u32>,
    /// Fail when vmlinuz and initrd.img together are larger than the profile's goal
    #[arg(long)]
    pub within_goal: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value = "text")]
    pub output: Output,
}

/// Options of `agent`.
#[derive(Debug, Args)]
pub struct Agent {
    /// Copy the program here as well
    #[arg(long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// Directory that keeps downloaded packages between builds
    #[arg(long, value_name = "DIR", default_value = "build/cache")]
    pub cache: PathBuf,
    /// What builds the agent
    #[arg(long, value_enum, default_value = "auto")]
    pub toolchain: Toolchain,
    /// Earliest time of the agent's clock, in seconds since 1970; by default the day of the source's last commit
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH")]
    pub source_date_epoch: Option<u32>,
    /// How the result is printed
    #[arg(long, value_enum, default_value = "text")]
    pub output: Output,
}

impl Build {
    /// The build these options ask for.
    ///
    /// # Errors
    /// When the agent is to be built and the current directory is outside the workspace.
    pub fn request(&self) -> anyhow::Result<Request> {
        let (agent, date) = match &self.agent {
            Some(path) => (AgentSource::File(path.clone()), self.source_date_epoch.unwrap_or(0)),
            None => {
                let request = agent_request(self.toolchain, self.source_date_epoch)?;
                let date = request.date;
                (AgentSource::Build(request), date)
            }
        };
        let kernel = match (&self.kernel_deb, &self.kernel_tree) {
            (Some(deb), _) => KernelSource::Deb(deb.clone()),
            (None, Some(tree)) => KernelSource::Tree(tree.clone()),
            (None, None) => KernelSource::Apt,
        };
        Ok(Request {
            out: self.out.clone(),
            cache: absolute(&self.cache)?,
            profile: self.profile,
            modules: self.modules.clone(),
            agent,
            kernel,
            firmware: self.firmware_dir.clone(),
            source_date_epoch: date,
        })
    }
}

/// The agent build for the workspace around the current directory; of the source's own date, unless one is given.
///
/// # Errors
/// When there is none.
pub fn agent_request(toolchain: Toolchain, date: Option<u32>) -> anyhow::Result<agent_build::Request> {
    let workspace = find_workspace(&std::env::current_dir()?)?;
    let date = date.or_else(|| agent_build::date::of_source(&workspace)).unwrap_or(0);
    Ok(agent_build::Request { workspace, toolchain, date })
}

/// Programs run in other directories than ours, so that paths are made absolute first.
///
/// # Errors
/// When the current directory is gone.
pub fn absolute(path: &std::path::Path) -> std::io::Result<PathBuf> {
    std::path::absolute(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(words: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from([&["farrier-image"], words].concat())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_given_agent_and_kernel_are_taken() {
        let cli =
            parse(&["build", "--agent", "a", "--kernel-tree", "k", "--profile", "full"]).expect("valid");
        let Action::Build(build) = cli.command else { panic!("build expected") };
        let request = build.request().expect("request");
        assert_eq!(request.agent, AgentSource::File("a".into()));
        assert_eq!(request.kernel, KernelSource::Tree("k".into()));
        assert_eq!(request.profile, Profile::Full);
        assert!(request.cache.is_absolute());
    }

    #[test]
    fn a_given_date_is_that_of_the_image_and_of_its_agent() {
        let date = |words: &[&str]| {
            let cli =
                parse(&[&["build", "--source-date-epoch", "1800000000"], words].concat()).expect("valid");
            let Action::Build(build) = cli.command else { panic!("build expected") };
            build.request().expect("request")
        };
        let request = date(&[]);
        let AgentSource::Build(agent) = &request.agent else { panic!("{request:?}") };
        assert_eq!((request.source_date_epoch, agent.date), (1_800_000_000, 1_800_000_000));
        assert_eq!(date(&["--agent", "a"]).source_date_epoch, 1_800_000_000);
    }

    #[test]
    fn contradictions_are_wrong_usage() {
        for words in [
            &["build", "--kernel-deb", "a", "--kernel-tree", "b"][..],
            &["build", "--agent", "a", "--toolchain", "debian"],
            &["build", "--profile", "huge"],
            &["build", "--source-date-epoch", "yesterday"],
            &[],
        ] {
            let error = parse(words).expect_err("refused");
            assert_eq!(error.exit_code(), 2, "{words:?}");
        }
    }

    #[test]
    fn help_shows_examples_and_exit_codes() {
        let help = Cli::command().render_long_help().to_string();
        assert!(help.contains("Examples:") && help.contains("Exit codes: 0"), "{help}");
    }
}
