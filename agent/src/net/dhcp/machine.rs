//! The DHCP client as a pure function: `(state, event, now) → (state, actions)` (RFC 2131, section 4.4).
//!
//! Times are durations since some fixed start of the caller's choice. Nothing here reads a clock or a socket;
//! the caller delivers [`Event::Timeout`] once [`State::deadline`] has passed.

use std::net::Ipv4Addr;
use std::time::Duration;

use dhcproto::v4::{DhcpOption, Message, MessageType, OptionCode};
use farrier_shared::contract::MacAddress;

use super::lease::Lease;
use super::message::{Envelope, is_ours};
use crate::net::jitter::{Jitter, back_off};

/// Waits between unanswered messages, in seconds; the last repeats. Short at first, for a link that was just
/// coming up, and never longer than a port that comes out of spanning-tree learning should be kept waiting.
const BACK_OFF: [u64; 4] = [1, 2, 4, 8];
/// Unanswered requests for one offer before we look for another.
const MAX_REQUESTS: u32 = 4;
/// Unanswered questions, after a link was away, before the lease is taken as good: longer than a port is learning.
const MAX_CONFIRMS: u32 = 8;
/// From this try on, ask for answers by broadcast, and take even the offer of a server that did not keep the last one.
const BROADCAST_FROM: u32 = 3;
/// Shortest wait between renewals (RFC 2131, section 4.4.5).
const MIN_RENEW_WAIT: Duration = Duration::from_secs(60);
/// Wait after a NAK, so that a confused server is not flooded.
const NAK_WAIT: Duration = Duration::from_secs(1);
/// Wait after an address was given back (RFC 2131, section 3.1, step 5).
const DECLINE_WAIT: Duration = Duration::from_secs(10);
/// How long it may take to see whether an address is taken; then it is used.
const CHECK_WAIT: Duration = Duration::from_secs(5);

/// What happens to the client.
#[derive(Debug)]
pub enum Event {
    /// The deadline passed.
    Timeout,
    /// A message was heard, ours or not.
    Heard(Box<Message>),
    /// Who else has the address that is [to be checked](State::unchecked).
    Checked(Option<MacAddress>),
    /// The link is there: for the first time, or again after it was away, perhaps as another.
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
    /// When there first was reason to look for a lease; patience may begin anew once, not for ever.
    first: Duration,
    /// When looking for a lease began.
    began: Duration,
    /// When [`Event::Timeout`] is due; [`Duration::MAX`] for never.
    pub deadline: Duration,
    phase: Phase,
    /// A server that offered and did not give: others are preferred for a while.
    left: Option<Ipv4Addr>,
    /// Whether any server ever made an offer, for the reason when there is no lease.
    pub offered: bool,
    /// The last address that was given back, and who had it; for the same reason.
    pub taken: Option<(Ipv4Addr, MacAddress)>,
}

