//! The DHCPv6 client as a pure function: `(state, event, now) → (state, actions)` (RFC 8415, section 18.2).
//!
//! Times are durations since some fixed start of the caller's choice. Nothing here reads a clock or a socket; the
//! caller delivers [`Event::Timeout`] once [`State::deadline`] has passed.

use std::net::Ipv6Addr;
use std::time::Duration;

use dhcproto::v6::MessageType;

pub use super::event::{Action, Event, Want};
use super::lease::Lease6;
use super::message::{Question, duid};
use super::reply::{Answer, Kind, Status};
use super::state::Phase;
pub use super::state::State;

/// Unanswered requests for one offer before we look for another.
const MAX_REQUESTS: u32 = 4;
/// Unanswered confirmations before the lease is taken as good: longer than a port is learning, where the RFC has ten
/// seconds (section 18.2.3).
const MAX_CONFIRMS: u32 = 8;
/// Shortest wait between renewals (RFC 8415, section 7.6: REN_TIMEOUT).
const MIN_RENEW_WAIT: Duration = Duration::from_secs(10);
/// Wait after a refusal, so that a confused server is not flooded.
const REFUSAL_WAIT: Duration = Duration::from_secs(1);
/// A server that is to be taken at once (RFC 8415, section 18.2.1).
const AT_ONCE: u8 = 255;

/// One step of the client.
pub fn step(mut state: State, event: Event, now: Duration) -> (State, Vec<Action>) {
    match event {
        Event::Timeout if now >= state.deadline => timeout(state, now),
        Event::Timeout => (state, Vec::new()),
        Event::Heard(answer)
            if answer.xid == state.xid && answer.client == duid(state.mac) && !answer.server.is_empty() =>
        {
            heard(state, *answer, now)
        }
        Event::Heard(_) => (state, Vec::new()),
        Event::Taken(address) => match state.lease().cloned() {
            Some(lease) if lease.addresses.contains(&address) => decline(state, &lease, address, now),
            _ => (state, Vec::new()),
        },
        Event::LinkBack => {
            link_back(&mut state, now);
            (state, Vec::new())
        }
    }
}

/// Addresses are confirmed, and what is being looked for is looked for at once.
fn link_back(state: &mut State, now: Duration) {
    match state.phase.clone() {
        Phase::Bound { lease, since } | Phase::Extending { lease, since, .. }
            if !lease.addresses.is_empty() =>
        {
            state.new_xid();
            state.began = now;
            state.phase = Phase::Confirming { lease, since, tries: 0 };
            state.deadline = now;
        }
        Phase::Confirming { lease, since, .. } => {
            state.phase = Phase::Confirming { lease, since, tries: 0 };
            state.deadline = now;
        }
        Phase::Looking { .. } => {
            // A switch begins to learn the port only now.
            state.began = now.min(state.first.saturating_add(state.patience));
            state.phase = Phase::Looking { tries: 0, best: None };
            state.deadline = now;
        }
        _ => {}
    }
}

/// Another machine has an address of the lease: it goes back to the server (RFC 8415, section 18.2.8), in one message,
/// since a server that misses it only offers the address again. All others go with it, as one association.
fn decline(mut state: State, lease: &Lease6, address: Ipv6Addr, now: Duration) -> (State, Vec<Action>) {
    state.new_xid();
    (state.first, state.began) = (now, now);
    let question = state.question(MessageType::Decline, now);
    let payload = Question { server: Some(&lease.server), addresses: Some(&[address]), ..question }.encode();
    (state.look(now.saturating_add(REFUSAL_WAIT)), vec![Action::Send(payload), Action::Lost])
}

