//! The hardware watchdog's control calls.

use std::fs::File;
use std::os::fd::AsRawFd as _;

/// The request as the kernel numbers it (`linux/watchdog.h`).
mod raw {
    nix::ioctl_readwrite!(wdioc_settimeout, b'W', 6, nix::libc::c_int);
}

/// Asks for a time-out in seconds; gives what the hardware made of it.
///
/// # Errors
/// When the driver has a fixed time-out.
pub fn set_timeout(watchdog: &File, seconds: i32) -> nix::Result<i32> {
    let mut value: nix::libc::c_int = seconds;
    // SAFETY: the call reads and writes one int, which `value` is.
    unsafe { raw::wdioc_settimeout(watchdog.as_raw_fd(), &raw mut value) }?;
    Ok(value)
}
