//! Messages to the management controller through the kernel's IPMI device (`linux/ipmi.h`).

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

use nix::libc::c_long;

/// Longest message either way.
const LONGEST: u16 = 272;
/// Bytes of [`raw::Address`].
const ADDRESS_LEN: u32 = 40;
/// The controller itself, and the channel it is always on.
const SYSTEM_INTERFACE: i32 = 0x0c;
const BMC_CHANNEL: i16 = 0x0f;
/// Kind of a received message: the response to a request of ours.
const RESPONSE: i32 = 1;

/// The structures and requests as the kernel has them.
mod raw {
    use nix::libc::c_long;

    /// `struct ipmi_system_interface_addr`, with the room of the largest kind of address (`struct ipmi_addr`).
    #[repr(C)]
    #[derive(Debug, Default)]
    pub(super) struct Address {
        pub(super) kind: i32,
        pub(super) channel: i16,
        pub(super) lun: u8,
        pub(super) rest: [u8; 32],
    }

    /// `struct ipmi_msg`.
    #[repr(C)]
    #[derive(Debug)]
    pub(super) struct Message {
        pub(super) netfn: u8,
        pub(super) command: u8,
        pub(super) len: u16,
        pub(super) data: *mut u8,
    }

    /// `struct ipmi_req`.
    #[repr(C)]
    #[derive(Debug)]
    pub(super) struct Send {
        pub(super) address: *mut Address,
        pub(super) address_len: u32,
        pub(super) id: c_long,
        pub(super) message: Message,
    }

    /// `struct ipmi_recv`.
    #[repr(C)]
    #[derive(Debug)]
    pub(super) struct Receive {
        pub(super) kind: i32,
        pub(super) address: *mut Address,
        pub(super) address_len: u32,
        pub(super) id: c_long,
        pub(super) message: Message,
    }

    // The kernel's header calls a request that only carries data to it a read.
    nix::ioctl_read!(send_command, b'i', 13, Send);
    nix::ioctl_readwrite!(receive_message, b'i', 12, Receive);
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The identifier its request was sent with.
    pub id: c_long,
    /// Completion code and data.
    pub data: Vec<u8>,
}

/// Sends a request to the controller under an identifier that its response will carry. Does not wait.
///
/// # Errors
/// When the descriptor is no IPMI device, the request is too long, or the driver has given the controller up.
#[expect(unsafe_code, reason = "an ioctl no crate wraps")]
pub fn send(device: impl AsFd, id: c_long, netfn: u8, command: u8, data: &[u8]) -> io::Result<()> {
    let mut data = data.to_vec();
    let len = u16::try_from(data.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut address =
        raw::Address { kind: SYSTEM_INTERFACE, channel: BMC_CHANNEL, ..raw::Address::default() };
    let mut request = raw::Send {
        address: &raw mut address,
        address_len: ADDRESS_LEN,
        id,
        message: raw::Message { netfn, command, len, data: data.as_mut_ptr() },
    };
    // SAFETY: the request reads one `Send`, laid out as the kernel's, the address it points at, which is as long as
    // it says, and `len` bytes of `data`; all outlive the call, and the kernel keeps copies only.
    unsafe { raw::send_command(device.as_fd().as_raw_fd(), &raw mut request) }?;
    Ok(())
}

/// Takes the next message off the device's queue; [`None`] for one that is no response. Does not wait.
///
/// # Errors
/// `EAGAIN` when there is none; else when the descriptor is no IPMI device.
#[expect(unsafe_code, reason = "an ioctl no crate wraps")]
pub fn receive(device: impl AsFd) -> io::Result<Option<Received>> {
    let mut data = [0_u8; LONGEST as usize];
    let mut address = raw::Address::default();
    let mut received = raw::Receive {
        kind: 0,
        address: &raw mut address,
        address_len: ADDRESS_LEN,
        id: 0,
        message: raw::Message { netfn: 0, command: 0, len: LONGEST, data: data.as_mut_ptr() },
    };
    // SAFETY: the request reads and writes one `Receive`, laid out as the kernel's, and writes at most as many bytes
    // to what it points at as the two lengths say, which are those of `address` and `data`; all outlive the call.
    unsafe { raw::receive_message(device.as_fd().as_raw_fd(), &raw mut received) }?;
    let len = usize::from(received.message.len.min(LONGEST));
    Ok((received.kind == RESPONSE).then(|| Received { id: received.id, data: data[..len].to_vec() }))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::mem::size_of;

    use super::*;

    #[test]
    fn the_structures_have_the_kernels_sizes() {
        // Of a 64-bit kernel; the numbers of the requests hold the last two.
        assert_eq!(
            (size_of::<raw::Message>(), size_of::<raw::Send>(), size_of::<raw::Receive>()),
            (16, 40, 48)
        );
        assert_eq!(size_of::<raw::Address>(), ADDRESS_LEN as usize);
    }

    #[test]
    fn what_is_no_ipmi_device_is_an_error() {
        let null = File::open("/dev/null").unwrap();
        assert!(send(&null, 1, 6, 1, &[]).is_err());
        assert!(receive(&null).is_err());
    }
}
