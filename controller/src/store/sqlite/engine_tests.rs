//! What becomes of a process whose writer thread panics.

use std::process::Command;

use super::data_dir::DataDir;
use super::engine::Engine;

/// Set for the process that is to end.
const CHILD: &str = "FARRIER_TEST_WRITER_PANICS";

/// Panics in the writer of a store on disk when it runs as the child of the test below, and does nothing else.
#[test]
fn child_whose_writer_panics() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let engine = Engine::open(DataDir::take(dir.as_ref()).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let written: Result<(), _> = runtime.block_on(engine.write(|_| panic!("on purpose")));
    // The process is about to end, whatever the caller is told.
    std::thread::sleep(std::time::Duration::from_secs(60));
    panic!("it goes on, told {written:?}");
}

#[test]
fn a_writer_that_panics_ends_the_process_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let name = format!("{}::child_whose_writer_panics", module_path!().split_once("::").unwrap().1);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture"])
        .env(CHILD, dir.path().join("data"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("the store's writer failed") && told.contains("on purpose"), "{told}");
}
