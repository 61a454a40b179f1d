//! What is made of a server's options, and of packets.

use super::*;
use crate::net::Route;

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
fn routes_that_cannot_be_read_leave_the_router() {
    let mut message = answer(&Message::default(), MessageType::Ack, &[DhcpOption::Router(vec![SERVER])]);
    let list = DhcpOption::ClasslessStaticRoute(Vec::new());
    message.opts_mut().insert(list);
    let lease = Lease::from_message(&message).unwrap();
    assert_eq!(lease.plan.gateway(), Some(SERVER));
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
    assert_eq!((lease.duration, lease.renew_after), (Some(seconds(10)), seconds(5)));
    assert!(lease.renew_after < lease.rebind_after && lease.rebind_after < seconds(10));
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
