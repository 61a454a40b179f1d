//! The client against a server made of the codec, which witnesses what we write and how we read.

use std::net::Ipv6Addr;
use std::time::Duration;

use dhcproto::v6::{
    DhcpOption, DhcpOptions, IAAddr, IANA, Message, MessageType, NtpSuboption, OptionCode, Status as Code,
    StatusCode,
};
use dhcproto::{Decodable as _, Encodable as _, decoder::Decoder};
use farrier_shared::contract::MacAddress;
use proptest::prelude::*;

use super::machine::{Action, Event, State, Want, step};
use super::reply::{self, Answer};

const PATIENCE: Duration = Duration::from_secs(120);
const ADDRESS: &str = "fd00::77";

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn start(want: Want) -> State {
    State::new(MacAddress::from_bytes([2, 0, 0, 0, 0, 1]), want, PATIENCE, 7, Duration::ZERO)
}

fn decode(bytes: &[u8]) -> Message {
    Message::decode(&mut Decoder::new(bytes)).unwrap()
}

fn status(status: Code) -> DhcpOption {
    DhcpOption::StatusCode(StatusCode { status, msg: "because".into() })
}

fn association(id: u32, inner: Vec<DhcpOption>) -> DhcpOption {
    DhcpOption::IANA(IANA { id, t1: 1000, t2: 1600, opts: inner.into_iter().collect() })
}

fn address(text: &str, valid_life: u32) -> DhcpOption {
    let addr = text.parse().unwrap();
    DhcpOption::IAAddr(IAAddr { addr, preferred_life: valid_life / 2, valid_life, opts: DhcpOptions::new() })
}

fn iaid(question: &Message) -> u32 {
    match question.opts().get(OptionCode::IANA) {
        Some(DhcpOption::IANA(ia)) => ia.id,
        _ => 0,
    }
}

/// What the server `server` answers to a question.
fn encoded(question: &Message, kind: MessageType, server: u8, options: Vec<DhcpOption>) -> Vec<u8> {
    let mut message = Message::new_with_id(kind, question.xid());
    let opts = message.opts_mut();
    if let Some(client) = question.opts().get(OptionCode::ClientId) {
        opts.insert(client.clone());
    }
    opts.insert(DhcpOption::ServerId(vec![0, 3, 0, 1, server]));
    for option in options {
        opts.insert(option);
    }
    message.to_vec().unwrap()
}

fn answer(question: &Message, kind: MessageType, options: Vec<DhcpOption>) -> Event {
    answer_of(1, question, kind, options)
}

fn answer_of(server: u8, question: &Message, kind: MessageType, options: Vec<DhcpOption>) -> Event {
    let bytes = encoded(question, kind, server, options);
    Event::Heard(Box::new(reply::read(&bytes, start(Want::Address).iaid()).unwrap()))
}

/// The same with our address in it.
fn gives(question: &Message, kind: MessageType) -> Event {
    answer(question, kind, vec![association(iaid(question), vec![address(ADDRESS, 4000)])])
}

/// Lets the deadline pass; the one message that is sent then.
fn fire(state: State) -> (State, Duration, Message) {
    let now = state.deadline;
    let (state, actions) = step(state, Event::Timeout, now);
    match actions.as_slice() {
        [Action::Send(payload)] => (state, now, decode(payload)),
        other => panic!("one message expected, got {other:?}"),
    }
}

/// A client that has a lease since second 1; T1 is 1000 s, T2 1600 s, its end 4000 s later.
fn bound() -> State {
    let (state, now, solicit) = fire(start(Want::Address));
    let (state, actions) = step(state, gives(&solicit, MessageType::Advertise), now);
    assert_eq!(actions, [], "offers are collected for a second");
    let (state, now, request) = fire(state);
    let (state, actions) = step(state, gives(&request, MessageType::Reply), now);
    let [Action::Bound(lease)] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!(lease.addresses, [ADDRESS.parse::<Ipv6Addr>().unwrap()]);
    state
}

