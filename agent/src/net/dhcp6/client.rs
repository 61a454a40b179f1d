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
/// After an error on the socket.
const PAUSE: Duration = Duration::from_millis(100);
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
    /// Open while answers are awaited, across calls: one that comes between two of them is not lost.
    socket: Option<Socket>,
    /// An address that turned out to be another machine's.
    taken: Option<Ipv6Addr>,
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
            socket: None,
            taken: None,
        }
    }

    /// Tells the client that another machine has this address, which [`next_change`](Self::next_change) gives back.
    pub fn taken(&mut self, address: Ipv6Addr) {
        self.taken = Some(address);
    }

    /// Tells the client that the link is there, for the first time or again.
    pub fn link_back(&mut self) {
        (self.state, _) = step(self.state.clone(), Event::LinkBack, self.start.elapsed());
    }

    /// Runs until the lease changes. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When no socket can be opened, as while the link-local address is still being checked. Call again later.
    pub async fn next_change(&mut self) -> io::Result<Change> {
        loop {
            let event = self.next_event().await?;
            let (state, actions) = step(self.state.clone(), event, self.start.elapsed());
            self.state = state;
            let mut change = None;
            for action in actions {
                match action {
                    Action::Send(payload) => self.send(&payload),
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

    /// What happens next. Who is idle needs no socket until the deadline.
    async fn next_event(&mut self) -> io::Result<Event> {
        if let Some(address) = self.taken.take() {
            return Ok(Event::Taken(address));
        }
        let (due, iaid) = (self.due(), self.state.iaid());
        if self.state.is_idle() {
            self.socket = None;
            tokio::time::sleep_until(due).await;
            return Ok(Event::Timeout);
        }
        let socket = self.socket()?;
        let mut buffer = vec![0_u8; MAX_DATAGRAM];
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(due) => return Ok(Event::Timeout),
                received = socket.receiver.recv_from(&mut buffer) => match received {
                    Ok((len, _)) => {
                        if let Some(answer) = buffer.get(..len).and_then(|bytes| reply::read(bytes, iaid)) {
                            return Ok(Event::Heard(Box::new(answer)));
                        }
                    }
                    // Told once for each thing that went wrong, such as a link that is down.
                    Err(_) => tokio::time::sleep(PAUSE).await,
                },
            }
        }
    }

    fn socket(&mut self) -> io::Result<&mut Socket> {
        match &mut self.socket {
            Some(open) => Ok(open),
            none => Ok(none.insert(Socket::open(self.source, self.link.index)?)),
        }
    }

    /// Without awaiting, so that no action is ever half done; the machine sends again by itself.
    fn send(&mut self, payload: &[u8]) {
        let interface = self.link.name.clone();
        let servers = SocketAddrV6::new(SERVERS, SERVER_PORT, 0, self.link.index);
        let sent = self.socket().and_then(|socket| socket.sender.send_to(payload, servers));
        if let Err(error) = sent {
            tracing::debug!(interface, %error, "DHCPv6 message not sent");
        }
    }

    fn due(&self) -> Instant {
        self.start.checked_add(self.state.deadline).unwrap_or_else(|| Instant::now() + FOREVER)
    }
}

/// One socket by two names: what is sent waits for nothing.
#[derive(Debug)]
struct Socket {
    sender: std::net::UdpSocket,
    receiver: UdpSocket,
}

impl Socket {
    fn open(source: Ipv6Addr, index: u32) -> io::Result<Self> {
        let sender = std::net::UdpSocket::bind(SocketAddrV6::new(source, CLIENT_PORT, 0, index))?;
        sender.set_nonblocking(true)?;
        let receiver = UdpSocket::from_std(sender.try_clone()?)?;
        Ok(Self { sender, receiver })
    }
}
