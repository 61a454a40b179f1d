//! The kernel's IPMI device as a transport.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::c_long;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::lan::{Transport, TransportError};
use super::message::Request;
use crate::sys::ipmi;

/// How long one response may take. Controllers answer within milliseconds, or, busy with the host's start, within a
/// second; one that hangs keeps the kernel waiting for much longer.
const PATIENCE: Duration = Duration::from_secs(3);

/// An open device.
#[derive(Debug)]
pub(super) struct Device {
    file: File,
    last: c_long,
}

impl Device {
    /// Opens the device.
    ///
    /// # Errors
    /// `ENOENT` on a machine without controller or driver.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::options().read(true).write(true).open(path)?, last: 0 })
    }

    /// Waits for the response to the last request; [`None`] when it does not come by `until`.
    fn response(&self, until: Instant) -> io::Result<Option<Vec<u8>>> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut queue = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
            match poll(&mut queue, timeout) {
                Ok(0) => return Ok(None),
                Ok(_) if !queue[0].any().unwrap_or(false) => return Err(io::ErrorKind::BrokenPipe.into()),
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(errno.into()),
            }
            // Messages of other kinds, and responses that came too late for their requests, are in the queue too.
            match ipmi::receive(&self.file) {
                Ok(Some(received)) if received.id == self.last => return Ok(Some(received.data)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Transport for Device {
    fn exchange(&mut self, request: &Request) -> Result<Vec<u8>, TransportError> {
        let (netfn, command) = (request.netfn, request.command);
        self.last += 1;
        let response = ipmi::send(&self.file, self.last, netfn, command, &request.data)
            .and_then(|()| self.response(Instant::now() + PATIENCE))
            .map_err(|source| TransportError::Device { netfn, command, source })?;
        response.ok_or(TransportError::Silent { netfn, command, waited: PATIENCE })
    }
}
