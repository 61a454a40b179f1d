//! What a DHCP server, or whoever plays one, may send.

use std::time::Duration;

use farrier_shared::contract::MacAddress;

use super::Lease;
use super::machine::{Action, Event, State, step};
use super::{reply, wire};

const MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
/// More than any lease that ends in the test takes to be renewed, bound anew and lost.
const ROUNDS: usize = 12;

/// A packet as it comes off the wire, then the same bytes as one server's only answer to all that a client asks.
pub fn dhcp(bytes: &[u8]) {
    if let Some(payload) = wire::payload(bytes) {
        let _ = reply::read(payload);
    }
    let Some(message) = reply::read(bytes) else { return };
    if let Some(lease) = Lease::from_message(&message) {
        assert!(lease.renew_after <= lease.rebind_after, "{lease:?}");
        assert!(lease.duration.is_none_or(|whole| lease.rebind_after <= whole), "{lease:?}");
        assert!(lease.plan.prefix_len <= 32 && lease.plan.routes.iter().all(|r| r.prefix_len <= 32));
    }
    converse(bytes);
}

/// Runs the client against a server that always says the same, addressed rightly.
fn converse(bytes: &[u8]) {
    let mac = MacAddress::from_bytes(MAC);
    let mut now = Duration::ZERO;
    let mut state = State::new(mac, Duration::from_secs(90), 1, now);
    for _ in 0..ROUNDS {
        now = state.deadline.max(now);
        if now == Duration::MAX {
            return;
        }
        let (next, actions) = step(state, Event::Timeout, now);
        state = next;
        for action in actions {
            let Action::Send { payload, .. } = action else { continue };
            let mut answer = bytes.to_vec();
            answer[0] = 2;
            answer[4..8].copy_from_slice(&payload[4..8]);
            answer[28..34].copy_from_slice(&MAC);
            if let Some(message) = reply::read(&answer) {
                state = step(state, Event::Heard(Box::new(message)), now).0;
            }
        }
    }
}
