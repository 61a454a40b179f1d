//! Router advertisements, DHCPv6, static addresses, and both families at once.

use farrier_agent::net::{bring_up, resolver};

use crate::lab::{Lab, can_run, ip, wanted};

/// A dnsmasq that advertises itself as router of `fd00:9:N::/64` and answers DHCPv6 as `range` says.
fn router(lab: &mut Lab, link: u32, range: &str, more: &[&str]) {
    let range = format!("--dhcp-range={range}");
    let mut options = vec!["--enable-ra", range.as_str()];
    options.extend(more);
    lab.serve(link, &options);
}

#[test]
fn an_address_of_a_routers_prefix_leads_to_the_controller_and_its_name_server_is_used() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::new("slaac", 1);
    router(
        &mut lab,
        0,
        "fd00:9:0::,ra-only,64",
        &["--address=/api.lab.example/fd00:9:0::1", "--domain=lab.example"],
    );
    lab.listen();
    let (config, resolved) = lab.run(async |root| {
        let mut wanted = wanted("https://[fd00:9:0::1]:8082", Some("02:00:00:00:00:00"), None);
        wanted.image = "http://api.lab.example/image".parse().unwrap();
        wanted.ip6 = Some("auto".parse().unwrap());
        let network = bring_up(root, &wanted).await.unwrap();
        let found = resolver(&network).resolve("api.lab.example".parse().unwrap()).await;
        (network.config.clone(), found.map(|list| list.map(|a| a.ip().to_string()).collect::<Vec<_>>()).ok())
    });
    let plan = config.v6.unwrap();
    assert_eq!(plan.autoconf, ["fd00:9::ff:fe00:0".parse::<std::net::Ipv6Addr>().unwrap()]);
    assert_eq!(resolved.unwrap(), ["fd00:9::1"]);
    let routes = lab.ip_says("-6 route");
    assert!(routes.contains("default via fe80::"), "{routes}");
}

#[test]
fn where_routers_say_so_the_address_comes_by_dhcpv6() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::new("dhcp6", 1);
    let ntp = "--dhcp-option=option6:ntp-server,[fd00:9:0::123]";
    router(&mut lab, 0, "fd00:9:0::77,fd00:9:0::77,64,1h", &["--port=0", ntp]);
    lab.listen();
    let config = lab.run(async |root| {
        let wanted = wanted("https://[fd00:9:0::1]:8082", None, None);
        bring_up(root, &wanted).await.unwrap().config.clone()
    });
    let plan = config.v6.unwrap();
    assert_eq!(plan.addresses.len(), 1, "{plan:?}");
    assert_eq!(plan.addresses[0].address, "fd00:9:0::77".parse::<std::net::Ipv6Addr>().unwrap());
    assert_eq!(plan.ntp, ["fd00:9:0::123".parse::<std::net::Ipv6Addr>().unwrap()]);
    assert!(lab.ip_says("-6 addr show dev nic0").contains("fd00:9::77/128"));
}

#[test]
fn a_static_ipv6_address_is_checked_for_duplicates_and_used() {
    if !can_run() {
        return;
    }
    let lab = Lab::new("static6", 1);
    lab.listen();
    let config = lab.run(async |root| {
        let mut wanted = wanted("https://[fd00:9:0::1]:8082", None, None);
        wanted.ip6 = Some("fd00:9:0::5/64,fd00:9:0::1".parse().unwrap());
        bring_up(root, &wanted).await.unwrap().config.clone()
    });
    assert_eq!((config.v4, config.v6.unwrap().addresses.len()), (None, 1));
    let routes = lab.ip_says("-6 route");
    assert!(routes.contains("default via fd00:9::1 dev nic0"), "{routes}");
}

#[test]
fn of_two_families_the_one_that_leads_to_the_controller_wins() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::new("either", 2);
    // IPv4 is offered on one link and has no controller; the router is on the other.
    lab.serve(0, &["--dhcp-range=10.9.0.50,10.9.0.50,255.255.255.0,1h", "--port=0"]);
    // The router names itself as name server by its link-local address, which is one of either link.
    router(&mut lab, 1, "fd00:9:1::,ra-only,64", &["--address=/api.lab.example/fd00:9:1::1"]);
    lab.listen();
    let config = lab.run(async |root| {
        let wanted = wanted("https://api.lab.example:8082", None, None);
        bring_up(root, &wanted).await.unwrap().config.clone()
    });
    assert_eq!((config.interface.as_str(), config.v4), ("nic1", None));
    assert!(lab.ip_says("-6 route show default").contains("dev nic1"));
    assert!(!lab.ip_says("-6 route show default").contains("dev nic0"));
}

#[test]
fn a_leased_ipv6_address_another_machine_has_goes_back_and_the_next_is_taken() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::new("taken6", 1);
    ip(&format!("-n {} addr add fd00:9:0::77/64 dev far0 nodad", lab.server));
    router(&mut lab, 0, "fd00:9:0::77,fd00:9:0::78,64,1h", &["--port=0", "--dhcp-sequential-ip"]);
    lab.listen();
    let (address, shown) = lab.run(async |root| {
        let wanted = wanted("https://[fd00:9:0::1]:8082", None, None);
        let network = bring_up(root, &wanted).await.unwrap();
        let plan = network.config.v6.clone().unwrap();
        (plan.addresses[0].address.to_string(), plan.addresses.len())
    });
    assert_eq!((address.as_str(), shown), ("fd00:9::78", 1));
    let addresses = lab.ip_says("-6 addr show dev nic0");
    assert!(!addresses.contains("fd00:9::77"), "{addresses}");
}