#[test]
fn four_messages_lead_to_a_lease() {
    let (state, now, solicit) = fire(start(Want::Address));
    assert_eq!(solicit.msg_type(), MessageType::Solicit);
    let id = vec![0, 3, 0, 1, 2, 0, 0, 0, 0, 1];
    assert_eq!(solicit.opts().get(OptionCode::ClientId), Some(&DhcpOption::ClientId(id)));
    assert!(solicit.opts().get(OptionCode::ServerId).is_none());
    let (state, _) = step(state, gives(&solicit, MessageType::Advertise), now);
    assert!(state.offered);
    let (_, _, request) = fire(state);
    assert_eq!(request.msg_type(), MessageType::Request);
    assert!(request.opts().get(OptionCode::ServerId).is_some());
    let Some(DhcpOption::IANA(ia)) = request.opts().get(OptionCode::IANA) else { panic!("{request:?}") };
    assert!(ia.opts.get(OptionCode::IAAddr).is_some());
    assert_ne!(request.xid(), solicit.xid());
    assert!(bound().deadline >= seconds(1000) && bound().deadline < seconds(1003));
}

#[test]
fn of_several_offers_the_preferred_server_is_asked() {
    let offer = |state: State, solicit: &Message, server, preference| {
        let ia = association(iaid(solicit), vec![address(ADDRESS, 4000)]);
        let options = vec![ia, DhcpOption::Preference(preference)];
        step(state, answer_of(server, solicit, MessageType::Advertise, options), Duration::ZERO)
    };
    let (state, _, solicit) = fire(start(Want::Address));
    let (state, _) = offer(state, &solicit, 1, 5);
    let (state, _) = offer(state, &solicit, 2, 9);
    let (state, actions) = offer(state, &solicit, 3, 7);
    assert!(actions.is_empty());
    let (_, _, request) = fire(state.clone());
    let id = |n| Some(DhcpOption::ServerId(vec![0, 3, 0, 1, n]));
    assert_eq!(request.opts().get(OptionCode::ServerId), id(2).as_ref());
    let (_, actions) = offer(state, &solicit, 4, 255);
    let [Action::Send(payload)] = actions.as_slice() else { panic!("255 is taken at once") };
    assert_eq!(decode(payload).opts().get(OptionCode::ServerId), id(4).as_ref());
}

#[test]
fn settings_alone_are_asked_for_once() {
    let (state, now, question) = fire(start(Want::Settings));
    assert_eq!(question.msg_type(), MessageType::InformationRequest);
    assert!(question.opts().get(OptionCode::IANA).is_none());
    let ntp = NtpSuboption::ServerAddress("fd00::123".parse().unwrap());
    let options = vec![
        DhcpOption::DomainNameServers(vec!["fd00::53".parse().unwrap(), "ff02::1".parse().unwrap()]),
        DhcpOption::NtpServer(vec![ntp]),
        association(start(Want::Address).iaid(), vec![address(ADDRESS, 4000)]),
    ];
    let (state, actions) = step(state, answer(&question, MessageType::Reply, options), now);
    let [Action::Bound(lease)] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!((lease.dns.len(), lease.ntp.len(), lease.addresses.len()), (1, 1, 0));
    assert_eq!(state.deadline, Duration::MAX);
}

#[test]
fn answers_of_others_and_refusals_change_nothing() {
    let (state, now, solicit) = fire(start(Want::Address));
    let ours = |inner| vec![association(iaid(&solicit), inner)];
    let mut other_client = solicit.clone();
    other_client.opts_mut().remove(OptionCode::ClientId);
    other_client.opts_mut().insert(DhcpOption::ClientId(vec![0, 3, 0, 1, 2, 0, 0, 0, 0, 9]));
    let mut other_exchange = solicit.clone();
    other_exchange.set_xid_num(solicit.xid_num() ^ 1);
    let kind = MessageType::Advertise;
    for (why, event) in [
        ("another client", gives(&other_client, kind)),
        ("another exchange", gives(&other_exchange, kind)),
        ("another association", answer(&solicit, kind, vec![association(9, vec![address(ADDRESS, 4000)])])),
        ("no address", answer(&solicit, kind, ours(vec![status(Code::NoAddrsAvail)]))),
        ("refused as a whole", answer(&solicit, kind, vec![status(Code::NoAddrsAvail)])),
        ("an address that is over", answer(&solicit, kind, ours(vec![address(ADDRESS, 0)]))),
        ("a multicast address", answer(&solicit, kind, ours(vec![address("ff02::1", 4000)]))),
        ("not an offer", gives(&solicit, MessageType::Reply)),
    ] {
        let (after, actions) = step(state.clone(), event, now);
        assert_eq!((actions.len(), after.deadline, after.offered), (0, state.deadline, false), "{why}");
    }
}

