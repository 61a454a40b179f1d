//! What the client is doing and has, and the moves that every exchange shares.

use std::net::Ipv6Addr;
use std::time::Duration;

use dhcproto::v6::MessageType;
use farrier_shared::contract::MacAddress;

use super::event::{Action, Want};
use super::lease::Lease6;
use super::message::{Question, iaid};
use super::reply::Answer;
use crate::net::jitter::{Jitter, back_off};

/// Waits between unanswered messages, in seconds; the last repeats. The RFC lets them grow to an hour: a port that
/// comes out of spanning-tree learning would be missed.
const BACK_OFF: [u64; 4] = [1, 2, 4, 8];

/// The client between two events.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) mac: MacAddress,
    pub(super) want: Want,
    pub(super) patience: Duration,
    pub(super) jitter: Jitter,
    pub(super) xid: u32,
    /// When there first was reason to look for a lease; patience may begin anew once, not for ever.
    pub(super) first: Duration,
    /// When the present exchange began.
    pub(super) began: Duration,
    /// When the machine is to be told of a timeout; [`Duration::MAX`] for never.
    pub deadline: Duration,
    pub(super) phase: Phase,
    /// A server that offered and did not give, by DUID: others are preferred for a while.
    pub(super) left: Option<Vec<u8>>,
    /// Whether any server ever offered anything, for the reason when there is no lease.
    pub offered: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// For an address, with the best offer so far; for settings there are no offers.
    Looking {
        tries: u32,
        best: Option<Answer>,
    },
    /// Asks one server for what it offered, or, with a lease in force that it has forgotten, to have it again.
    Requesting {
        server: Vec<u8>,
        addresses: Vec<Ipv6Addr>,
        held: Option<(Lease6, Duration)>,
        tries: u32,
        asked: Duration,
    },
    Bound {
        lease: Lease6,
        since: Duration,
    },
    Extending {
        lease: Lease6,
        since: Duration,
        asked: Duration,
    },
    Confirming {
        lease: Lease6,
        since: Duration,
        tries: u32,
    },
    Ended,
}

impl State {
    /// A client that starts at once and gives up after `patience`. `seed` makes transaction ids and jitter.
    pub fn new(mac: MacAddress, want: Want, patience: Duration, seed: u64, now: Duration) -> Self {
        let phase = Phase::Looking { tries: 0, best: None };
        let mut state = Self {
            mac,
            want,
            patience,
            jitter: Jitter::new(seed),
            xid: 0,
            first: now,
            began: now,
            deadline: now,
            phase,
            left: None,
            offered: false,
        };
        state.new_xid();
        state
    }

    /// The lease in force.
    pub fn lease(&self) -> Option<&Lease6> {
        match &self.phase {
            Phase::Bound { lease, .. } | Phase::Extending { lease, .. } | Phase::Confirming { lease, .. } => {
                Some(lease)
            }
            Phase::Requesting { held, .. } => held.as_ref().map(|(lease, _)| lease),
            _ => None,
        }
    }

    /// Whether nothing is to be heard before the deadline.
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Bound { .. } | Phase::Ended)
    }

    /// The number of our association, which answers must be read for.
    pub fn iaid(&self) -> u32 {
        iaid(self.mac)
    }

    pub(super) fn new_xid(&mut self) {
        self.xid = u32::try_from(self.jitter.next() >> 40).unwrap_or_default();
    }

    /// The wait after the given number of tries, up to a tenth of it less or more (RFC 8415, section 15). The first
    /// is never shorter than it stands: it is when offers are collected (section 18.2.1).
    pub(super) fn back_off(&mut self, tries: u32) -> Duration {
        let millis = back_off(&BACK_OFF, tries) * 1000;
        let jitter = self.jitter.next() % (millis / 5);
        let base = if tries <= 1 { millis } else { millis - millis / 10 };
        Duration::from_millis(base + jitter)
    }

    pub(super) fn look(mut self, at: Duration) -> Self {
        self.new_xid();
        self.phase = Phase::Looking { tries: 0, best: None };
        self.deadline = at;
        self
    }

    /// The same after a lease was lost: it is looked for again with fresh patience.
    pub(super) fn look_anew(mut self, now: Duration, at: Duration) -> Self {
        (self.first, self.began) = (now, now);
        self.look(at)
    }

    pub(super) fn bound(mut self, lease: Lease6, since: Duration) -> (Self, Vec<Action>) {
        self.settle(lease.clone(), since);
        (self, vec![Action::Bound(lease)])
    }

    pub(super) fn settle(&mut self, lease: Lease6, since: Duration) {
        self.deadline =
            if lease.duration.is_none() { Duration::MAX } else { since.saturating_add(lease.renew_after) };
        self.left = None;
        self.phase = Phase::Bound { lease, since };
    }

    pub(super) fn question(&self, kind: MessageType, now: Duration) -> Question<'static> {
        let elapsed = now.saturating_sub(self.began);
        Question { kind, mac: self.mac, xid: self.xid, elapsed, server: None, addresses: None }
    }
}
