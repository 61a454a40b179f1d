//! Hears the router advertisements of one interface.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use tokio::io::unix::AsyncFd;

use super::advertisement::{self, Advertisement};
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

    /// The next advertisement. Never fails: a link that goes down comes up again, or the caller's deadline passes.
    pub(in crate::net) async fn receive(&self) -> Advertisement {
        let mut buffer = vec![0_u8; MAX_PACKET];
        loop {
            let Ok(mut ready) = self.fd.readable().await else { return std::future::pending().await };
            match ready.try_io(|fd| Ok(nix::unistd::read(fd.get_ref().as_fd(), &mut buffer)?)) {
                Ok(Ok(len)) => {
                    if let Some(heard) = advertisement::read(&buffer[..len.min(buffer.len())]) {
                        return heard;
                    }
                }
                // ENETDOWN is told once per change of the link; a short wait keeps a flapping one cheap.
                Ok(Err(_)) => tokio::time::sleep(Duration::from_millis(100)).await,
                Err(_would_block) => {}
            }
        }
    }
}
