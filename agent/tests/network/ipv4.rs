//! DHCP, static addresses, which interface wins, and links that are lost.

use std::net::Ipv4Addr;
use std::process::Command;
use std::thread;
use std::time::Duration;

use farrier_agent::net::dhcp::client;
use farrier_agent::net::{NetError, Network, bring_up, links, resolver};

use crate::lab::{Lab, can_run, ip, wanted};

#[test]
fn a_lease_is_configured_with_its_routes_and_names_are_resolved_by_its_server() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::new("one", 1);
    lab.serve(
        0,
        &[
            "--dhcp-range=10.9.0.50,10.9.0.50,255.255.255.0,1h",
            "--dhcp-option=121,192.0.2.0/24,10.9.0.7,0.0.0.0/0,10.9.0.1",
            "--dhcp-option=26,1400",
            "--dhcp-option=42,10.9.0.1",
            "--domain=lab.example",
            "--address=/api.lab.example/10.9.0.1",
        ],
    );
    lab.listen();
    let (network, resolved) = lab.run(async |root| {
        let wanted = wanted("https://api.lab.example:8082", Some("02:00:00:00:00:00"), None);
        let network = bring_up(root, &wanted).await.unwrap();
        let resolver = resolver(&network);
        let resolved: Vec<_> = resolver.resolve("api.lab.example".parse().unwrap()).await.unwrap().collect();
        (network.config.clone(), resolved)
    });
    let plan = network.v4.unwrap();
    assert_eq!(plan.address, Ipv4Addr::new(10, 9, 0, 50));
    assert_eq!((plan.prefix_len, plan.mtu), (24, Some(1400)));
    assert_eq!(plan.ntp, [Ipv4Addr::new(10, 9, 0, 1)]);
    assert_eq!(network.lease.unwrap().server, Ipv4Addr::new(10, 9, 0, 1));
    assert_eq!(resolved.iter().map(|a| a.ip().to_string()).collect::<Vec<_>>(), ["10.9.0.1"]);
    let routes = lab.routes();
    assert!(routes.contains("default via 10.9.0.1 dev nic0"), "{routes}");
    assert!(routes.contains("192.0.2.0/24 via 10.9.0.7 dev nic0"), "{routes}");
}

#[test]
fn of_several_interfaces_the_one_that_leads_to_the_controller_wins() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::new("race", 3);
    // The first has a server and no way to the controller, the second has no server at all.
    lab.serve(0, &["--dhcp-range=10.9.0.50,10.9.0.50,255.255.255.0,1h", "--port=0"]);
    lab.serve(2, &["--dhcp-range=10.9.2.50,10.9.2.50,255.255.255.0,1h", "--port=0"]);
    ip(&format!("netns exec {} ip addr add 198.51.100.1/32 dev far2", lab.server));
    // A router that answers to nothing: packets for the controller vanish on the first link. The table of local
    // addresses is asked before every rule, unless it is moved behind ours.
    for rule in ["add pref 100 lookup local", "del pref 0", "add pref 50 iif far0 to 198.51.100.1 blackhole"]
    {
        ip(&format!("netns exec {} ip rule {rule}", lab.server));
    }
    lab.listen();
    let config = lab.run(async |root| {
        let network: Network =
            bring_up(root, &wanted("https://198.51.100.1:8082", None, None)).await.unwrap();
        network.config.clone()
    });
    assert_eq!(
        (config.interface.as_str(), config.v4.unwrap().address),
        ("nic2", Ipv4Addr::new(10, 9, 2, 50))
    );
    let routes = lab.routes();
    assert!(!routes.contains("nic0") && routes.contains("default via 10.9.2.1 dev nic2"), "{routes}");
}

#[test]
fn an_interface_whose_lease_the_kernel_refuses_leaves_the_race_to_the_others() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::new("odd", 2);
    // No router can have the subnet's broadcast address.
    lab.serve(
        0,
        &["--dhcp-range=10.9.0.50,10.9.0.50,255.255.255.0,1h", "--port=0", "--dhcp-option=3,10.9.0.255"],
    );
    lab.listen();
    // The good link comes late, so that the odd lease is tried first.
    let namespace = lab.server.clone();
    ip(&format!("-n {namespace} link set far1 down"));
    let late = thread::spawn(move || {
        thread::sleep(Duration::from_secs(4));
        ip(&format!("-n {namespace} link set far1 up"));
    });
    lab.serve(1, &["--dhcp-range=10.9.1.50,10.9.1.50,255.255.255.0,1h", "--port=0"]);
    let wanted = wanted("https://10.9.1.1:8082", None, None);
    let config = lab.run(async move |root| bring_up(root, &wanted).await.unwrap().config.clone());
    late.join().unwrap();
    assert_eq!(
        (config.interface.as_str(), config.v4.unwrap().address),
        ("nic1", Ipv4Addr::new(10, 9, 1, 50))
    );
}

