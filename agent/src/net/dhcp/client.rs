//! Runs the [`machine`](super::machine) on a real interface.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use dhcproto::v4::Message;
use farrier_shared::contract::MacAddress;
use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

use super::machine::{Action, Destination, Event, State, step};
use super::{Lease, reply, wire};
use crate::net::arp;
use crate::net::hear::hear;
use crate::net::links::Link;
use crate::sys::packet;

/// Largest packet taken.
const MAX_PACKET: usize = 2048;
/// A wait that is longer than any run.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
pub enum DhcpError {
    /// No server offered anything.
    #[error(
        "no DHCP offer on {interface} within {patience:?}; check cable, VLAN and DHCP server, or give beskar7.ip"
    )]
    NoOffer {
        /// The interface.
        interface: String,
        /// How long was waited.
        patience: Duration,
    },
    /// Servers offered, and then did not acknowledge.
    #[error("DHCP servers on {interface} offered an address and never acknowledged it within {patience:?}")]
    NoAck {
        /// The interface.
        interface: String,
        /// How long was waited.
        patience: Duration,
    },
    /// Every address that was offered is in use.
    #[error(
        "{interface} was leased {address}, which {holder} has already; end one of the two, or exclude the address from DHCP"
    )]
    Taken {
        /// The interface.
        interface: String,
        /// The address.
        address: Ipv4Addr,
        /// Who has it.
        holder: MacAddress,
    },
    /// The socket could not be opened.
    #[error("no packet socket on {interface}: {source}; is af_packet built or loaded?")]
    Socket {
        /// The interface.
        interface: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Looks for a lease until there is one or patience is at an end.
///
/// # Errors
/// See [`DhcpError`].
pub async fn acquire(link: &Link, patience: Duration) -> Result<(Lease, Client), DhcpError> {
    let mut client = Client::new(link, patience);
    match client.next_change().await? {
        Change::Bound(lease) => Ok((lease, client)),
        Change::Lost | Change::GaveUp => Err(client.no_lease()),
    }
}

/// What became of the lease.
#[derive(Debug)]
pub enum Change {
    /// Leased or extended.
    Bound(Lease),
    /// The address must go.
    Lost,
    /// There will be no lease.
    GaveUp,
}

/// A client on one interface.
#[derive(Debug)]
pub struct Client {
    link: Link,
    patience: Duration,
    state: State,
    start: Instant,
    /// Open while answers are awaited, across calls: one that comes between two of them is not lost.
    socket: Option<Socket>,
}

impl Client {
    /// A client that gives up after `patience`.
    pub fn new(link: &Link, patience: Duration) -> Self {
        let seed = getrandom::u64().unwrap_or_else(|_| {
            // Before the kernel's random numbers are ready, the address at least tells machines apart.
            link.mac.as_bytes().iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte))
        });
        Self {
            link: link.clone(),
            patience,
            state: State::new(link.mac, patience, seed, Duration::ZERO),
            start: Instant::now(),
            socket: None,
        }
    }

    /// Tells the client that the link is there, for the first time or again.
    pub fn link_back(&mut self) {
        (self.state, _) = step(self.state.clone(), Event::LinkBack, self.start.elapsed());
    }

    /// Whether an address is leased.
    pub fn has_lease(&self) -> bool {
        self.state.lease().is_some()
    }

    /// Why there is no lease, once the client [gave up](Change::GaveUp).
    pub fn no_lease(&self) -> DhcpError {
        let (interface, patience) = (self.link.name.clone(), self.patience);
        match self.state.taken {
            Some((address, holder)) => DhcpError::Taken { interface, address, holder },
            None if self.state.offered => DhcpError::NoAck { interface, patience },
            None => DhcpError::NoOffer { interface, patience },
        }
    }

    fn due(&self) -> Instant {
        self.start.checked_add(self.state.deadline).unwrap_or_else(|| Instant::now() + FOREVER)
    }

    /// Runs until the lease changes. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When the socket cannot be opened.
    pub async fn next_change(&mut self) -> Result<Change, DhcpError> {
        loop {
            let event = self.next_event().await?;
            if let Event::Checked(Some(holder)) = &event {
                tracing::warn!(interface = %self.link.name, %holder, "the leased address is another machine's");
            }
            let (state, actions) = step(self.state.clone(), event, self.start.elapsed());
            self.state = state;
            let mut change = None;
            for action in actions {
                match action {
                    Action::Send { payload, to } => self.send(&payload, to),
                    Action::Bound(lease) => change = Some(Change::Bound(lease)),
                    Action::Lost => change = Some(Change::Lost),
                    Action::GiveUp => change = Some(Change::GaveUp),
                }
            }
            if let Some(change) = change {
                return Ok(change);
            }
        }
    }

    /// What happens next. Who is idle needs no socket until the deadline.
    async fn next_event(&mut self) -> Result<Event, DhcpError> {
        if self.state.is_idle() {
            self.socket = None;
            tokio::time::sleep_until(self.due()).await;
            return Ok(Event::Timeout);
        }
        if let Some(lease) = self.state.unchecked() {
            let router = lease.plan.gateway();
            return Ok(Event::Checked(arp::holder(&self.link, lease.plan.address, router).await));
        }
        let (due, interface) = (self.due(), self.link.name.clone());
        let socket = self.socket().map_err(|source| DhcpError::Socket { interface, source })?;
        Ok(tokio::select! {
            () = tokio::time::sleep_until(due) => Event::Timeout,
            message = socket.receive() => Event::Heard(message),
        })
    }

    fn socket(&mut self) -> io::Result<&mut Socket> {
        match &mut self.socket {
            Some(open) => Ok(open),
            none => Ok(none.insert(Socket::open(&self.link)?)),
        }
    }

    /// Sends, or says why not; the machine sends again by itself.
    fn send(&mut self, payload: &[u8], to: Destination) {
        let interface = self.link.name.clone();
        let own = self.state.lease().map(|lease| lease.plan.address);
        let sent = self.socket().and_then(|socket| match (to, own) {
            (Destination::Server(server), Some(own)) => socket.unicast(&interface, own, server, payload),
            _ => socket.broadcast(payload),
        });
        if let Err(error) = sent {
            tracing::debug!(interface, %error, "DHCP message not sent");
        }
    }
}

