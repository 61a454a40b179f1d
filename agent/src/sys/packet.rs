//! Packet sockets that hear of one interface only what they are for: DHCP answers, or router advertisements.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd};

use nix::libc;
use tokio::io::unix::AsyncFd;

/// Ethernet protocol numbers (IEEE 802 numbers, IANA).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Opens a non-blocking packet socket on the interface of this index that hears IPv4 UDP to port 68 alone.
///
/// The filter matters during a long run: without it the kernel would copy every packet of the image to us.
///
/// # Errors
/// When the kernel refuses: no permission, or no such interface.
pub fn dhcp_socket(index: u32) -> io::Result<AsyncFd<OwnedFd>> {
    // On IPv4 headers: protocol is UDP, not a later fragment, destination port 68.
    let insn = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = [
        insn(0x30, 0, 0, 9),
        insn(0x15, 0, 6, 17),
        insn(0x28, 0, 0, 6),
        insn(0x45, 4, 0, 0x1fff),
        insn(0xb1, 0, 0, 0),
        insn(0x48, 0, 0, 2),
        insn(0x15, 0, 1, 68),
        insn(0x06, 0, 0, 0xffff),
        insn(0x06, 0, 0, 0),
    ];
    asynchronous(bound_socket(index, IPV4, &mut program)?)
}

/// Opens a non-blocking packet socket on the interface of this index that hears router advertisements alone, as
/// whole IPv6 packets.
///
/// # Errors
/// When the kernel refuses: no permission, or no such interface.
pub fn advertisement_socket(index: u32) -> io::Result<AsyncFd<OwnedFd>> {
    // On IPv6 headers: next header is ICMPv6, its type is 134.
    let insn = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = [
        insn(0x30, 0, 0, 6),
        insn(0x15, 0, 3, 58),
        insn(0x30, 0, 0, 40),
        insn(0x15, 0, 1, 134),
        insn(0x06, 0, 0, 0xffff),
        insn(0x06, 0, 0, 0),
    ];
    asynchronous(bound_socket(index, IPV6, &mut program)?)
}

fn asynchronous(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is open, and as its only owner the AsyncFd closes it after deregistering it.
    Ok(unsafe { AsyncFd::register(fd) }?)
}

/// `program` is the filter; it is not changed.
fn bound_socket(index: u32, protocol: u16, program: &mut [libc::sock_filter]) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // Protocol 0: nothing is heard before the filter is in place and the socket is bound.
    // SAFETY: takes no pointers.
    let raw = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `raw` was just made, is open, and has no other owner.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };

    let len = u16::try_from(program.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let filter = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    // SAFETY: `filter` points at `program`, whose `len` entries outlive the call; the kernel copies them.
    let done = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            socklen(size_of::<libc::sock_fprog>()),
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }

    let address = link_address(index, protocol, [0; 6])?;
    // SAFETY: `address` is a valid sockaddr_ll of the length given.
    let done = unsafe {
        libc::bind(fd.as_raw_fd(), (&raw const address).cast(), socklen(size_of::<libc::sockaddr_ll>()))
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(fd) }
}

/// Sends an IPv4 packet to every station on the link.
///
/// # Errors
/// As the kernel says: the link is down, the queue is full.
pub fn send_broadcast(fd: &OwnedFd, index: u32, packet: &[u8]) -> io::Result<()> {
    let address = link_address(index, IPV4, [0xff; 6])?;
    // SAFETY: pointer and length describe `packet`; `address` is a valid sockaddr_ll of the length given.
    let sent = unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            0,
            (&raw const address).cast(),
            socklen(size_of::<libc::sockaddr_ll>()),
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn socklen(len: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(len).unwrap_or(libc::socklen_t::MAX)
}

fn link_address(index: u32, protocol: u16, to: [u8; 6]) -> io::Result<libc::sockaddr_ll> {
    // SAFETY: sockaddr_ll is plain integers, for which all zeroes is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or_default();
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = i32::try_from(index).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    address.sll_halen = 6;
    address.sll_addr[..6].copy_from_slice(&to);
    Ok(address)
}
