//! What goes into the [`machine`](super::machine) and what comes out of it.

use std::net::Ipv6Addr;

use super::lease::Lease6;
use super::reply::Answer;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// An address, with settings.
    Address,
    /// Settings alone: the address comes from elsewhere.
    Settings,
}

/// What happens to the client.
#[derive(Clone, Debug)]
pub enum Event {
    /// The deadline passed.
    Timeout,
    /// A message was heard, ours or not.
    Heard(Box<Answer>),
    /// Another machine has this address, as the kernel found out.
    Taken(Ipv6Addr),
    /// The link is there: for the first time, or again after it was away, perhaps as another.
    LinkBack,
}

/// What the caller is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send these bytes to all servers of the link.
    Send(Vec<u8>),
    /// Addresses or settings were given, or extended.
    Bound(Lease6),
    /// The addresses must not be used any longer.
    Lost,
    /// Patience is at an end.
    GiveUp,
}
