//! Flags of a file beyond its mode.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use nix::libc::c_long;

/// The requests as the kernel numbers them (`linux/fs.h`). They are declared with a long and carry an int.
mod raw {
    nix::ioctl_read!(fs_ioc_getflags, b'f', 1, nix::libc::c_long);
    nix::ioctl_write_ptr!(fs_ioc_setflags, b'f', 2, nix::libc::c_long);
}

/// `FS_IMMUTABLE_FL`.
const IMMUTABLE: c_long = 0x10;

/// Lets a file be written and removed again.
///
/// # Errors
/// When the file system has no such flags, or without the privilege.
pub fn clear_immutable(file: &File) -> io::Result<()> {
    let mut flags: c_long = 0;
    // SAFETY: the request writes an int into `flags`, which is at least as large and outlives the call.
    unsafe { raw::fs_ioc_getflags(file.as_raw_fd(), &raw mut flags) }?;
    flags &= !IMMUTABLE;
    // SAFETY: the request reads an int out of `flags`, which is at least as large and outlives the call; the machine
    // is little-endian, so the int is the value.
    unsafe { raw::fs_ioc_setflags(file.as_raw_fd(), &raw const flags) }?;
    Ok(())
}
