//! Admin commands to NVMe controllers (`linux/nvme_ioctl.h`).

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Bytes of the SMART / Health Information log.
pub const HEALTH_LOG: usize = 512;
/// Most of the time a command may take, in milliseconds.
const PATIENCE: u32 = 2000;
const GET_LOG_PAGE: u8 = 0x02;
const HEALTH: u32 = 0x02;
/// The controller as a whole rather than one namespace.
const ALL_NAMESPACES: u32 = 0xffff_ffff;

mod raw {
    /// `struct nvme_passthru_cmd`.
    #[repr(C)]
    #[derive(Debug, Default)]
    pub(super) struct Command {
        pub(super) opcode: u8,
        pub(super) flags: u8,
        pub(super) reserved: u16,
        pub(super) nsid: u32,
        pub(super) cdw2: u32,
        pub(super) cdw3: u32,
        pub(super) metadata: u64,
        pub(super) addr: u64,
        pub(super) metadata_len: u32,
        pub(super) data_len: u32,
        pub(super) cdw10: u32,
        pub(super) cdw11_to_15: [u32; 5],
        pub(super) timeout_ms: u32,
        pub(super) result: u32,
    }

    nix::ioctl_readwrite!(admin_command, b'N', 0x41, Command);
}

/// Reads the health log of the controller a namespace or controller device belongs to.
///
/// # Errors
/// When the descriptor is no NVMe device, or the controller refuses or does not answer in time.
#[expect(unsafe_code, reason = "an ioctl no crate wraps")]
pub fn health_log(device: impl AsFd) -> io::Result<[u8; HEALTH_LOG]> {
    let mut log = [0_u8; HEALTH_LOG];
    let mut command = raw::Command {
        opcode: GET_LOG_PAGE,
        nsid: ALL_NAMESPACES,
        addr: (&raw mut log).expose_provenance() as u64,
        data_len: 512,
        // The number of double words is counted from zero.
        cdw10: HEALTH | (512 / 4 - 1) << 16,
        timeout_ms: PATIENCE,
        ..raw::Command::default()
    };
    // SAFETY: the request reads and writes one `Command`, laid out as the kernel's, and writes `data_len` bytes at
    // `addr`, which is `log` of that length; both outlive the call, which is done with them when it returns.
    let status = unsafe { raw::admin_command(device.as_fd().as_raw_fd(), &raw mut command) }?;
    // Beyond zero it is the controller's own status.
    if status == 0 { Ok(log) } else { Err(io::Error::other(format!("NVMe status {status:#x}"))) }
}
