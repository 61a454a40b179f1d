//! Requests to block devices.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// The requests as the kernel numbers them (`linux/fs.h`).
mod raw {
    nix::ioctl_none!(blkrrpart, 0x12, 95);
    nix::ioctl_none!(blkflsbuf, 0x12, 97);
    nix::ioctl_write_ptr_bad!(blkpg, nix::request_code_none!(0x12, 105), PartitionRequest);
    nix::ioctl_read_bad!(blksszget, nix::request_code_none!(0x12, 104), nix::libc::c_int);
    nix::ioctl_write_ptr_bad!(blkzeroout, nix::request_code_none!(0x12, 127), [u64; 2]);
    nix::ioctl_read!(blkgetsize64, 0x12, 114, u64);

    /// `BLKPG_ADD_PARTITION`.
    pub(super) const ADD: nix::libc::c_int = 1;

    /// `struct blkpg_ioctl_arg`.
    #[repr(C)]
    pub(super) struct PartitionRequest {
        pub(super) op: nix::libc::c_int,
        pub(super) flags: nix::libc::c_int,
        pub(super) datalen: nix::libc::c_int,
        pub(super) data: *const Partition,
    }

    /// `struct blkpg_partition`; start and length in bytes, and two names that the kernel does not look at.
    #[repr(C)]
    pub(super) struct Partition {
        pub(super) start: i64,
        pub(super) length: i64,
        pub(super) pno: nix::libc::c_int,
        pub(super) names: [u8; 128],
    }
}

/// Has the kernel read the partition table again.
///
/// # Errors
/// `EBUSY` while a partition is in use, `EINVAL` where the driver knows no partitions.
#[expect(unsafe_code, reason = "an ioctl no crate wraps")]
pub fn reread_partitions(device: impl AsFd) -> io::Result<()> {
    // SAFETY: the request takes no argument and touches no memory of ours; the descriptor is open while borrowed.
    unsafe { raw::blkrrpart(device.as_fd().as_raw_fd()) }?;
    Ok(())
}

/// Has the kernel see a partition of `len` bytes at `start`, whatever the partition table says.
///
/// # Errors
/// `EBUSY` when it overlaps another or its number is taken, `EINVAL` when it is not of whole sectors or not inside the
/// disk.
#[expect(unsafe_code, reason = "an ioctl no crate wraps")]
pub fn add_partition(device: impl AsFd, number: u64, start: u64, len: u64) -> io::Result<()> {
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let partition = raw::Partition {
        start: start.try_into().map_err(invalid)?,
        length: len.try_into().map_err(invalid)?,
        pno: number.try_into().map_err(invalid)?,
        names: [0; 128],
    };
    let size = size_of_val(&partition).try_into().map_err(invalid)?;
    let request = raw::PartitionRequest { op: raw::ADD, flags: 0, datalen: size, data: &raw const partition };
    // SAFETY: the request reads one `PartitionRequest` and the `Partition` it points at, both laid out as the kernel's;
    // both outlive the call.
    unsafe { raw::blkpg(device.as_fd().as_raw_fd(), &raw const request) }?;
    Ok(())
}

/// Writes back and then forgets what the page cache holds of the device, so that reads come from the medium.
///
/// # Errors
/// When the descriptor is no block device, or writing back fails.
#[expect(unsafe_code, reason = "an ioctl no crate wraps")]
pub fn flush_cache(device: impl AsFd) -> io::Result<()> {
    // SAFETY: the request takes no argument and touches no memory of ours; the descriptor is open while borrowed.
    unsafe { raw::blkflsbuf(device.as_fd().as_raw_fd()) }?;
    Ok(())
}

/// Has the kernel zero `len` bytes at `offset`: by the device's own command where it has one, else by writing zeros.
/// Blocks stay allocated, and read as zeros whatever the device makes of it (`blkdev_issue_zeroout`).
///
/// # Errors
/// `EOPNOTSUPP` or `ENOTTY` where there is no such request; `EINVAL` when the range is not of whole sectors.
#[expect(unsafe_code, reason = "an ioctl no crate wraps")]
pub fn zero_out(device: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    let range = [offset, len];
    // SAFETY: the request reads two u64, which `range` is, and it outlives the call.
    unsafe { raw::blkzeroout(device.as_fd().as_raw_fd(), &raw const range) }?;
    Ok(())
}

/// Size in bytes.
///
/// # Errors
/// When the descriptor is no block device.
#[expect(unsafe_code, reason = "an ioctl no crate wraps")]
pub fn size(device: impl AsFd) -> io::Result<u64> {
    let mut size = 0;
    // SAFETY: the request writes one u64, and `size` is one that outlives the call.
    unsafe { raw::blkgetsize64(device.as_fd().as_raw_fd(), &raw mut size) }?;
    Ok(size)
}

/// Logical sector size in bytes.
///
/// # Errors
/// When the descriptor is no block device.
#[expect(unsafe_code, reason = "an ioctl no crate wraps")]
pub fn logical_sector(device: impl AsFd) -> io::Result<u32> {
    let mut size = 0;
    // SAFETY: the request writes one int, and `size` is one that outlives the call.
    unsafe { raw::blksszget(device.as_fd().as_raw_fd(), &raw mut size) }?;
    u32::try_from(size).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}
