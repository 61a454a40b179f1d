//! The DHCP client as a pure function: `(state, event, now) → (state, actions)` (RFC 2131, section 4.4).
//!
//! Times are durations since some fixed start of the caller's choice. Nothing here reads a clock or a socket;
//! the caller delivers [`Event::Timeout`] once [`State::deadline`] has passed.

use std::net::Ipv4Addr;
use std::time::Duration;

use dhcproto::v4::{Message, MessageType};
use farrier_shared::contract::MacAddress;

use super::lease::Lease;
use super::message::{Envelope, is_ours};
use crate::net::jitter::{Jitter, back_off};

/// Waits between unanswered messages, in seconds; the last repeats. Short at first, for a link that was just
/// coming up, and never longer than a port that comes out of spanning-tree learning should be kept waiting.
const BACK_OFF: [u64; 4] = [1, 2, 4, 8];
/// Unanswered requests for one offer before we look for another.
const MAX_REQUESTS: u32 = 4;
/// From this try on, ask for answers by broadcast.
const BROADCAST_FROM: u32 = 3;
/// Shortest wait between renewals (RFC 2131, section 4.4.5).
const MIN_RENEW_WAIT: Duration = Duration::from_secs(60);
/// Wait after a NAK, so that a confused server is not flooded.
const NAK_WAIT: Duration = Duration::from_secs(1);

/// What happens to the client.
#[derive(Debug)]
pub enum Event {
    /// The deadline passed.
    Timeout,
    /// A message was heard, ours or not.
    Heard(Box<Message>),
    /// The link was away and is back, perhaps as another.
    LinkBack,
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To everybody on the link, from no address.
    Broadcast,
    /// To one server, from the leased address.
    Server(Ipv4Addr),
}

/// What the caller is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send these bytes.
    Send {
        /// The message.
        payload: Vec<u8>,
        /// Where to.
        to: Destination,
    },
    /// An address was leased, or its lease extended.
    Bound(Lease),
    /// The address must not be used any longer.
    Lost,
    /// Patience is at an end.
    GiveUp,
}

/// The client between two events.
#[derive(Clone, Debug)]
pub struct State {
    mac: MacAddress,
    patience: Duration,
    jitter: Jitter,
    xid: u32,
    /// When looking for a lease began.
    began: Duration,
    /// When [`Event::Timeout`] is due; [`Duration::MAX`] for never.
    pub deadline: Duration,
    phase: Phase,
    /// Whether any server ever made an offer, for the reason when there is no lease.
    pub offered: bool,
}

#[derive(Clone, Debug)]
enum Phase {
    Selecting { tries: u32 },
    Requesting { offer: Lease, tries: u32, asked: Duration },
    Bound { lease: Lease, since: Duration },
    Renewing { lease: Lease, since: Duration, asked: Duration },
    Rebinding { lease: Lease, since: Duration, asked: Duration },
    Ended,
}

impl State {
    /// A client that starts at once and gives up after `patience`. `seed` makes transaction ids and jitter.
    pub fn new(mac: MacAddress, patience: Duration, seed: u64, now: Duration) -> Self {
        let mut state = Self {
            mac,
            patience,
            jitter: Jitter::new(seed),
            xid: 0,
            began: now,
            deadline: now,
            phase: Phase::Selecting { tries: 0 },
            offered: false,
        };
        state.new_xid();
        state
    }

    /// The lease in force.
    pub fn lease(&self) -> Option<&Lease> {
        match &self.phase {
            Phase::Bound { lease, .. } | Phase::Renewing { lease, .. } | Phase::Rebinding { lease, .. } => {
                Some(lease)
            }
            _ => None,
        }
    }

    fn new_xid(&mut self) {
        self.xid = u32::try_from(self.jitter.next() >> 32).unwrap_or_default();
    }

    /// The wait after the given number of tries, up to half a second more or less.
    fn back_off(&mut self, tries: u32) -> Duration {
        let jitter = Duration::from_millis(self.jitter.next() % 1000);
        (Duration::from_secs(back_off(&BACK_OFF, tries)) + jitter).saturating_sub(Duration::from_millis(500))
    }

    fn envelope(&self, now: Duration, broadcast: bool) -> Envelope {
        Envelope { mac: self.mac, xid: self.xid, elapsed: now.saturating_sub(self.began), broadcast }
    }

    fn select(mut self, at: Duration) -> Self {
        self.new_xid();
        self.phase = Phase::Selecting { tries: 0 };
        self.deadline = at;
        self
    }

    /// Has every server of the link asked whether the lease still holds there, or goes on looking at once. Who is
    /// on another network now is told so by a NAK.
    fn link_back(mut self, now: Duration) -> Self {
        match self.phase.clone() {
            Phase::Bound { lease, since } | Phase::Renewing { lease, since, .. } => {
                self.new_xid();
                self.phase = Phase::Rebinding { lease, since, asked: now };
            }
            Phase::Rebinding { .. } => {}
            Phase::Selecting { .. } => self.phase = Phase::Selecting { tries: 0 },
            Phase::Requesting { .. } | Phase::Ended => return self,
        }
        self.deadline = now;
        self
    }

    fn bound(mut self, lease: Lease, since: Duration) -> (Self, Vec<Action>) {
        self.deadline =
            if lease.duration.is_none() { Duration::MAX } else { since.saturating_add(lease.renew_after) };
        self.phase = Phase::Bound { lease: lease.clone(), since };
        (self, vec![Action::Bound(lease)])
    }