fn timeout(mut state: State, now: Duration) -> (State, Vec<Action>) {
    let over =
        |lease: &Lease6, since: Duration| lease.duration.is_some_and(|d| now >= since.saturating_add(d));
    match state.phase.clone() {
        Phase::Looking { best: Some(offer), .. } => request(state, &offer, now),
        Phase::Looking { .. } | Phase::Requesting { held: None, .. }
            if now.saturating_sub(state.began) >= state.patience =>
        {
            state.phase = Phase::Ended;
            state.deadline = Duration::MAX;
            (state, vec![Action::GiveUp])
        }
        Phase::Looking { tries, .. } => {
            let payload = match state.want {
                Want::Address => {
                    Question { addresses: Some(&[]), ..state.question(MessageType::Solicit, now) }.encode()
                }
                Want::Settings => state.question(MessageType::InformationRequest, now).encode(),
            };
            let end = state.began.saturating_add(state.patience);
            state.deadline = now.saturating_add(state.back_off(tries + 1)).min(end);
            state.phase = Phase::Looking { tries: tries + 1, best: None };
            (state, vec![Action::Send(payload)])
        }
        Phase::Requesting { held: Some((lease, since)), .. }
        | Phase::Bound { lease, since }
        | Phase::Extending { lease, since, .. }
        | Phase::Confirming { lease, since, .. }
            if over(&lease, since) =>
        {
            let (state, mut actions) = timeout(state.look_anew(now, now), now);
            actions.insert(0, Action::Lost);
            (state, actions)
        }
        Phase::Requesting { held: Some(_), tries, .. } if tries >= MAX_REQUESTS => {
            (state.look_anew(now, now.saturating_add(REFUSAL_WAIT)), vec![Action::Lost])
        }
        Phase::Requesting { server, tries, .. } if tries >= MAX_REQUESTS => {
            // Patience runs on: a server that offers and never gives must not keep us for ever.
            state.left = Some(server);
            timeout(state.look(now), now)
        }
        Phase::Requesting { .. } => ask(state, now),
        Phase::Bound { lease, since } => {
            state.new_xid();
            state.began = now;
            extend(state, lease, since, now)
        }
        Phase::Extending { lease, since, .. } => extend(state, lease, since, now),
        Phase::Confirming { lease, since, tries } if tries >= MAX_CONFIRMS => {
            state.settle(lease, since);
            state.deadline = state.deadline.max(now.saturating_add(REFUSAL_WAIT));
            (state, Vec::new())
        }
        Phase::Confirming { lease, since, tries } => {
            let question = state.question(MessageType::Confirm, now);
            let payload = Question { addresses: Some(&lease.addresses), ..question }.encode();
            let end = since.saturating_add(lease.duration.unwrap_or(Duration::MAX));
            state.deadline = now.saturating_add(state.back_off(tries + 1)).min(end);
            state.phase = Phase::Confirming { lease, since, tries: tries + 1 };
            (state, vec![Action::Send(payload)])
        }
        Phase::Ended => {
            state.deadline = Duration::MAX;
            (state, Vec::new())
        }
    }
}

/// Takes up an offer.
fn request(mut state: State, offer: &Answer, now: Duration) -> (State, Vec<Action>) {
    let addresses = offer.addresses.iter().map(|a| a.address).collect();
    let server = offer.server.clone();
    state.new_xid();
    state.phase = Phase::Requesting { server, addresses, held: None, tries: 0, asked: now };
    ask(state, now)
}

/// Sends the request of the present phase.
fn ask(mut state: State, now: Duration) -> (State, Vec<Action>) {
    let question = state.question(MessageType::Request, now);
    let Phase::Requesting { server, addresses, tries, .. } = &mut state.phase else {
        return (state, Vec::new());
    };
    *tries += 1;
    let tries = *tries;
    let payload = Question { server: Some(server), addresses: Some(addresses), ..question }.encode();
    state.deadline = now.saturating_add(state.back_off(tries));
    (state, vec![Action::Send(payload)])
}

