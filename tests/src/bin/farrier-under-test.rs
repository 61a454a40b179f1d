//! The `farrier` command once more: tests of this package find it built and up to date.

use std::process::ExitCode;

fn main() -> ExitCode {
    rustls::crypto::ring::default_provider().install_default().ok();
    farrier_controller::cli::main()
}
