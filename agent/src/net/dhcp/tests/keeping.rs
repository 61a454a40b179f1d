//! What becomes of a lease: renewed, confirmed, refused, lost.

use super::*;

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
    let forever = [DhcpOption::AddressLeaseTime(u32::MAX)];
    assert_eq!(lease(&forever).unwrap().duration, None);
    let mut state = bound_with(&forever);
    assert_eq!(state.deadline, Duration::MAX);
    // After the link was away servers are asked a few times, and then it holds again.
    (state, _) = step(state, Event::LinkBack, seconds(50));
    let mut asked = 0;
    while state.deadline != Duration::MAX {
        let now = state.deadline;
        let (next, actions) = step(state, Event::Timeout, now);
        asked += actions.len();
        state = next;
    }
    assert_eq!((asked, state.lease().is_some()), (8, true));
}

#[test]
fn a_link_that_is_back_has_the_lease_confirmed_by_whoever_serves_it_now() {
    let now = seconds(50);
    let (state, actions) = step(bound(), Event::LinkBack, now);
    assert_eq!((actions.len(), state.deadline), (0, now));
    let (state, _, request, to) = fire(state);
    assert_eq!((request.ciaddr(), to), (Ipv4Addr::UNSPECIFIED, Destination::Broadcast));
    let codes: Vec<u8> = request.opts().iter().map(|(code, _)| u8::from(*code)).collect();
    assert!(codes.contains(&50) && !codes.contains(&54), "RFC 2131, section 4.3.2: {codes:?}");
    let (kept, actions) = hear(state.clone(), answer(&request, MessageType::Ack, &[]), now);
    assert!(matches!(actions.as_slice(), [Action::Bound(_)]));
    assert_eq!(kept.deadline, now + seconds(1800));
    let (_, actions) = hear(state.clone(), answer(&request, MessageType::Nak, &[]), now);
    assert_eq!(actions, [Action::Lost], "another network");
    // The port may be learning: several questions within a minute, and none after it.
    let mut state = state;
    let mut asked = 1;
    while !state.is_idle() {
        let at = state.deadline;
        let (next, actions) = step(state, Event::Timeout, at);
        (asked, state) = (asked + actions.len(), next);
        assert!(at < now + seconds(70));
    }
    assert_eq!((asked, state.deadline, state.lease().is_some()), (8, seconds(1800), true));
}
