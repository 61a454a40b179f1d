//! A packet socket that hears only what the switch at the other end says of itself.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use nix::libc;
use tokio::io::unix::AsyncFd;

/// EtherType of LLDP (IEEE 802.1AB, clause 7.3).
const LLDP: u16 = 0x88cc;
/// Where it is sent, which no bridge passes on (clause 7.1).
const NEAREST_BRIDGE: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e];
/// Longest payload taken: that of a plain Ethernet frame.
const LONGEST: usize = 1500;

/// Hears LLDP on one interface.
#[derive(Debug)]
pub struct Socket {
    fd: AsyncFd<OwnedFd>,
}

impl Socket {
    /// Opens one on the interface of this index, which may still be down.
    ///
    /// # Errors
    /// When the kernel refuses: no permission, or no such interface.
    pub fn open(index: u32) -> io::Result<Self> {
        let fd = bound(index)?;
        // SAFETY: the descriptor is open, and as its only owner the AsyncFd closes it after deregistering it.
        Ok(Self { fd: unsafe { AsyncFd::register(fd) }? })
    }

    /// The next frame's payload.
    ///
    /// # Errors
    /// As the kernel says; `ENETDOWN` once for each time the interface goes down.
    pub async fn receive(&self) -> io::Result<Vec<u8>> {
        loop {
            let mut ready = self.fd.readable().await?;
            let received = ready.try_io(|fd| {
                let mut payload = vec![0; LONGEST];
                let flags = nix::sys::socket::MsgFlags::MSG_DONTWAIT;
                let length = nix::sys::socket::recv(fd.get_ref().as_raw_fd(), &mut payload, flags)?;
                payload.truncate(length);
                Ok(payload)
            });
            if let Ok(result) = received {
                return result;
            }
        }
    }
}

fn bound(index: u32) -> io::Result<OwnedFd> {
    let index = i32::try_from(index).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // Protocol 0: nothing is heard before the socket is bound.
    // SAFETY: takes no pointers.
    let raw = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `raw` was just made, is open, and has no other owner.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };

    let mut address = [0; 8];
    address[..6].copy_from_slice(&NEAREST_BRIDGE);
    let membership = libc::packet_mreq {
        mr_ifindex: index,
        mr_type: u16::try_from(libc::PACKET_MR_MULTICAST).unwrap_or_default(),
        mr_alen: 6,
        mr_address: address,
    };
    // SAFETY: pointer and length describe `membership`, which the kernel copies.
    let done = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const membership).cast(),
            length(size_of::<libc::packet_mreq>()),
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }

    // SAFETY: sockaddr_ll is plain integers, for which all zeroes is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or_default();
    address.sll_protocol = LLDP.to_be();
    address.sll_ifindex = index;
    // SAFETY: `address` is a valid sockaddr_ll of the length given.
    let done = unsafe {
        libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length(size_of::<libc::sockaddr_ll>()))
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(fd) }
}

fn length(bytes: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(bytes).unwrap_or(libc::socklen_t::MAX)
}
