//! The `farrier` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    // One TLS provider for the whole process; the clients are built without one of their own.
    rustls::crypto::ring::default_provider().install_default().ok();
    farrier_controller::cli::main()
}
