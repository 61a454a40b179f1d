//! Runs the [`machine`](super::machine) on a real interface.

use std::io;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::Instant;

use super::machine::{Action, Event, State, Want, step};
use super::{Lease6, reply};
use crate::net::links::Link;

/// Port of DHCPv6 clients.
const CLIENT_PORT: u16 = 546;
/// Port of DHCPv6 servers.
const SERVER_PORT: u16 = 547;
/// All servers and relays of a link (RFC 8415, section 7.1).
const SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
/// Largest answer taken.
const MAX_DATAGRAM: usize = 2048;
/// A wait that is longer than any run.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// What became of the lease.
#[derive(Debug)]
pub enum Change {
    /// Given or extended.
    Bound(Lease6),
    /// The addresses must go.
    Lost,
    /// There will be no lease.
    GaveUp {
        /// Whether a server offered anything at all.
        offered: bool,
    },
}

/// A client on one interface.
#[derive(Debug)]
pub struct Client {
    link: Link,
    source: Ipv6Addr,
    state: State,
    start: Instant,
}

impl Client {
    /// A client that speaks from `source`, the interface's link-local address.
    pub fn new(link: &Link, source: Ipv6Addr, want: Want, patience: Duration) -> Self {
        // Before the kernel's random numbers are ready, the address at least tells machines apart.
        let mac = link.mac.as_bytes().iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
        let seed = getrandom::u64().unwrap_or(mac);
        Self {
            link: link.clone(),
            source,
            state: State::new(link.mac, want, patience, seed, Duration::ZERO),
            start: Instant::now(),
        }
    }

    /// Tells the client that the link was away and is back.
    pub fn link_back(&mut self) {
        (self.state, _) = step(self.state.clone(), Event::LinkBack, self.start.elapsed());
    }

    /// Runs until the lease changes. Between changes no socket is open. Dropping the future loses no more than a
    /// message, which is sent again in time.
    ///
    /// # Errors
    /// When no socket can be opened, as while the link-local address is still being checked. Call again later.
    pub async fn next_change(&mut self) -> io::Result<Change> {
        // A bound client only waits; it needs no socket until its deadline.
        if self.state.lease().is_some() || self.state.deadline == Duration::MAX {
            tokio::time::sleep_until(self.due()).await;
        }
        let sender =
            std::net::UdpSocket::bind(SocketAddrV6::new(self.source, CLIENT_PORT, 0, self.link.index))?;
        sender.set_nonblocking(true)?;
        let socket = UdpSocket::from_std(sender.try_clone()?)?;
        let servers = SocketAddrV6::new(SERVERS, SERVER_PORT, 0, self.link.index);
        let mut buffer = vec![0_u8; MAX_DATAGRAM];
        loop {
            let event = tokio::select! {
                () = tokio::time::sleep_until(self.due()) => Event::Timeout,
                received = socket.recv_from(&mut buffer) => {
                    let answer = received.ok().and_then(|(len, _)| reply::read(&buffer[..len], self.state.iaid()));
                    match answer {
                        Some(answer) => Event::Heard(Box::new(answer)),
                        None => continue,
                    }
                }
            };
            let (state, actions) = step(self.state.clone(), event, self.start.elapsed());
            self.state = state;
            let mut change = None;
            for action in actions {
                match action {
                    Action::Send(payload) => {
                        // Without awaiting, so that no action is ever half done; the machine sends again by itself.
                        if let Err(error) = sender.send_to(&payload, servers) {
                            tracing::debug!(interface = %self.link.name, %error, "DHCPv6 message not sent");
                        }
                    }
                    Action::Bound(lease) => change = Some(Change::Bound(lease)),
                    Action::Lost => change = Some(Change::Lost),
                    Action::GiveUp => change = Some(Change::GaveUp { offered: self.state.offered }),
                }
            }
            if let Some(change) = change {
                return Ok(change);
            }
        }
    }

    fn due(&self) -> Instant {
        self.start.checked_add(self.state.deadline).unwrap_or_else(|| Instant::now() + FOREVER)
    }
}