#[test]
fn a_static_address_may_have_its_gateway_outside_the_subnet() {
    if !can_run() {
        return;
    }
    let lab = Lab::new("static", 1);
    ip(&format!("-n {} route add 203.0.113.9/32 dev far0", lab.server));
    lab.listen();
    let wanted = wanted("https://10.9.0.1:8082", None, Some("203.0.113.9::10.9.0.1:32"));
    let config = lab.run(async move |root| bring_up(root, &wanted).await.unwrap().config.clone());
    assert_eq!((config.lease, config.v4.unwrap().prefix_len), (None, 32));
    let routes = lab.routes();
    assert!(routes.contains("default via 10.9.0.1 dev nic0") && routes.contains("onlink"), "{routes}");
}

#[test]
fn without_a_server_the_reason_names_the_interface() {
    if !can_run() {
        return;
    }
    let lab = Lab::new("none", 1);
    let error = lab.run(async |root| {
        let link = links::physical(root).remove(0);
        ip_up(&link.name);
        client::acquire(&link, Duration::from_secs(3)).await.unwrap_err()
    });
    assert!(error.to_string().contains("no DHCP offer on nic0 within 3s"), "{error}");
}

/// In the namespace of the calling thread, which children inherit.
fn ip_up(name: &str) {
    ip(&format!("link set {name} up"));
}

#[test]
fn an_absent_boot_interface_is_an_error() {
    if !can_run() {
        return;
    }
    let lab = Lab::new("boot", 1);
    let wanted = wanted("https://10.9.0.1:8082", Some("02:00:00:00:00:99"), None);
    let error = lab.run(async move |root| bring_up(root, &wanted).await.unwrap_err());
    assert!(matches!(error, NetError::Link(_)), "{error}");
}

#[test]
fn a_short_lease_is_renewed_while_the_network_lives() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::new("renew", 1);
    lab.serve(
        0,
        &[
            "--dhcp-range=10.9.0.50,10.9.0.50,255.255.255.0,2m",
            "--port=0",
            "--dhcp-option=58,3",
            "--dhcp-option=59,100",
        ],
    );
    let renewed = lab.run(async |root| {
        let link = links::physical(root).remove(0);
        ip_up(&link.name);
        let (lease, mut client) = client::acquire(&link, Duration::from_secs(20)).await.unwrap();
        ip(&format!("addr add {}/24 dev {}", lease.plan.address, link.name));
        let change =
            tokio::time::timeout(Duration::from_secs(20), client.next_change()).await.unwrap().unwrap();
        (lease.renew_after, format!("{change:?}"))
    });
    assert_eq!(renewed.0, Duration::from_secs(3));
    assert!(renewed.1.starts_with("Bound"), "{}", renewed.1);
}

#[test]
fn a_refused_route_on_the_only_interface_does_not_fail_the_run() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::new("refused", 1);
    // No router can have the subnet's broadcast address.
    lab.serve(
        0,
        &["--dhcp-range=10.9.0.50,10.9.0.50,255.255.255.0,1h", "--port=0", "--dhcp-option=3,10.9.0.255"],
    );
    lab.listen();
    let wanted = wanted("https://10.9.0.1:8082", None, None);
    let config = lab.run(async move |root| bring_up(root, &wanted).await.unwrap().config.clone());
    assert_eq!(config.v4.unwrap().address, Ipv4Addr::new(10, 9, 0, 50));
}

#[test]
fn a_link_that_was_lost_gets_its_routes_back() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::new("loss", 1);
    lab.serve(0, &["--dhcp-range=10.9.0.50,10.9.0.50,255.255.255.0,1h", "--port=0"]);
    lab.listen();
    let (agent, server) = (lab.agent.clone(), lab.server.clone());
    let (before, during) = lab.run(async move |root| {
        let wanted = wanted("https://10.9.0.1:8082", None, None);
        let _network = bring_up(root, &wanted).await.unwrap();
        let says = |args: &str| {
            let out = Command::new("ip").args(["-n", &agent]).args(args.split(' ')).output().unwrap();
            String::from_utf8(out.stdout).unwrap()
        };
        let routes = || says("-4 route");
        let before = routes();
        // The far side goes away, and with our own side set down and up the kernel forgets every route.
        ip(&format!("-n {server} link set far0 down"));
        come_to("the loss of the link", || says("link show dev nic0").contains("NO-CARRIER")).await;
        ip(&format!("-n {agent} link set nic0 down"));
        let during = routes();
        ip(&format!("-n {agent} link set nic0 up"));
        ip(&format!("-n {server} link set far0 up"));
        come_to("the routes of before", || routes() == before).await;
        (before, during)
    });
    assert!(before.contains("default via 10.9.0.1 dev nic0"), "{before}");
    assert_eq!(during, "");
}