#[derive(Clone, Debug)]
enum Phase {
    Selecting {
        tries: u32,
    },
    Requesting {
        offer: Lease,
        tries: u32,
        asked: Duration,
    },
    /// Given, and not used before it is known that nobody else does.
    Checking {
        lease: Lease,
        since: Duration,
    },
    Bound {
        lease: Lease,
        since: Duration,
    },
    /// Asks to keep the lease: its own server, or any once `rebinding`.
    Extending {
        lease: Lease,
        since: Duration,
        asked: Duration,
        rebinding: bool,
    },
    /// Asks any server whether the lease holds on the link as it is now.
    Confirming {
        lease: Lease,
        since: Duration,
        asked: Duration,
        tries: u32,
    },
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
            first: now,
            began: now,
            deadline: now,
            phase: Phase::Selecting { tries: 0 },
            left: None,
            offered: false,
            taken: None,
        };
        state.new_xid();
        state
    }

    /// The lease in force.
    pub fn lease(&self) -> Option<&Lease> {
        match &self.phase {
            Phase::Bound { lease, .. } | Phase::Extending { lease, .. } | Phase::Confirming { lease, .. } => {
                Some(lease)
            }
            _ => None,
        }
    }

    /// The lease whose address is to be looked for on the link, before [`Event::Checked`] tells.
    pub fn unchecked(&self) -> Option<&Lease> {
        match &self.phase {
            Phase::Checking { lease, .. } => Some(lease),
            _ => None,
        }
    }

    /// Whether nothing is to be heard before the deadline.
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Bound { .. } | Phase::Ended)
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

    /// The same after a lease was lost: it is looked for again with fresh patience.
    fn select_anew(mut self, now: Duration, at: Duration) -> Self {
        (self.first, self.began) = (now, now);
        self.select(at)
    }

    /// Has every server of the link asked whether the lease still holds there, or goes on looking at once. Who is
    /// on another network now is told so by a NAK.
    fn link_back(mut self, now: Duration) -> Self {
        match self.phase.clone() {
            Phase::Bound { lease, since } | Phase::Extending { lease, since, .. } => {
                self.new_xid();
                self.phase = Phase::Confirming { lease, since, asked: now, tries: 0 };
            }
            Phase::Confirming { lease, since, asked, .. } => {
                self.phase = Phase::Confirming { lease, since, asked, tries: 0 };
            }
            Phase::Selecting { .. } => {
                // A switch begins to learn the port only now.
                self.began = now.min(self.first.saturating_add(self.patience));
                self.phase = Phase::Selecting { tries: 0 };
            }
            Phase::Requesting { .. } | Phase::Checking { .. } | Phase::Ended => return self,
        }
        self.deadline = now;
        self
    }

    fn bound(mut self, lease: Lease, since: Duration) -> (Self, Vec<Action>) {
        self.settle(lease.clone(), since);
        (self, vec![Action::Bound(lease)])
    }

    fn settle(&mut self, lease: Lease, since: Duration) {
        self.deadline =
            if lease.duration.is_none() { Duration::MAX } else { since.saturating_add(lease.renew_after) };
        (self.left, self.taken) = (None, None);
        self.phase = Phase::Bound { lease, since };
    }

    /// Another machine has the address that was just leased: it goes back to the server.
    fn decline(mut self, lease: &Lease, holder: MacAddress, now: Duration) -> (Self, Vec<Action>) {
        let address = lease.plan.address;
        self.taken = Some((address, holder));
        self.new_xid();
        let payload = self.envelope(now, false).decline(address, lease.server);
        let send = Action::Send { payload, to: Destination::Broadcast };
        (self.select(now.saturating_add(DECLINE_WAIT)), vec![send])
    }

    /// Asks to keep the lease, and plans the next try half way to the limit.
    fn extend(mut self, lease: Lease, since: Duration, now: Duration) -> (Self, Vec<Action>) {
        let rebind_at = since.saturating_add(lease.rebind_after);
        let rebinding = now >= rebind_at;
        let limit =
            if rebinding { since.saturating_add(lease.duration.unwrap_or(Duration::MAX)) } else { rebind_at };
        let wait = limit.saturating_sub(now) / 2;
        self.deadline = limit.min(now.saturating_add(wait.max(MIN_RENEW_WAIT)));
        let to = if rebinding { Destination::Broadcast } else { Destination::Server(lease.server) };
        let envelope = Envelope { elapsed: Duration::ZERO, ..self.envelope(now, false) };
        let payload = envelope.renew(lease.plan.address);
        self.phase = Phase::Extending { lease, since, asked: now, rebinding };
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
        Event::Checked(holder) => match (state.phase.clone(), holder) {
            (Phase::Checking { lease, since }, None) => state.bound(lease, since),
            (Phase::Checking { lease, .. }, Some(holder)) => state.decline(&lease, holder, now),
            _ => (state, Vec::new()),
        },
        Event::LinkBack => (state.link_back(now), Vec::new()),
    }
}

