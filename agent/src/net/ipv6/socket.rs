//! Hears the router advertisements of one interface.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::unix::AsyncFd;

use super::advertisement::{self, Advertisement};
use crate::net::hear::hear;
use crate::sys::packet;

/// Longest advertisement taken; more does not fit a frame without fragments, which are forbidden (RFC 6980).
const MAX_PACKET: usize = 9216;

/// A socket that hears router advertisements alone.
#[derive(Debug)]
pub(in crate::net) struct RouterSocket {
    fd: AsyncFd<OwnedFd>,
}

impl RouterSocket {
    /// Listens on the interface of this index.
    ///
    /// # Errors
    /// When the kernel refuses: no permission, or no such interface.
    pub(in crate::net) fn open(index: u32) -> io::Result<Self> {
        Ok(Self { fd: packet::advertisement_socket(index)? })
    }

    /// The next advertisement.
    pub(in crate::net) async fn receive(&self) -> Advertisement {
        hear(&self.fd, MAX_PACKET, advertisement::read).await
    }
}
