//! What the kernel is told of a stage's thread: its name, and whether it goes before the others.

use std::ffi::CStr;

/// Nice value of the stages that set the pace: the kernel gives them nine times the share of an ordinary thread
/// (`sched_prio_to_weight`), and lets them run on when the network or a writer wakes.
const AHEAD: i32 = -10;

/// Names the calling thread as `top -H` shows it; 15 bytes are kept.
pub(super) fn named(name: &CStr) {
    // It only serves the reader of a list of threads.
    let _ = nix::sys::prctl::set_name(name);
}

/// Names the calling thread, and has it preferred to those that mostly wait: digest and decoder alone decide how
/// fast an image is written, and on few cores each packet that comes and each write that ends would take one from them.
pub(super) fn ahead(name: &CStr) {
    named(name);
    // Without the privilege it is slower and nothing else.
    if let Err(error) = rustix::process::setpriority_process(None, AHEAD) {
        tracing::debug!(stage = ?name, %error, "this stage competes with the others for the processor");
    }
}

#[cfg(test)]
mod tests {
    use std::fs::read_to_string;
    use std::thread;

    use super::*;

    fn niceness() -> i32 {
        rustix::process::getpriority_process(None).unwrap()
    }

    /// `CAP_SYS_NICE` (23) among what this process may do; root in a container often may not.
    fn may_renice() -> bool {
        let status = read_to_string("/proc/self/status").unwrap();
        let set = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
        u64::from_str_radix(set.trim(), 16).unwrap() >> 23 & 1 == 1
    }

    #[test]
    fn a_stage_has_its_name_and_its_own_niceness_and_leaves_other_threads_alone() {
        let before = niceness();
        let (name, inside) = thread::spawn(|| {
            ahead(c"hash");
            (read_to_string("/proc/thread-self/comm").unwrap(), niceness())
        })
        .join()
        .unwrap();
        assert_eq!(name, "hash\n");
        assert_eq!(inside, if may_renice() { AHEAD } else { before });
        assert_eq!(niceness(), before);
    }
}
