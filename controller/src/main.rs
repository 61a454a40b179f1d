//! The `farrier` command.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// glibc's allocator keeps what a burst of work took: a fleet at rest then costs twice the memory.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    // One TLS provider for the whole process; the clients are built without one of their own.
    rustls::crypto::ring::default_provider().install_default().ok();
    farrier_controller::cli::main()
}
