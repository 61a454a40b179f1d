//! Commands passed through to SCSI devices, and to ATA disks behind the kernel's or an adapter's translation
//! (`scsi/sg.h`).

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd as _};
use std::time::Duration;

/// Bytes of a command this module sends.
pub const COMMAND: usize = 16;
/// Most bytes of sense data taken: all that there can be (SPC-4, section 4.5.1).
const SENSE: u8 = 252;
/// Status of a command whose sense data says more, or that went well without any.
const CHECK_CONDITION: u8 = 0x02;

mod raw {
    use std::ffi::c_void;

    /// `struct sg_io_hdr`.
    #[repr(C)]
    #[derive(Debug)]
    pub(super) struct Header {
        pub(super) interface: i32,
        pub(super) direction: i32,
        pub(super) command_len: u8,
        pub(super) sense_room: u8,
        pub(super) iovec_count: u16,
        pub(super) data_len: u32,
        pub(super) data: *mut c_void,
        pub(super) command: *mut u8,
        pub(super) sense: *mut u8,
        pub(super) timeout_ms: u32,
        pub(super) flags: u32,
        pub(super) pack_id: i32,
        pub(super) user: *mut c_void,
        pub(super) status: u8,
        pub(super) masked_status: u8,
        pub(super) msg_status: u8,
        pub(super) sense_len: u8,
        pub(super) host_status: u16,
        pub(super) driver_status: u16,
        pub(super) residue: i32,
        pub(super) duration: u32,
        pub(super) info: u32,
    }

    nix::ioctl_readwrite_bad!(sg_io, 0x2285, Header);
}

/// Has a device carry out a command that moves no data, for as long as `patience`; gives its sense data, which is
/// empty when the device had nothing to say.
///
/// # Errors
/// When the descriptor takes no such commands, the adapter or the kernel gave the command up, or the device answered
/// with another status than that it is done or has sense data.
#[expect(unsafe_code, reason = "an ioctl no crate wraps")]
pub fn command_without_data(
    device: impl AsFd,
    command: [u8; COMMAND],
    patience: Duration,
) -> io::Result<Vec<u8>> {
    let mut command = command;
    let mut sense = [0_u8; SENSE as usize];
    // SAFETY: the header is integers and pointers, for which all zeroes is a valid value.
    let mut header: raw::Header = unsafe { zeroed() };
    header.interface = i32::from(b'S');
    // No data either way.
    header.direction = -1;
    header.command_len = 16;
    header.sense_room = SENSE;
    header.command = command.as_mut_ptr();
    header.sense = sense.as_mut_ptr();
    header.timeout_ms = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    // SAFETY: the request reads and writes one `Header`, laid out as the kernel's; it reads `command_len` bytes of
    // `command`, writes at most `sense_room` bytes of `sense`, and no data is transferred. All outlive the call,
    // which is done with them when it returns.
    unsafe { raw::sg_io(device.as_fd().as_raw_fd(), &raw mut header) }?;
    if header.host_status != 0 || !matches!(header.status, 0 | CHECK_CONDITION) {
        let (host, status) = (header.host_status, header.status);
        return Err(io::Error::other(format!("SCSI status {status:#x}, host status {host:#x}")));
    }
    Ok(sense[..usize::from(header.sense_len.min(SENSE))].to_vec())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::mem::size_of;

    use super::*;

    #[test]
    fn the_header_has_the_kernels_size() {
        assert_eq!(size_of::<raw::Header>(), 88);
    }

    #[test]
    fn what_takes_no_commands_is_an_error() {
        let null = File::open("/dev/null").unwrap();
        assert!(command_without_data(&null, [0; COMMAND], Duration::from_secs(1)).is_err());
    }
}
