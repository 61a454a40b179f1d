//! `/init` of the inspection image; started by a person, it only shows what it would report.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand, ValueEnum};
use farrier_agent::facts::ipmi::Question;
use farrier_agent::{facts, run};
use tikv_jemallocator::Jemalloc;

/// musl's own allocator has the kernel map and clear pages for every piece of an image that arrives, which costs as much
/// processor time as half of its digest.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// PID 1 of Farrier's inspection image: inspects the machine, installs a verified operating system, reports.
///
/// As /init of an initramfs it takes its orders from the kernel command line. Started in any other way it never
/// changes anything.
#[derive(Debug, Parser)]
#[command(version, after_help = "Examples:\n  farrier-agent facts\n  farrier-agent facts --output table")]
struct Cli {
    /// Print the report that would be sent, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print what the inspection report says of this machine
    Facts {
        /// How to print it
        #[arg(long, short, value_enum, default_value_t = Output::Json)]
        output: Output,
        /// Where /sys, /proc and /dev are
        #[arg(long, default_value = "/")]
        root: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// The report's JSON, indented
    Json,
    /// Aligned text
    Table,
}

fn main() -> ExitCode {
    // One TLS provider for everything; a second call would change nothing.
    rustls::crypto::ring::default_provider().install_default().ok();
    // The kernel hands us words of its command line that it does not know itself: as PID 1 there are no options.
    if is_init(std::process::id(), std::env::args_os().next().as_deref().map(Path::new)) {
        run::pid1();
    }
    match person(&Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("farrier-agent: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether we are an initramfs' init: the first process of a container is PID 1 too, and must not be taken for it.
fn is_init(pid: u32, program: Option<&Path>) -> bool {
    pid == 1 && program.and_then(Path::file_name).is_some_and(|name| name == "init")
}

fn person(cli: &Cli) -> anyhow::Result<ExitCode> {
    match &cli.command {
        Some(Command::Facts { output, root }) => print(*output, root)?,
        None if cli.dry_run => print(Output::Json, Path::new("/"))?,
        None => {
            eprintln!(
                "farrier-agent: this is /init of the inspection image; it writes to disks and restarts the machine, \
                 and so runs only as PID 1 under that name (here: PID {}).\nTry `farrier-agent facts`, or --help.",
                std::process::id()
            );
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(output: Output, root: &Path) -> anyhow::Result<()> {
    // A person's machine is taken with the drivers it has.
    let bmc = Question::ask(root, || ());
    let mut report = facts::collect(root).report;
    bmc.add_to(&mut report);
    let text = match output {
        Output::Json => {
            serde_json::to_string_pretty(&report).context("the report cannot be written as JSON")?
        }
        Output::Table => facts::table::render(&report),
    };
    match writeln!(std::io::stdout(), "{}", text.trim_end()) {
        // Whoever reads has seen enough, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot print"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn only_pid_1_by_the_name_of_init_is_init() {
        let init = Some(Path::new("/init"));
        assert!(is_init(1, init));
        assert!(!is_init(2, init));
        assert!(!is_init(1, Some(Path::new("/usr/bin/farrier-agent"))));
        assert!(!is_init(1, None));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