fn timeout(mut state: State, now: Duration) -> (State, Vec<Action>) {
    let over =
        |lease: &Lease, since: Duration| lease.duration.is_some_and(|d| now >= since.saturating_add(d));
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
        Phase::Requesting { offer, tries, .. } if tries >= MAX_REQUESTS => {
            state.left = Some(offer.server);
            timeout(state.select(now), now)
        }
        Phase::Requesting { offer, tries, asked } => request(state, offer, tries, asked, now),
        Phase::Checking { lease, since } => state.bound(lease, since),
        Phase::Bound { lease, since }
        | Phase::Extending { lease, since, .. }
        | Phase::Confirming { lease, since, .. }
            if over(&lease, since) =>
        {
            let (state, mut actions) = timeout(state.select_anew(now, now), now);
            actions.insert(0, Action::Lost);
            (state, actions)
        }
        Phase::Bound { lease, since } => {
            state.new_xid();
            state.extend(lease, since, now)
        }
        Phase::Extending { lease, since, .. } => state.extend(lease, since, now),
        Phase::Confirming { lease, since, tries, .. } if tries >= MAX_CONFIRMS => {
            state.settle(lease, since);
            state.deadline = state.deadline.max(now.saturating_add(NAK_WAIT));
            (state, Vec::new())
        }
        Phase::Confirming { lease, since, tries, .. } => {
            let payload = state.envelope(now, tries + 1 >= BROADCAST_FROM).confirm(lease.plan.address);
            let end = since.saturating_add(lease.duration.unwrap_or(Duration::MAX));
            state.deadline = now.saturating_add(state.back_off(tries + 1)).min(end);
            state.phase = Phase::Confirming { lease, since, asked: now, tries: tries + 1 };
            (state, vec![Action::Send { payload, to: Destination::Broadcast }])
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
                Some(offer) if state.left != Some(offer.server) || tries >= BROADCAST_FROM => {
                    state.offered = true;
                    request(state, offer, 0, now, now)
                }
                _ => (state, Vec::new()),
            }
        }
        (Phase::Requesting { offer, asked, .. }, Some(MessageType::Ack)) => {
            match Lease::from_message(message) {
                Some(lease) if lease.server == offer.server => {
                    state.phase = Phase::Checking { lease, since: asked };
                    state.deadline = now.saturating_add(CHECK_WAIT);
                    (state, Vec::new())
                }
                _ => (state, Vec::new()),
            }
        }
        (Phase::Requesting { offer, .. }, Some(MessageType::Nak)) if is_of(message, offer.server) => {
            (state.select(now.saturating_add(NAK_WAIT)), Vec::new())
        }
        (
            Phase::Extending { lease: old, asked, .. } | Phase::Confirming { lease: old, asked, .. },
            Some(MessageType::Ack),
        ) => match Lease::from_message(message) {
            // Another address in the answer to a renewal is a fault of the server; keep asking.
            Some(lease) if lease.plan.address == old.plan.address => state.bound(lease, asked),
            _ => (state, Vec::new()),
        },
        // Whoever was not asked has no say in it.
        (Phase::Extending { lease, rebinding: false, .. }, Some(MessageType::Nak))
            if !is_of(message, lease.server) =>
        {
            (state, Vec::new())
        }
        (Phase::Extending { .. } | Phase::Confirming { .. }, Some(MessageType::Nak)) => {
            (state.select_anew(now, now.saturating_add(NAK_WAIT)), vec![Action::Lost])
        }
        _ => (state, Vec::new()),
    }
}

/// Whether a message is of this server, as far as it says.
fn is_of(message: &Message, server: Ipv4Addr) -> bool {
    match message.opts().get(OptionCode::ServerIdentifier) {
        Some(DhcpOption::ServerIdentifier(ip)) => *ip == server,
        _ => true,
    }
}
