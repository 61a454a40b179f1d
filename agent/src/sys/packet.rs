//! Packet sockets that hear of one interface only what they are for: DHCP answers, who has an address, router
//! advertisements, or what the switch at the other end says of itself.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd};

use nix::libc;
use tokio::io::unix::AsyncFd;

/// Ethernet protocol numbers (IEEE 802 numbers, IANA).
pub const IPV4: u16 = 0x0800;
/// The same, for address resolution.
pub const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const LLDP: u16 = 0x88cc;
/// Where LLDP is sent, which no bridge passes on (IEEE 802.1AB, clause 7.1).
const NEAREST_BRIDGE: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e];

/// Opens a non-blocking packet socket on the interface of this index that hears IPv4 UDP to port 68 alone.
///
/// The filter matters during a long run: without it the kernel would copy every packet of the image to us.
///
/// # Errors
/// When the kernel refuses: no permission, or no such interface.
pub fn dhcp_socket(index: u32) -> io::Result<AsyncFd<OwnedFd>> {
    // On IPv4 headers: protocol is UDP, not a later fragment, destination port 68.
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
    let fd = unbound()?;
    filter(&fd, &mut program)?;
    bind(fd, index, IPV4)
}

/// Opens a non-blocking packet socket on the interface of this index that hears ARP alone, whoever it is for.
///
/// # Errors
/// When the kernel refuses: no permission, or no such interface.
pub fn arp_socket(index: u32) -> io::Result<AsyncFd<OwnedFd>> {
    bind(unbound()?, index, ARP)
}

/// Opens a non-blocking packet socket on the interface of this index that hears router advertisements alone, as
/// whole IPv6 packets.
///
/// # Errors
/// When the kernel refuses: no permission, or no such interface.
pub fn advertisement_socket(index: u32) -> io::Result<AsyncFd<OwnedFd>> {
    // On IPv6 headers: next header is ICMPv6, its type is 134.
    let mut program = [
        insn(0x30, 0, 0, 6),
        insn(0x15, 0, 3, 58),
        insn(0x30, 0, 0, 40),
        insn(0x15, 0, 1, 134),
        insn(0x06, 0, 0, 0xffff),
        insn(0x06, 0, 0, 0),
    ];
    let fd = unbound()?;
    filter(&fd, &mut program)?;
    bind(fd, index, IPV6)
}

/// Opens a non-blocking packet socket on the interface of this index, which may still be down, that hears LLDP alone,
/// as the payloads of its frames.
///
/// # Errors
/// When the kernel refuses: no permission, or no such interface.
pub fn lldp_socket(index: u32) -> io::Result<AsyncFd<OwnedFd>> {
    let fd = unbound()?;
    let mut address = [0; 8];
    address[..6].copy_from_slice(&NEAREST_BRIDGE);
    let membership = libc::packet_mreq {
        mr_ifindex: interface(index)?,
        mr_type: u16::try_from(libc::PACKET_MR_MULTICAST).unwrap_or_default(),
        mr_alen: 6,
        mr_address: address,
    };
    // SAFETY: `membership` is plain integers.
    unsafe { set_option(&fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership) }?;
    bind(fd, index, LLDP)
}

/// One instruction of a filter (Linux kernel, Documentation/networking/filter.rst).
const fn insn(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// A socket of protocol 0: it hears nothing before it is bound.
fn unbound() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers.
    let raw = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `raw` was just made, is open, and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// `program` is not changed.
fn filter(fd: &OwnedFd, program: &mut [libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let filter = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    // SAFETY: `filter` points at `program`, whose `len` entries outlive the call; the kernel copies them.
    unsafe { set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter) }
}

/// # Safety
/// Pointers in `value` must be valid for what the option does with them.
unsafe fn set_option<T>(fd: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: pointer and length describe one `T`, which the kernel copies; for what it points at the caller answers.
    let done = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value, socklen(size_of::<T>())) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn bind(fd: OwnedFd, index: u32, protocol: u16) -> io::Result<AsyncFd<OwnedFd>> {
    let address = link_address(index, protocol, [0; 6])?;
    // SAFETY: `address` is a valid sockaddr_ll of the length given.
    let done = unsafe {
        libc::bind(fd.as_raw_fd(), (&raw const address).cast(), socklen(size_of::<libc::sockaddr_ll>()))
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and as its only owner the AsyncFd closes it after deregistering it.
    Ok(unsafe { AsyncFd::register(fd) }?)
}

/// Sends a packet of this protocol to every station on the link.
///
/// # Errors
/// As the kernel says: the link is down, the queue is full.
pub fn send_broadcast(fd: &OwnedFd, index: u32, protocol: u16, packet: &[u8]) -> io::Result<()> {
    let address = link_address(index, protocol, [0xff; 6])?;
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

fn interface(index: u32) -> io::Result<i32> {
    i32::try_from(index).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

fn link_address(index: u32, protocol: u16, to: [u8; 6]) -> io::Result<libc::sockaddr_ll> {
    // SAFETY: sockaddr_ll is plain integers, for which all zeroes is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or_default();
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface(index)?;
    address.sll_halen = 6;
    address.sll_addr[..6].copy_from_slice(&to);
    Ok(address)
}
