//! The client against a server of plain data, on a clock of plain numbers.

use std::net::Ipv4Addr;
use std::time::Duration;

use dhcproto::v4::{DhcpOption, Message, MessageType, Opcode, OptionCode};
use dhcproto::{Decodable as _, Encodable as _, decoder::Decoder};
use farrier_shared::contract::MacAddress;
use proptest::prelude::*;

use super::machine::{Action, Destination, Event, State, step};
use super::{Lease, reply, wire};

mod keeping;
mod leases;

const PATIENCE: Duration = Duration::from_secs(120);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 50);

fn mac() -> MacAddress {
    MacAddress::from_bytes([2, 0, 0, 0, 0, 1])
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn decode(bytes: &[u8]) -> Message {
    Message::decode(&mut Decoder::new(bytes)).unwrap()
}

/// What a server answers to a message.
fn answer(question: &Message, kind: MessageType, options: &[DhcpOption]) -> Message {
    let mut message = question.clone();
    message.set_opcode(Opcode::BootReply).set_yiaddr(ADDRESS);
    let opts = message.opts_mut();
    opts.clear();
    opts.insert(DhcpOption::MessageType(kind));
    opts.insert(DhcpOption::ServerIdentifier(SERVER));
    opts.insert(DhcpOption::SubnetMask(Ipv4Addr::new(255, 255, 255, 0)));
    opts.insert(DhcpOption::AddressLeaseTime(3600));
    for option in options {
        opts.insert(option.clone());
    }
    message
}

fn lease(options: &[DhcpOption]) -> Option<Lease> {
    Lease::from_message(&answer(&Message::default(), MessageType::Ack, options))
}

fn start() -> State {
    State::new(mac(), PATIENCE, 7, Duration::ZERO)
}

/// Lets the deadline pass; the one message that is sent then.
fn fire(state: State) -> (State, Duration, Message, Destination) {
    let now = state.deadline;
    let (state, actions) = step(state, Event::Timeout, now);
    match actions.as_slice() {
        [Action::Send { payload, to }] => (state, now, decode(payload), *to),
        other => panic!("one message expected, got {other:?}"),
    }
}

fn hear(state: State, message: Message, now: Duration) -> (State, Vec<Action>) {
    step(state, Event::Heard(Box::new(message)), now)
}

/// A client that was given a lease of an hour at second 0 and is yet to see whether it may use the address.
fn given(options: &[DhcpOption]) -> State {
    let (state, now, discover, _) = fire(start());
    let (state, actions) = hear(state, answer(&discover, MessageType::Offer, options), now);
    let [Action::Send { payload, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    let (state, actions) = hear(state, answer(&decode(payload), MessageType::Ack, options), now);
    assert_eq!((actions, state.lease()), (vec![], None), "not used before it is checked");
    assert_eq!(state.unchecked().unwrap().plan.address, ADDRESS);
    state
}

/// The same once nobody else was found to have the address.
fn bound() -> State {
    bound_with(&[])
}

fn bound_with(options: &[DhcpOption]) -> State {
    let (state, actions) = step(given(options), Event::Checked(None), Duration::from_millis(750));
    assert!(matches!(actions.as_slice(), [Action::Bound(l)] if l.plan.address == ADDRESS), "{actions:?}");
    state
}

#[test]
fn four_messages_lead_to_a_lease() {
    let (state, now, discover, to) = fire(start());
    assert_eq!((discover.opts().msg_type(), to), (Some(MessageType::Discover), Destination::Broadcast));
    assert_eq!(discover.chaddr(), mac().as_bytes());
    let (_, actions) = hear(state, answer(&discover, MessageType::Offer, &[]), now);
    let [Action::Send { payload, to: Destination::Broadcast }] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    let request = decode(payload);
    assert_eq!(request.xid(), discover.xid());
    assert_eq!(
        request.opts().get(OptionCode::RequestedIpAddress),
        Some(&DhcpOption::RequestedIpAddress(ADDRESS))
    );
    assert_eq!(request.opts().get(OptionCode::ServerIdentifier), Some(&DhcpOption::ServerIdentifier(SERVER)));
    assert_eq!(bound().deadline, seconds(1800));
}

#[test]
fn every_message_is_long_enough_and_says_who_we_are() {
    let (_, actions) = step(start(), Event::Timeout, Duration::ZERO);
    let [Action::Send { payload, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    assert!(payload.len() >= 300);
    let message = decode(payload);
    let id = [&[1], mac().as_bytes().as_slice()].concat();
    assert_eq!(message.opts().get(OptionCode::ClientIdentifier), Some(&DhcpOption::ClientIdentifier(id)));
    let Some(DhcpOption::ParameterRequestList(wanted)) = message.opts().get(OptionCode::ParameterRequestList)
    else {
        panic!("no parameter list");
    };
    let at = |code: OptionCode| wanted.iter().position(|c| *c == code).unwrap();
    assert!(at(OptionCode::ClasslessStaticRoute) < at(OptionCode::Router), "RFC 3442 wants 121 first");
}

#[test]
fn messages_of_others_change_nothing() {
    let (state, now, discover, _) = fire(start());
    let good = answer(&discover, MessageType::Offer, &[]);
    let mut other_xid = good.clone();
    other_xid.set_xid(discover.xid().wrapping_add(1));
    let mut other_mac = good.clone();
    other_mac.set_chaddr(&[2, 0, 0, 0, 0, 9]);
    let mut request = good.clone();
    request.set_opcode(Opcode::BootRequest);
    let mut no_server = good.clone();
    no_server.opts_mut().remove(OptionCode::ServerIdentifier);
    let mut no_address = good;
    no_address.set_yiaddr(Ipv4Addr::UNSPECIFIED);
    let early_ack = answer(&discover, MessageType::Ack, &[]);
    for stray in [other_xid, other_mac, request, no_server, no_address, early_ack] {
        let (after, actions) = hear(state.clone(), stray.clone(), now);
        assert_eq!((actions.len(), after.deadline), (0, state.deadline), "{stray:?}");
    }
}

#[test]
fn patience_lasts_through_spanning_tree_and_then_ends_once() {
    let mut state = start();
    let mut sent: Vec<(Duration, bool)> = Vec::new();
    loop {
        let now = state.deadline;
        let (next, actions) = step(state, Event::Timeout, now);
        state = next;
        match actions.as_slice() {
            [Action::Send { payload, .. }] => sent.push((now, decode(payload).flags().broadcast())),
            [Action::GiveUp] => {
                assert_eq!(now, PATIENCE);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(state.deadline, Duration::MAX);
    let gaps: Vec<_> = sent.windows(2).map(|w| w[1].0 - w[0].0).collect();
    assert!(
        gaps.iter().all(|g| *g <= Duration::from_millis(8500)),
        "a port that opens is noticed soon: {gaps:?}"
    );
    assert!(gaps[0] <= Duration::from_millis(1500), "{gaps:?}");
    assert!(!sent[0].1 && sent[3].1, "later tries ask for an answer by broadcast");
}

#[test]
fn a_refusal_starts_over_with_another_transaction() {
    let (state, now, discover, _) = fire(start());
    let (state, _) = hear(state, answer(&discover, MessageType::Offer, &[]), now);
    let (state, actions) = hear(state, answer(&discover, MessageType::Nak, &[]), now);
    assert!(actions.is_empty());
    assert!(state.deadline > now, "not at once: a confused server must not be flooded");
    let (_, _, again, _) = fire(state);
    assert_eq!(again.opts().msg_type(), Some(MessageType::Discover));
    assert_ne!(again.xid(), discover.xid());
}

#[test]
fn a_silent_server_is_left_for_another() {
    let (state, now, discover, _) = fire(start());
    let (mut state, _) = hear(state, answer(&discover, MessageType::Offer, &[]), now);
    for _ in 0..3 {
        let (next, _, again, _) = fire(state);
        assert_eq!(again.opts().msg_type(), Some(MessageType::Request));
        state = next;
    }
    let (_, _, message, _) = fire(state);
    assert_eq!(message.opts().msg_type(), Some(MessageType::Discover));
}

#[test]
fn a_server_that_offers_and_never_gives_does_not_keep_the_others_out() {
    let (state, now, discover, _) = fire(start());
    let (mut state, _) = hear(state, answer(&discover, MessageType::Offer, &[]), now);
    for _ in 0..3 {
        (state, _, _, _) = fire(state);
    }
    let (state, now, discover, _) = fire(state);
    let (state, actions) = hear(state, answer(&discover, MessageType::Offer, &[]), now);
    assert!(actions.is_empty(), "the fastest, again");
    let other = DhcpOption::ServerIdentifier(Ipv4Addr::new(10, 0, 0, 2));
    let offer = answer(&discover, MessageType::Offer, std::slice::from_ref(&other));
    let (_, actions) = hear(state.clone(), offer, now);
    let [Action::Send { payload, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!(decode(payload).opts().get(OptionCode::ServerIdentifier), Some(&other));
    // Where it is the only one, it is asked again all the same.
    let (state, _, _, _) = fire(fire(state).0);
    let (_, actions) = hear(state, answer(&discover, MessageType::Offer, &[]), now);
    assert_eq!(actions.len(), 1);
}

#[test]
fn an_address_somebody_has_goes_back_and_is_told_of_when_there_is_no_other() {
    let holder = MacAddress::from_bytes([2, 0, 0, 0, 0, 9]);
    let now = seconds(1);
    let (state, actions) = step(given(&[]), Event::Checked(Some(holder)), now);
    let [Action::Send { payload, to: Destination::Broadcast }] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    let decline = decode(payload);
    assert_eq!(
        (decline.opts().msg_type(), decline.ciaddr()),
        (Some(MessageType::Decline), Ipv4Addr::UNSPECIFIED)
    );
    let codes: Vec<u8> = decline.opts().iter().map(|(code, _)| u8::from(*code)).collect();
    assert_eq!(codes, [50, 53, 54, 61], "RFC 2131, table 5");
    assert_eq!(state.taken, Some((ADDRESS, holder)));
    assert_eq!(state.deadline, seconds(11), "RFC 2131, section 3.1");
    let (state, _, discover, _) = fire(state);
    assert_eq!(discover.opts().msg_type(), Some(MessageType::Discover));
    let (_, actions) = step(state.clone(), Event::Checked(None), now);
    assert!(actions.is_empty(), "too late");
    assert!(state.lease().is_none());
}

#[test]
fn a_check_that_never_ends_does_not_keep_the_lease_back() {
    let state = given(&[]);
    let now = state.deadline;
    assert!(now <= seconds(10));
    let (_, actions) = step(state, Event::Timeout, now);
    assert!(matches!(actions.as_slice(), [Action::Bound(_)]));
}

#[test]
fn a_refusal_of_a_server_that_was_not_asked_means_nothing() {
    let other = [DhcpOption::ServerIdentifier(Ipv4Addr::new(10, 0, 0, 2))];
    let (state, now, discover, _) = fire(start());
    let (state, _) = hear(state, answer(&discover, MessageType::Offer, &[]), now);
    let (after, _) = hear(state.clone(), answer(&discover, MessageType::Nak, &other), now);
    assert_eq!(after.deadline, state.deadline, "still requesting");
    let (state, now, renew, _) = fire(bound());
    let (state, actions) = hear(state, answer(&renew, MessageType::Nak, &other), now);
    assert!(actions.is_empty() && state.lease().is_some());
    // Any server may refuse what any server was asked.
    let mut state = state;
    while state.deadline < seconds(3150) {
        (state, _, _, _) = fire(state);
    }
    let (state, now, rebind, to) = fire(state);
    assert_eq!(to, Destination::Broadcast);
    let (_, actions) = hear(state, answer(&rebind, MessageType::Nak, &other), now);
    assert_eq!(actions, [Action::Lost]);
}

#[test]
fn patience_begins_anew_with_a_link_that_comes_late_and_no_more_than_once() {
    let mut state = start();
    let mut last = loop {
        let now = state.deadline;
        let (next, actions) = step(state, Event::Timeout, now);
        if actions == [Action::GiveUp] {
            break now;
        }
        // A link that flaps for ever.
        (state, _) = step(next, Event::LinkBack, now + Duration::from_millis(900));
    };
    assert!(last >= 2 * PATIENCE && last < 2 * PATIENCE + seconds(10), "{last:?}");
    let mut late = step(start(), Event::LinkBack, seconds(60)).0;
    while late.deadline != Duration::MAX {
        last = late.deadline;
        late = step(late, Event::Timeout, last).0;
    }
    assert_eq!(last, seconds(60) + PATIENCE);
}

#[test]
fn an_acknowledgement_of_another_server_is_not_ours() {
    let (state, now, discover, _) = fire(start());
    let (state, _) = hear(state, answer(&discover, MessageType::Offer, &[]), now);
    let other = DhcpOption::ServerIdentifier(Ipv4Addr::new(10, 0, 0, 2));
    let (_, actions) = hear(state, answer(&discover, MessageType::Ack, &[other]), now);
    assert!(actions.is_empty());
}

proptest! {
    #[test]
    fn any_packet_is_taken_apart_without_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = wire::payload(&bytes);
    }

    #[test]
    fn any_options_are_taken_without_a_fault(options in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = answer(&Message::default(), MessageType::Ack, &[]).to_vec().unwrap();
        bytes[2] = 6;
        bytes.truncate(240);
        bytes.extend(&options);
        let message = reply::read(&bytes).unwrap();
        let _ = Lease::from_message(&message);
        let _ = step(bound(), Event::Heard(Box::new(message)), seconds(5));
    }

    /// Whatever is heard and whenever, the deadline lies ahead or at never, and a lease is in force exactly
    /// between `Bound` and `Lost`.
    #[test]
    fn the_client_always_has_something_to_wait_for(script in prop::collection::vec((0_u8..9, 0_u64..400), 1..60)) {
        let mut state = start();
        let mut now = Duration::ZERO;
        let mut last = Message::default();
        let mut holds = false;
        for (what, wait) in script {
            let event = match what {
                0..=2 => {
                    if state.deadline != Duration::MAX {
                        now = now.max(state.deadline);
                    }
                    Event::Timeout
                }
                3 => Event::Heard(Box::new(answer(&last, MessageType::Offer, &[]))),
                4 => Event::Heard(Box::new(answer(&last, MessageType::Ack, &[]))),
                5 => Event::Heard(Box::new(answer(&last, MessageType::Nak, &[]))),
                6 => Event::Checked(None),
                7 => Event::Checked(Some(MacAddress::from_bytes([2, 0, 0, 0, 0, 9]))),
                _ => Event::LinkBack,
            };
            if what > 2 {
                now += Duration::from_millis(wait);
            }
            let (next, actions) = step(state, event, now);
            state = next;
            for action in actions {
                match action {
                    Action::Send { payload, .. } => last = decode(&payload),
                    Action::Bound(_) => holds = true,
                    Action::Lost => holds = false,
                    Action::GiveUp => prop_assert!(!holds),
                }
            }
            prop_assert_eq!(state.lease().is_some(), holds);
            if matches!(what, 0..=2) {
                prop_assert!(state.deadline > now, "{:?} at {:?}", state, now);
            }
        }
    }
}

#[test]
fn a_link_that_is_back_is_looked_on_at_once() {
    let (state, _, _, _) = fire(start());
    let now = Duration::from_millis(10);
    let (state, _) = step(state, Event::LinkBack, now);
    let (_, at, again, _) = fire(state);
    assert_eq!((at, again.opts().msg_type()), (now, Some(MessageType::Discover)));
}