#[derive(Debug)]
struct Socket {
    fd: AsyncFd<OwnedFd>,
    index: u32,
    /// The kernel's, while answers to what it sent may come: it would refuse them if nobody had the port. They are
    /// heard by `fd` all the same.
    routed: Option<UdpSocket>,
}

impl Socket {
    fn open(link: &Link) -> io::Result<Self> {
        Ok(Self { fd: packet::dhcp_socket(link.index)?, index: link.index, routed: None })
    }

    fn broadcast(&self, payload: &[u8]) -> io::Result<()> {
        let packet = wire::broadcast(payload).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        packet::send_broadcast(self.fd.get_ref(), self.index, packet::IPV4, &packet)
    }

    /// Through the kernel's stack, so that a server behind a router is reached.
    fn unicast(&mut self, interface: &str, from: Ipv4Addr, to: Ipv4Addr, payload: &[u8]) -> io::Result<()> {
        // The last one, if any, has the port.
        self.routed = None;
        let socket = UdpSocket::bind((from, wire::CLIENT_PORT))?;
        setsockopt(&socket, sockopt::BindToDevice, &interface.into())?;
        socket.send_to(payload, (to, wire::SERVER_PORT))?;
        self.routed = Some(socket);
        Ok(())
    }

    /// The next message that can be read as DHCP.
    async fn receive(&self) -> Box<Message> {
        hear(&self.fd, MAX_PACKET, |packet| wire::payload(packet).and_then(reply::read).map(Box::new)).await
    }
}