#[test]
fn an_address_another_machine_has_goes_back_to_the_server_and_the_next_is_taken() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::new("taken", 1);
    ip(&format!("-n {} addr add 10.9.0.50/24 dev far0", lab.server));
    // No router: here it is the very machine that has the address, and would be taken for one that speaks for others.
    lab.serve(
        0,
        &[
            "--dhcp-range=10.9.0.50,10.9.0.51,255.255.255.0,1h",
            "--dhcp-sequential-ip",
            "--port=0",
            "--dhcp-option=3",
        ],
    );
    lab.listen();
    let wanted = wanted("https://10.9.0.1:8082", None, None);
    let config = lab.run(async move |root| bring_up(root, &wanted).await.unwrap().config.clone());
    assert_eq!(config.v4.unwrap().address, Ipv4Addr::new(10, 9, 0, 51));
    assert!(config.took > Duration::from_secs(10), "RFC 2131 wants a pause: {:?}", config.took);
}

#[test]
fn name_servers_that_are_dead_do_not_hide_the_one_that_answers() {
    if !can_run() {
        return;
    }
    let takes = |name, servers: &str| {
        let mut lab = Lab::new(name, 1);
        let servers = format!("--dhcp-option=6,{servers}");
        lab.serve(
            0,
            &[
                "--dhcp-range=10.9.0.50,10.9.0.50,255.255.255.0,1h",
                &servers,
                "--address=/api.lab.example/10.9.0.1",
            ],
        );
        lab.listen();
        let wanted = wanted("https://api.lab.example:8082", None, None);
        lab.run(async move |root| bring_up(root, &wanted).await.unwrap().config.took)
    };
    let alone = takes("heard", "10.9.0.1");
    let behind = takes("deaf", "10.9.0.98,10.9.0.99,10.9.0.1");
    // A lookup that fails takes eight seconds.
    assert!(behind < alone + Duration::from_secs(8), "{behind:?}, and {alone:?} without the dead ones");
}

#[test]
fn of_several_interfaces_the_best_is_taken_soon_where_none_leads_to_the_controller() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::new("nowhere", 3);
    // The first gives no gateway, the second does, the third has no link; nobody advertises IPv6.
    lab.serve(0, &["--dhcp-range=10.9.0.50,10.9.0.50,255.255.255.0,1h", "--port=0", "--dhcp-option=3"]);
    lab.serve(1, &["--dhcp-range=10.9.1.50,10.9.1.50,255.255.255.0,1h", "--port=0"]);
    ip(&format!("-n {} link set far2 down", lab.server));
    let mut wanted = wanted("https://198.51.100.1:8082", None, None);
    wanted.ip6 = Some("auto".parse().unwrap());
    let config = lab.run(async move |root| bring_up(root, &wanted).await.unwrap().config.clone());
    assert_eq!(config.interface, "nic1");
    assert!(config.took < Duration::from_secs(90), "{:?}", config.took);
}

/// Looks for up to a minute, and lets the agent go on meanwhile.
async fn come_to(what: &str, mut found: impl FnMut() -> bool) {
    for _ in 0..600 {
        if found() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what}: not within a minute");
}

/// Looks for up to a minute.
fn wait_for(what: &str, found: impl Fn() -> bool) {
    for _ in 0..600 {
        if found() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("{what}: not within a minute");
}

#[test]
fn a_link_that_comes_back_in_another_network_gets_its_address_however_late() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::new("moved", 1);
    lab.serve(0, &["--dhcp-range=10.9.0.50,10.9.0.50,255.255.255.0,1h", "--port=0"]);
    lab.listen();
    let mut wanted = wanted("https://10.9.0.1:8082", None, None);
    wanted.patience = Duration::from_secs(4);
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let agent = lab.start(async move |root| {
        let _network = bring_up(root, &wanted).await.unwrap();
        let _ = ended.await;
    });
    wait_for("the address", || lab.routes().contains("default via 10.9.0.1"));
    lab.silence();
    let server = lab.server.clone();
    ip(&format!("-n {server} link set far0 down"));
    // The kernel tells of no loss that is over within a moment.
    wait_for("the loss of the link", || lab.ip_says("link show dev nic0").contains("NO-CARRIER"));
    thread::sleep(Duration::from_millis(1500));
    ip(&format!("-n {server} addr del 10.9.0.1/24 dev far0"));
    ip(&format!("-n {server} addr add 10.9.5.1/24 dev far0"));
    // Refuses the old address, and gives no other yet.
    lab.serve(0, &["--dhcp-range=10.9.5.0,static", "--dhcp-authoritative", "--port=0"]);
    ip(&format!("-n {server} link set far0 up"));
    wait_for("the refusal", || !lab.ip_says("-4 addr show dev nic0").contains("10.9.0.50"));
    // Longer than the patience of one who never had an address.
    thread::sleep(Duration::from_secs(6));
    lab.silence();
    lab.serve(0, &["--dhcp-range=10.9.5.60,10.9.5.60,255.255.255.0,1h", "--port=0"]);
    wait_for("the other network's address", || lab.routes().contains("default via 10.9.5.1"));
    assert!(lab.ip_says("-4 addr show dev nic0").contains("10.9.5.60/24"));
    end.send(()).unwrap();
    agent.join().unwrap();
}
