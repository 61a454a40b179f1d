//! The command line.

mod adopt;
mod agent_option;
mod apply;
mod client;
mod delete;
mod describe;
mod failure;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod get;
mod hardware;
mod manifest;
mod output;
mod provision;
mod serve;
mod table;
mod watch;
mod watch_view;
mod wrap;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use farrier_shared::contract::Name;

use client::Client;
use failure::Failure;
use output::Output;

const AFTER_HELP: &str = "\
Examples:
  farrier serve --url-base https://10.0.0.1:8082 --data-dir ./data
  farrier apply -f hosts.yaml
  farrier get hosts
  farrier provision rack1-u7 --image https://images/os.img.zst \\
      --digest sha256:9f86d0… --user-data user-data.yaml --wait
  farrier watch rack1-u7

Exit codes:
  0  done
  1  the operation failed
  2  the command line or a file is not valid; nothing was changed
  3  the controller cannot be reached
  4  no such object";

/// Bare-metal provisioning: from power-on to a verified, running operating system
#[derive(Debug, Parser)]
#[command(name = "farrier", version, after_help = AFTER_HELP, max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: Global,
}

/// Flags of every command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// Socket of the controller's admin API
    #[arg(long, global = true, env = "FARRIER_ADMIN_SOCKET", value_name = "PATH")]
    admin_socket: Option<PathBuf>,
    /// Admin API over TCP instead, such as http://127.0.0.1:8083
    #[arg(long, global = true, env = "FARRIER_ADMIN_URL", value_name = "URL")]
    admin_url: Option<farrier_shared::contract::WebUrl>,
    /// File with the token for --admin-url
    #[arg(long, global = true, env = "FARRIER_ADMIN_TOKEN_FILE", value_name = "FILE")]
    admin_token_file: Option<PathBuf>,
    /// Namespace
    #[arg(short, long, global = true, default_value = "default")]
    namespace: Name,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the controller
    Serve(Box<crate::serve::Settings>),
    /// Create or change hosts, machines and secrets from YAML files
    Apply(apply::ApplyArgs),
    /// List objects, or show one
    Get(get::GetArgs),
    /// Show everything about one host: state, machine, progress, history
    Describe(describe::DescribeArgs),
    /// Delete an object; deleting a machine releases its host
    Delete(delete::DeleteArgs),
    /// Release a host: delete the machine that has it
    Release(delete::ReleaseArgs),
    /// Install an operating system on a host
    Provision(provision::ProvisionArgs),
    /// Take over a host whose operating system is installed already
    Adopt(adopt::AdoptArgs),
    /// Follow hosts live
    Watch(watch::WatchArgs),
}

/// Runs the command of this process.
pub fn main() -> ExitCode {
    let cli = parse();
    let output = Output::new(std::io::stdout().is_terminal());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(run(cli, &output)),
        Err(error) => Err(Failure::failed(format!("cannot start: {error}"), "free some memory or threads")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The command line, or the end of the process with its help or its errors.
fn parse() -> Cli {
    let mut command = command();
    let matches = command.get_matches_mut();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
}

/// The command with the flags of clients left out of the help of `serve`, which is none.
fn command() -> clap::Command {
    let mut command = Cli::command();
    // Until then the flags of every command are those of the top alone.
    command.build();
    command.mut_subcommand("serve", |serve| {
        serve.mut_args(|arg| {
            let of_clients = matches!(arg.get_id().as_str(), "admin_url" | "admin_token_file" | "namespace");
            if of_clients { arg.hide(true) } else { arg }
        })
    })
}

async fn run(cli: Cli, output: &Output) -> Result<(), Failure> {
    let Cli { command, global } = cli;
    if let Command::Serve(mut settings) = command {
        settings.admin_socket = global.admin_socket;
        return serve::serve(*settings).await;
    }
    let client = Client::new(&global)?;
    let namespace = global.namespace;
    match command {
        Command::Serve(_) => Ok(()),
        Command::Apply(args) => apply::apply(&client, &namespace, &args, output).await,
        Command::Get(args) => get::get(&client, &namespace, &args, output).await,
        Command::Describe(args) => describe::describe(&client, &namespace, &args, output).await,
        Command::Delete(args) => delete::delete(&client, &namespace, &args, output).await,
        Command::Release(args) => delete::release(&client, &namespace, &args, output).await,
        Command::Provision(args) => provision::provision(&client, &namespace, &args, output).await,
        Command::Adopt(args) => adopt::adopt(&client, &namespace, &args, output).await,
        Command::Watch(args) => watch::watch(&client, &namespace, &args, output).await,
    }
}
