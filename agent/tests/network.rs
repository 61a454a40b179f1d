//! The network edge against a real kernel and a real DHCP server: two network namespaces joined by veth pairs,
//! dnsmasq in one, the agent's own code in the other.
//!
//! Needs root, `ip` and `dnsmasq`; says so and passes where they are missing, since nothing can be shown there.

#![expect(clippy::unwrap_used, reason = "a lab that cannot be set up fails the test, with the place")]

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use farrier_agent::net::dhcp::client;
use farrier_agent::net::{NetError, Network, Wanted, bring_up, links, resolver};
use nix::sched::{CloneFlags, setns};

/// Two namespaces and what runs in them; gone with this value.
struct Lab {
    agent: String,
    server: String,
    dnsmasq: Vec<Child>,
    /// Stands for `/sys` in the agent's namespace: veth pairs have no hardware, so it has to be said of them.
    root: tempfile::TempDir,
}

impl Drop for Lab {
    fn drop(&mut self) {
        for child in &mut self.dnsmasq {
            let _ = child.kill();
            let _ = child.wait();
        }
        for name in [&self.agent, &self.server] {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

fn ip(args: &str) {
    let status = Command::new("ip").args(args.split_whitespace()).status().unwrap();
    assert!(status.success(), "ip {args}");
}

/// Whether this machine lets us have a network. Where CI is set, as continuous integration does, it must: a test
/// skipped there is never run.
fn can_run() -> bool {
    let has = |program: &str| {
        let found =
            Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        found.is_ok() || Path::new("/usr/sbin").join(program).exists()
    };
    let can = nix::unistd::geteuid().is_root() && has("ip") && has("dnsmasq");
    if !can {
        let why = "not shown here: needs root, ip and dnsmasq";
        assert!(std::env::var_os("CI").is_none(), "{why}");
        eprintln!("{why}");
    }
    can
}

impl Lab {
    /// Namespaces named after `name` with one link for each of `servers`' addresses, `10.9.N.1/24` on the far side.
    fn new(name: &str, links: u32) -> Self {
        // Shown with a failure.
        let log = tracing_subscriber::fmt().with_test_writer().with_max_level(tracing::Level::DEBUG);
        let _ = log.try_init();
        let lab = Self {
            agent: format!("fa-{name}-{}", std::process::id()),
            server: format!("fs-{name}-{}", std::process::id()),
            dnsmasq: Vec::new(),
            root: tempfile::tempdir().unwrap(),
        };
        // Settings of the kernel are those of the namespace whoever opens them is in.
        std::os::unix::fs::symlink("/proc", lab.root.path().join("proc")).unwrap();
        ip(&format!("netns add {}", lab.agent));
        ip(&format!("netns add {}", lab.server));
        for n in 0..links {
            let (agent, server) = (&lab.agent, &lab.server);
            ip(&format!(
                "-n {agent} link add nic{n} address 02:00:00:00:00:0{n} type veth peer name far{n} netns {server}"
            ));
            ip(&format!("-n {server} addr add 10.9.{n}.1/24 dev far{n}"));
            ip(&format!("-n {server} addr add fd00:9:{n}::1/64 dev far{n} nodad"));
            ip(&format!("-n {server} link set far{n} up"));
            let shown =
                Command::new("ip").args(["-n", agent, "-o", "link", "show", &format!("nic{n}")]).output();
            let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
            let dir = lab.root.path().join(format!("sys/class/net/nic{n}"));
            fs::create_dir_all(dir.join("device")).unwrap();
            fs::write(dir.join("address"), format!("02:00:00:00:00:0{n}\n")).unwrap();
            fs::write(dir.join("ifindex"), shown.split(':').next().unwrap()).unwrap();
        }
        lab
    }

    fn serve(&mut self, link: u32, options: &[&str]) {
        let child = Command::new("ip")
            .args(["netns", "exec", &self.server, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null"])
            .args(["--leasefile-ro", "--no-ping", "--bind-dynamic", "--no-resolv", "--no-hosts"])
            .arg(format!("--interface=far{link}"))
            .arg(format!("--pid-file={}", self.root.path().join(format!("pid{link}")).display()))
            .args(options)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.dnsmasq.push(child);
    }

    /// Accepts connections to port 8082 in the server's namespace, for as long as the test runs.
    fn listen(&self) {
        let (ready, wait) = std::sync::mpsc::channel();
        let namespace = self.server.clone();
        thread::spawn(move || {
            enter(&namespace);
            let listener = TcpListener::bind("[::]:8082").unwrap();
            ready.send(()).unwrap();
            while listener.accept().is_ok() {}
        });
        wait.recv().unwrap();
    }

    /// Runs the agent's side in its namespace, on one thread.
    fn run<T: Send + 'static>(&self, work: impl AsyncFnOnce(&Path) -> T + Send + 'static) -> T {
        let (namespace, root) = (self.agent.clone(), self.root.path().to_owned());
        let work = move || {
            enter(&namespace);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(work(&root))
        };
        thread::spawn(work).join().unwrap()
    }

    fn routes(&self) -> String {
        self.ip_says("-4 route")
    }

    /// What `ip` shows in the agent's namespace.
    fn ip_says(&self, args: &str) -> String {
        let out = Command::new("ip").args(["-n", &self.agent]).args(args.split(' ')).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    }
}

/// A namespace of sockets belongs to a thread.
fn enter(namespace: &str) {
    let file = File::open(format!("/run/netns/{namespace}")).unwrap();
    setns(file, CloneFlags::CLONE_NEWNET).unwrap();
}

fn wanted(api: &str, boot: Option<&str>, static_ip: Option<&str>) -> Wanted {
    Wanted {
        api: api.parse().unwrap(),
        boot: boot.map(|mac| mac.parse().unwrap()),
        static_ip: static_ip.map(|ip| ip.parse().unwrap()),
        ip6: None,
        vlan: None,
        bond: None,
        mtu: None,
        image: api.parse().unwrap(),
    }
}

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
    let dns = "--dhcp-option=option6:dns-server,[fd00:9:1::1]";
    router(&mut lab, 1, "fd00:9:1::,ra-only,64", &["--address=/api.lab.example/fd00:9:1::1", dns]);
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
    let (before, during, after) = lab.run(async move |root| {
        let wanted = wanted("https://10.9.0.1:8082", None, None);
        let _network = bring_up(root, &wanted).await.unwrap();
        let routes = || {
            let out = Command::new("ip").args(["-n", &agent, "-4", "route"]).output().unwrap();
            String::from_utf8(out.stdout).unwrap()
        };
        let before = routes();
        // The far side goes away, and with our own side set down and up the kernel forgets every route.
        ip(&format!("-n {server} link set far0 down"));
        tokio::time::sleep(Duration::from_millis(300)).await;
        ip(&format!("-n {agent} link set nic0 down"));
        let during = routes();
        ip(&format!("-n {agent} link set nic0 up"));
        ip(&format!("-n {server} link set far0 up"));
        let mut after = routes();
        for _ in 0..100 {
            if after == before {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            after = routes();
        }
        (before, during, after)
    });
    assert!(before.contains("default via 10.9.0.1 dev nic0"), "{before}");
    assert_eq!(during, "");
    assert_eq!(after, before);
}
