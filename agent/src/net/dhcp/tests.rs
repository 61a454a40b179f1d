//! The client against a server of plain data, on a clock of plain numbers.

use std::net::Ipv4Addr;
use std::time::Duration;

use dhcproto::v4::{DhcpOption, Message, MessageType, Opcode, OptionCode};
use dhcproto::{Decodable as _, Encodable as _, decoder::Decoder};
use farrier_shared::contract::MacAddress;
use proptest::prelude::*;

use super::machine::{Action, Destination, Event, State, step};
use super::{Lease, reply, wire};
use crate::net::Route;

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

/// A client that has a lease of an hour since second 0.
fn bound() -> State {
    let (state, now, discover, _) = fire(start());
    let (state, actions) = hear(state, answer(&discover, MessageType::Offer, &[]), now);
    let [Action::Send { payload, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    let ack = answer(&decode(payload), MessageType::Ack, &[]);
    let (state, actions) = hear(state, ack, now);
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
fn an_acknowledgement_of_another_server_is_not_ours() {
    let (state, now, discover, _) = fire(start());
    let (state, _) = hear(state, answer(&discover, MessageType::Offer, &[]), now);
    let other = DhcpOption::ServerIdentifier(Ipv4Addr::new(10, 0, 0, 2));
    let (_, actions) = hear(state, answer(&discover, MessageType::Ack, &[other]), now);
    assert!(actions.is_empty());
}

#[test]
fn a_lease_is_renewed_with_its_server_then_with_any_then_lost() {
    let (state, now, renew, to) = fire(bound());
    assert_eq!((now, to), (seconds(1800), Destination::Server(SERVER)));
    assert_eq!(renew.ciaddr(), ADDRESS);
    assert_eq!(renew.opts().get(OptionCode::ServerIdentifier), None);
    let (extended, actions) = hear(state.clone(), answer(&renew, MessageType::Ack, &[]), seconds(1801));
    assert!(matches!(actions.as_slice(), [Action::Bound(_)]));
    assert_eq!(extended.deadline, seconds(3600), "half of an hour from the renewal on");

    let mut state = state;
    let mut destinations = Vec::new();
    loop {
        let now = state.deadline;
        let (next, actions) = step(state, Event::Timeout, now);
        state = next;
        match actions.as_slice() {
            [Action::Send { to, .. }] => destinations.push((now, *to)),
            [Action::Lost, Action::Send { payload, .. }] => {
                assert_eq!(now, seconds(3600));
                assert_eq!(decode(payload).opts().msg_type(), Some(MessageType::Discover));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(destinations.iter().all(|(at, to)| (*at >= seconds(3150)) == (*to == Destination::Broadcast)));
    assert!(destinations.len() < 20, "{destinations:?}");
    assert!(state.lease().is_none());
}

#[test]
fn a_refused_renewal_gives_the_address_up() {
    let (state, now, renew, _) = fire(bound());
    let (state, actions) = hear(state, answer(&renew, MessageType::Nak, &[]), now);
    assert_eq!(actions, [Action::Lost]);
    assert!(state.lease().is_none());
}

#[test]
fn a_lease_without_end_is_never_renewed() {
    let lease = lease(&[DhcpOption::AddressLeaseTime(u32::MAX)]).unwrap();
    assert_eq!(lease.duration, None);
    let (state, now, discover, _) = fire(start());
    let forever = [DhcpOption::AddressLeaseTime(u32::MAX)];
    let (state, actions) = hear(state, answer(&discover, MessageType::Offer, &forever), now);
    let [Action::Send { payload, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    let (state, _) = hear(state, answer(&decode(payload), MessageType::Ack, &forever), now);
    assert_eq!(state.deadline, Duration::MAX);
}

#[test]
fn everything_the_server_says_is_kept() {
    let lease = lease(&[
        DhcpOption::Router(vec![Ipv4Addr::UNSPECIFIED, SERVER]),
        DhcpOption::DomainNameServer(vec![SERVER, SERVER, Ipv4Addr::new(10, 0, 0, 2)]),
        DhcpOption::DomainName("lab.example.".into()),
        DhcpOption::NtpServers(vec![SERVER]),
        DhcpOption::InterfaceMtu(9000),
    ])
    .unwrap();
    assert_eq!(lease.plan.prefix_len, 24);
    assert_eq!(lease.plan.routes, [Route { destination: Ipv4Addr::UNSPECIFIED, prefix_len: 0, via: SERVER }]);
    assert_eq!(lease.plan.dns, [SERVER, Ipv4Addr::new(10, 0, 0, 2)]);
    assert_eq!(
        (lease.plan.search, lease.plan.ntp, lease.plan.mtu),
        (vec!["lab.example".into()], vec![SERVER], Some(9000))
    );
}

#[test]
fn classless_routes_replace_the_router() {
    let lease = lease(&[
        DhcpOption::Router(vec![SERVER]),
        DhcpOption::ClasslessStaticRoute(vec![
            ("10.9.8.7/16".parse().unwrap(), Ipv4Addr::new(10, 0, 0, 3)),
            ("0.0.0.0/0".parse().unwrap(), Ipv4Addr::new(10, 0, 0, 4)),
        ]),
    ])
    .unwrap();
    let routes: Vec<_> = lease.plan.routes.iter().map(|r| (r.destination, r.prefix_len, r.via)).collect();
    assert_eq!(
        routes,
        [
            (Ipv4Addr::new(10, 9, 0, 0), 16, Ipv4Addr::new(10, 0, 0, 3)),
            (Ipv4Addr::UNSPECIFIED, 0, Ipv4Addr::new(10, 0, 0, 4))
        ]
    );
}

#[test]
fn nonsense_of_the_server_is_put_right() {
    let lease = lease(&[
        DhcpOption::SubnetMask(Ipv4Addr::new(255, 0, 255, 0)),
        DhcpOption::InterfaceMtu(68),
        DhcpOption::AddressLeaseTime(1),
        DhcpOption::Renewal(500),
        DhcpOption::Rebinding(400),
    ])
    .unwrap();
    assert_eq!((lease.plan.prefix_len, lease.plan.mtu), (8, None));
    assert_eq!((lease.duration, lease.renew_after), (Some(seconds(60)), seconds(30)));
    assert!(lease.renew_after < lease.rebind_after && lease.rebind_after < seconds(60));
}

#[test]
fn headers_are_those_of_a_broadcast_and_an_answer_is_unwrapped() {
    let packet = wire::broadcast(b"hello").unwrap();
    assert_eq!(&packet[..4], &[0x45, 0x10, 0, 33]);
    assert_eq!(&packet[12..20], &[0, 0, 0, 0, 255, 255, 255, 255]);
    let sum: u32 = packet[..20].chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(p[1])).sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "header checksum");
    assert_eq!(wire::payload(&packet), None, "our own question is not an answer");
    let mut reply = packet;
    reply[20..24].copy_from_slice(&[0, 67, 0, 68]);
    assert_eq!(wire::payload(&reply), Some(b"hello".as_slice()));
    reply.push(0);
    assert_eq!(wire::payload(&reply), Some(b"hello".as_slice()), "padding of short frames is not payload");
    reply[6] = 0x20;
    assert_eq!(wire::payload(&reply), None, "fragments are not put together");
    assert_eq!(wire::broadcast(&vec![0; 70_000]), None);
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
    fn the_client_always_has_something_to_wait_for(script in prop::collection::vec((0_u8..6, 0_u64..400), 1..60)) {
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
                _ => Event::Heard(Box::new(answer(&last, MessageType::Nak, &[]))),
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
fn a_link_that_is_back_has_the_lease_confirmed_by_whoever_serves_it_now() {
    let now = seconds(50);
    let (state, actions) = step(bound(), Event::LinkBack, now);
    assert_eq!((actions.len(), state.deadline), (0, now));
    let (state, _, request, to) = fire(state);
    assert_eq!((request.ciaddr(), to), (ADDRESS, Destination::Broadcast));
    let (kept, actions) = hear(state.clone(), answer(&request, MessageType::Ack, &[]), now);
    assert!(matches!(actions.as_slice(), [Action::Bound(_)]));
    assert_eq!(kept.deadline, now + seconds(1800));
    let (_, actions) = hear(state, answer(&request, MessageType::Nak, &[]), now);
    assert_eq!(actions, [Action::Lost], "another network");
}

#[test]
fn a_link_that_is_back_is_looked_on_at_once() {
    let (state, _, _, _) = fire(start());
    let now = Duration::from_millis(10);
    let (state, _) = step(state, Event::LinkBack, now);
    let (_, at, again, _) = fire(state);
    assert_eq!((at, again.opts().msg_type()), (now, Some(MessageType::Discover)));
}