    /// Asks to keep the lease, and plans the next try half way to `limit`.
    fn extend(mut self, lease: Lease, since: Duration, now: Duration, renewing: bool) -> (Self, Vec<Action>) {
        let limit = since.saturating_add(if renewing {
            lease.rebind_after
        } else {
            lease.duration.unwrap_or(Duration::MAX)
        });
        // A lease without end is only asked about after the link was away: half of for ever would be never.
        let wait = if lease.duration.is_some() { limit.saturating_sub(now) / 2 } else { Duration::ZERO };
        self.deadline = limit.min(now.saturating_add(wait.max(MIN_RENEW_WAIT)));
        let to = if renewing { Destination::Server(lease.server) } else { Destination::Broadcast };
        let payload =
            Envelope { elapsed: Duration::ZERO, ..self.envelope(now, false) }.renew(lease.plan.address);
        self.phase = if renewing {
            Phase::Renewing { lease, since, asked: now }
        } else {
            Phase::Rebinding { lease, since, asked: now }
        };
        (self, vec![Action::Send { payload, to }])
    }
}

/// One step of the client.
pub fn step(state: State, event: Event, now: Duration) -> (State, Vec<Action>) {
    match event {
        Event::Timeout if now >= state.deadline => timeout(state, now),
        Event::Timeout => (state, Vec::new()),
        Event::Heard(message) if is_ours(&message, state.xid, state.mac) => heard(state, &message, now),
        Event::Heard(_) => (state, Vec::new()),
        Event::LinkBack => (state.link_back(now), Vec::new()),
    }
}

fn timeout(mut state: State, now: Duration) -> (State, Vec<Action>) {
    match state.phase.clone() {
        Phase::Selecting { .. } | Phase::Requesting { .. }
            if now.saturating_sub(state.began) >= state.patience =>
        {
            state.phase = Phase::Ended;
            state.deadline = Duration::MAX;
            (state, vec![Action::GiveUp])
        }
        Phase::Selecting { tries } => {
            let payload = state.envelope(now, tries + 1 >= BROADCAST_FROM).discover();
            let end = state.began.saturating_add(state.patience);
            state.deadline = now.saturating_add(state.back_off(tries + 1)).min(end);
            state.phase = Phase::Selecting { tries: tries + 1 };
            (state, vec![Action::Send { payload, to: Destination::Broadcast }])
        }
        Phase::Requesting { tries, .. } if tries >= MAX_REQUESTS => timeout(state.select(now), now),
        Phase::Requesting { offer, tries, asked } => request(state, offer, tries, asked, now),
        Phase::Bound { lease, since } => {
            state.new_xid();
            state.extend(lease, since, now, true)
        }
        Phase::Renewing { lease, since, .. } => {
            let renewing = now < since.saturating_add(lease.rebind_after);
            state.extend(lease, since, now, renewing)
        }
        Phase::Rebinding { lease, since, .. } => {
            if lease.duration.is_some_and(|d| now >= since.saturating_add(d)) {
                // A lost address is looked for again with fresh patience.
                state.began = now;
                let (state, mut actions) = timeout(state.select(now), now);
                actions.insert(0, Action::Lost);
                return (state, actions);
            }
            state.extend(lease, since, now, false)
        }
        Phase::Ended => {
            state.deadline = Duration::MAX;
            (state, Vec::new())
        }
    }
}

fn request(
    mut state: State,
    offer: Lease,
    tries: u32,
    asked: Duration,
    now: Duration,
) -> (State, Vec<Action>) {
    let payload = state.envelope(now, tries + 1 >= BROADCAST_FROM).request(offer.plan.address, offer.server);
    state.deadline = now.saturating_add(state.back_off(tries + 1));
    state.phase = Phase::Requesting { offer, tries: tries + 1, asked };
    (state, vec![Action::Send { payload, to: Destination::Broadcast }])
}

fn heard(mut state: State, message: &Message, now: Duration) -> (State, Vec<Action>) {
    let kind = message.opts().msg_type();
    match (state.phase.clone(), kind) {
        (Phase::Selecting { tries }, Some(MessageType::Offer)) if tries > 0 => {
            match Lease::from_message(message) {
                Some(offer) => {
                    state.offered = true;
                    request(state, offer, 0, now, now)
                }
                None => (state, Vec::new()),
            }
        }
        (Phase::Requesting { offer, asked, .. }, Some(MessageType::Ack)) => {
            match Lease::from_message(message) {
                Some(lease) if lease.server == offer.server => state.bound(lease, asked),
                _ => (state, Vec::new()),
            }
        }
        (Phase::Requesting { .. }, Some(MessageType::Nak)) => {
            (state.select(now.saturating_add(NAK_WAIT)), Vec::new())
        }
        (
            Phase::Renewing { lease: old, asked, .. } | Phase::Rebinding { lease: old, asked, .. },
            Some(MessageType::Ack),
        ) => match Lease::from_message(message) {
            // Another address in the answer to a renewal is a fault of the server; keep asking.
            Some(lease) if lease.plan.address == old.plan.address => state.bound(lease, asked),
            _ => (state, Vec::new()),
        },
        (Phase::Renewing { .. } | Phase::Rebinding { .. }, Some(MessageType::Nak)) => {
            state.began = now;
            (state.select(now.saturating_add(NAK_WAIT)), vec![Action::Lost])
        }
        _ => (state, Vec::new()),
    }
}