/// Asks to keep the lease: its own server until T2, then any; and plans the next try half way to the limit.
fn extend(mut state: State, lease: Lease6, since: Duration, now: Duration) -> (State, Vec<Action>) {
    let rebind_at = since.saturating_add(lease.rebind_after);
    let renewing = now < rebind_at;
    let limit =
        if renewing { rebind_at } else { since.saturating_add(lease.duration.unwrap_or(Duration::MAX)) };
    state.deadline = limit.min(now.saturating_add((limit.saturating_sub(now) / 2).max(MIN_RENEW_WAIT)));
    let question = state.question(if renewing { MessageType::Renew } else { MessageType::Rebind }, now);
    let server = renewing.then_some(lease.server.as_slice());
    let payload = Question { server, addresses: Some(&lease.addresses), ..question }.encode();
    state.phase = Phase::Extending { lease, since, asked: now };
    (state, vec![Action::Send(payload)])
}

fn heard(mut state: State, answer: Answer, now: Duration) -> (State, Vec<Action>) {
    let gives = answer.status == Status::Success && answer.ia_status == Status::Success;
    let gives_address = gives && !answer.addresses.is_empty();
    match (state.phase.clone(), answer.kind) {
        (Phase::Looking { tries, best }, Kind::Advertise)
            if state.want == Want::Address && tries > 0 && gives_address =>
        {
            state.offered = true;
            let was_left = state.left.as_deref() == Some(answer.server.as_slice());
            if tries > 1 || answer.preference == AT_ONCE && !was_left {
                return request(state, &answer, now);
            }
            // Offers are collected until the first wait is over.
            let rank = |a: &Answer| (state.left.as_deref() != Some(a.server.as_slice()), a.preference);
            let better = best.as_ref().is_none_or(|b| rank(&answer) > rank(b));
            state.phase = Phase::Looking { tries, best: if better { Some(answer) } else { best } };
            (state, Vec::new())
        }
        (Phase::Looking { tries, .. }, Kind::Reply)
            if state.want == Want::Settings && tries > 0 && answer.status == Status::Success =>
        {
            // Settings are asked for once: the run is shorter than any refresh time worth having.
            let settings = Answer { addresses: Vec::new(), ..answer };
            state.bound(Lease6::from_answer(&settings), now)
        }
        (Phase::Requesting { server, held, asked, .. }, Kind::Reply) if answer.server == server => {
            if gives_address {
                state.bound(Lease6::from_answer(&answer), asked)
            } else if held.is_some() {
                (state.look_anew(now, now.saturating_add(REFUSAL_WAIT)), vec![Action::Lost])
            } else {
                (state.look(now.saturating_add(REFUSAL_WAIT)), Vec::new())
            }
        }
        (Phase::Extending { lease, since, asked }, Kind::Reply) => {
            let same = answer.addresses.iter().any(|a| lease.addresses.contains(&a.address));
            if gives_address && same {
                return state.bound(Lease6::from_answer(&answer), asked);
            }
            match (answer.status, answer.ia_status) {
                (Status::NotOnLink, _) | (_, Status::NotOnLink) => {
                    (state.look_anew(now, now.saturating_add(REFUSAL_WAIT)), vec![Action::Lost])
                }
                // A server that was started anew: the addresses are ours for as long as they were given, and asked
                // for again (RFC 8415, section 18.2.10.1).
                (Status::NoBinding, _) | (_, Status::NoBinding) => {
                    state.new_xid();
                    let addresses = lease.addresses.clone();
                    let held = Some((lease, since));
                    state.phase =
                        Phase::Requesting { server: answer.server, addresses, held, tries: 0, asked: now };
                    state.deadline = now.saturating_add(REFUSAL_WAIT);
                    (state, Vec::new())
                }
                // Other faults of the server: keep asking until the time is over.
                _ => (state, Vec::new()),
            }
        }
        (Phase::Confirming { lease, since, .. }, Kind::Reply) => match answer.status {
            Status::NotOnLink => (state.look_anew(now, now), vec![Action::Lost]),
            Status::Success => {
                state.settle(lease, since);
                state.deadline = state.deadline.max(now.saturating_add(REFUSAL_WAIT));
                (state, Vec::new())
            }
            _ => (state, Vec::new()),
        },
        _ => (state, Vec::new()),
    }
}
