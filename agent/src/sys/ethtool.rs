//! Requests to network interfaces (`linux/ethtool.h`).

use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd as _;

use nix::libc;

const PERMANENT_ADDRESS: u32 = 0x20;
/// Room for the longest address.
const ROOM: usize = 32;

/// `struct ethtool_perm_addr`.
#[repr(C)]
struct PermanentAddress {
    command: u32,
    size: u32,
    data: [u8; ROOM],
}

/// The address an interface was made with, whatever it has been set to since; all zeroes where its driver knows none.
///
/// # Errors
/// When there is no such interface, or its driver does not say.
#[expect(unsafe_code, reason = "an ioctl no crate wraps")]
pub fn permanent_address(interface: &str) -> io::Result<[u8; 6]> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    let mut answer = PermanentAddress { command: PERMANENT_ADDRESS, size: 32, data: [0; ROOM] };
    // SAFETY: ifreq is integers and pointers, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    // The last byte stays zero.
    if interface.len() >= request.ifr_name.len() {
        return Err(invalid());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_data = (&raw mut answer).cast();
    // SAFETY: `request` names the interface by a text that ends with a zero, and points at `answer`, laid out as the
    // kernel's with room for `size` bytes; both outlive the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    match answer.size {
        6 => Ok(std::array::from_fn(|n| answer.data[n])),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}