#[test]
fn patience_lasts_through_spanning_tree_and_then_ends_once() {
    let mut state = start(Want::Address);
    let mut sent: Vec<Duration> = Vec::new();
    loop {
        let now = state.deadline;
        let (next, actions) = step(state, Event::Timeout, now);
        state = next;
        match actions.as_slice() {
            [Action::Send(_)] => sent.push(now),
            [Action::GiveUp] => {
                assert_eq!(now, PATIENCE);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(state.deadline, Duration::MAX);
    assert!(sent.windows(2).all(|w| w[1] - w[0] <= seconds(9)), "{sent:?}");
}

#[test]
fn a_lease_is_renewed_with_its_server_then_with_any_then_lost() {
    let (state, now, renew) = fire(bound());
    assert_eq!(renew.msg_type(), MessageType::Renew);
    assert!(renew.opts().get(OptionCode::ServerId).is_some());
    let (extended, actions) = step(state.clone(), gives(&renew, MessageType::Reply), now);
    assert!(matches!(actions.as_slice(), [Action::Bound(_)]));
    assert_eq!(extended.deadline, now + seconds(1000));
    let mut state = state;
    let mut kinds = Vec::new();
    loop {
        let now = state.deadline;
        let (next, actions) = step(state, Event::Timeout, now);
        state = next;
        match actions.as_slice() {
            [Action::Send(payload)] => kinds.push((now, decode(payload).msg_type())),
            [Action::Lost, Action::Send(payload)] => {
                assert!(now >= seconds(4000) && now < seconds(4010), "{now:?}");
                assert_eq!(decode(payload).msg_type(), MessageType::Solicit);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    let rebound = kinds.iter().filter(|(_, kind)| *kind == MessageType::Rebind).count();
    assert!(rebound > 1 && kinds.len() < 40, "{kinds:?}");
    assert!(kinds.iter().all(|(at, kind)| (*at >= seconds(1601)) == (*kind == MessageType::Rebind)));
}

#[test]
fn a_server_that_forgot_us_is_asked_for_the_same_address_while_it_is_ours() {
    let (state, now, renew) = fire(bound());
    let inner = |code| vec![association(iaid(&renew), vec![status(code)])];
    let (state, actions) = step(state, answer(&renew, MessageType::Reply, inner(Code::NoBinding)), now);
    assert_eq!((actions.len(), state.lease().is_some()), (0, true));
    let (state, now, request) = fire(state);
    assert_eq!(request.msg_type(), MessageType::Request);
    let Some(DhcpOption::IANA(ia)) = request.opts().get(OptionCode::IANA) else { panic!("{request:?}") };
    assert!(ia.opts.get(OptionCode::IAAddr).is_some());
    let (given, actions) = step(state.clone(), gives(&request, MessageType::Reply), now);
    assert!(matches!(actions.as_slice(), [Action::Bound(_)]) && given.lease().is_some());
    let refused = answer(&request, MessageType::Reply, inner(Code::NoAddrsAvail));
    let (after, actions) = step(state.clone(), refused, now);
    assert_eq!((actions, after.lease()), (vec![Action::Lost], None));
    let mut silent = state;
    while silent.lease().is_some() {
        let now = silent.deadline;
        assert!(now < seconds(1100), "a server that says no more is left");
        (silent, _) = step(silent, Event::Timeout, now);
    }
    let (_, _, message) = fire(silent);
    assert_eq!(message.msg_type(), MessageType::Solicit);
}

#[test]
fn an_address_that_is_of_another_link_is_given_up_at_once() {
    let (state, now, renew) = fire(bound());
    let moved = vec![association(iaid(&renew), vec![status(Code::NotOnLink)])];
    let (state, actions) = step(state, answer(&renew, MessageType::Reply, moved), now);
    assert_eq!((actions, state.lease()), (vec![Action::Lost], None));
}

#[test]
fn an_address_another_machine_has_goes_back() {
    let ours: Ipv6Addr = ADDRESS.parse().unwrap();
    let now = seconds(3);
    let (same, actions) = step(bound(), Event::Taken("fd00::78".parse().unwrap()), now);
    assert!(actions.is_empty() && same.lease().is_some(), "not ours");
    let (state, actions) = step(bound(), Event::Taken(ours), now);
    let [Action::Send(payload), Action::Lost] = actions.as_slice() else { panic!("{actions:?}") };
    let decline = decode(payload);
    assert_eq!(decline.msg_type(), MessageType::Decline);
    assert!(decline.opts().get(OptionCode::ServerId).is_some());
    assert!(decline.opts().get(OptionCode::ORO).is_none());
    let Some(DhcpOption::IANA(ia)) = decline.opts().get(OptionCode::IANA) else { panic!("{decline:?}") };
    let Some(DhcpOption::IAAddr(back)) = ia.opts.get(OptionCode::IAAddr) else { panic!("{ia:?}") };
    assert_eq!(back.addr, ours);
    let (_, at, solicit) = fire(state);
    assert_eq!((at, solicit.msg_type()), (seconds(4), MessageType::Solicit));
}

#[test]
fn a_server_that_offers_and_never_gives_does_not_keep_the_others_out() {
    let (state, now, solicit) = fire(start(Want::Address));
    let (mut state, _) = step(state, gives(&solicit, MessageType::Advertise), now);
    for _ in 0..4 {
        (state, _, _) = fire(state);
    }
    let (state, now, solicit) = fire(state);
    assert_eq!(solicit.msg_type(), MessageType::Solicit);
    let offer = |state: State, server, preference| {
        let ia = association(iaid(&solicit), vec![address(ADDRESS, 4000)]);
        let options = vec![ia, DhcpOption::Preference(preference)];
        step(state, answer_of(server, &solicit, MessageType::Advertise, options), now)
    };
    let (state, actions) = offer(state, 1, 255);
    assert!(actions.is_empty(), "not at once, whatever it says of itself");
    let id = |n| Some(DhcpOption::ServerId(vec![0, 3, 0, 1, n]));
    let (_, _, request) = fire(state.clone());
    assert_eq!(request.opts().get(OptionCode::ServerId), id(1).as_ref(), "where it is the only one");
    let (state, _) = offer(state, 2, 0);
    let (_, _, request) = fire(state);
    assert_eq!(request.opts().get(OptionCode::ServerId), id(2).as_ref());
}

#[test]
fn settings_that_are_refused_are_asked_for_again() {
    let (state, now, question) = fire(start(Want::Settings));
    let (state, actions) =
        step(state, answer(&question, MessageType::Reply, vec![status(Code::UnspecFail)]), now);
    assert!(actions.is_empty());
    assert_eq!(fire(state).2.msg_type(), MessageType::InformationRequest);
}

#[test]
fn a_link_that_is_back_has_the_addresses_confirmed() {
    let now = seconds(50);
    let (state, actions) = step(bound(), Event::LinkBack, now);
    assert_eq!((actions.len(), state.deadline), (0, now));
    let (state, _, confirm) = fire(state);
    assert_eq!(confirm.msg_type(), MessageType::Confirm);
    let reply = |code| answer(&confirm, MessageType::Reply, vec![status(code)]);
    let (same, actions) = step(state.clone(), reply(Code::Success), now);
    assert_eq!((actions.len(), same.deadline), (0, bound().deadline), "nothing changes");
    let (moved, actions) = step(state.clone(), reply(Code::NotOnLink), now);
    assert_eq!((actions, moved.lease().is_none()), (vec![Action::Lost], true));
    let mut silent = state;
    while silent.deadline < seconds(200) {
        let now = silent.deadline;
        (silent, _) = step(silent, Event::Timeout, now);
    }
    assert_eq!(silent.deadline, bound().deadline, "no answer is no refusal");
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = reply::read(&bytes, 1);
    }

    #[test]
    fn any_options_are_read_without_a_fault(
        code in prop::sample::select(vec![1_u16, 2, 3, 5, 7, 13, 23, 24, 31, 56, 9999]),
        value in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut bytes = vec![7, 0, 0, 1];
        bytes.extend(code.to_be_bytes());
        bytes.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        bytes.extend(&value);
        let answer: Answer = reply::read(&bytes, 1).unwrap();
        prop_assert!(answer.dns.len() <= 4 && answer.ntp.len() <= 4 && answer.addresses.len() <= 4);
        let _ = step(bound(), Event::Heard(Box::new(answer)), seconds(5));
    }
}
