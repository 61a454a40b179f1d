//! Two network namespaces joined by veth pairs: dnsmasq in one, the agent's own code in the other.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use farrier_agent::net::Wanted;
use nix::sched::{CloneFlags, setns};

/// Two namespaces and what runs in them; gone with this value.
pub(crate) struct Lab {
    pub(crate) agent: String,
    pub(crate) server: String,
    dnsmasq: Vec<Child>,
    /// Stands for `/sys` in the agent's namespace: veth pairs have no hardware, so it has to be said of them.
    root: tempfile::TempDir,
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.silence();
        for name in [&self.agent, &self.server] {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

pub(crate) fn ip(args: &str) {
    let status = Command::new("ip").args(args.split_whitespace()).status().unwrap();
    assert!(status.success(), "ip {args}");
}

/// Whether this machine lets us have a network. Where CI is set, as continuous integration does, it must: a test
/// skipped there is never run.
pub(crate) fn can_run() -> bool {
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
    pub(crate) fn new(name: &str, links: u32) -> Self {
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

    pub(crate) fn serve(&mut self, link: u32, options: &[&str]) {
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

    /// Ends all that was started by [`serve`](Self::serve).
    pub(crate) fn silence(&mut self) {
        for mut child in self.dnsmasq.drain(..) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Accepts connections to port 8082 in the server's namespace, for as long as the test runs.
    pub(crate) fn listen(&self) {
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
    pub(crate) fn run<T: Send + 'static>(&self, work: impl AsyncFnOnce(&Path) -> T + Send + 'static) -> T {
        self.start(work).join().unwrap()
    }

    /// The same while the test goes on.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&Path) -> T + Send + 'static,
    ) -> thread::JoinHandle<T> {
        let (namespace, root) = (self.agent.clone(), self.root.path().to_owned());
        thread::spawn(move || {
            enter(&namespace);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(work(&root))
        })
    }

    pub(crate) fn routes(&self) -> String {
        self.ip_says("-4 route")
    }

    /// What `ip` shows in the agent's namespace.
    pub(crate) fn ip_says(&self, args: &str) -> String {
        let out = Command::new("ip").args(["-n", &self.agent]).args(args.split(' ')).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    }
}

/// A namespace of sockets belongs to a thread.
pub(crate) fn enter(namespace: &str) {
    let file = File::open(format!("/run/netns/{namespace}")).unwrap();
    setns(file, CloneFlags::CLONE_NEWNET).unwrap();
}

pub(crate) fn wanted(api: &str, boot: Option<&str>, static_ip: Option<&str>) -> Wanted {
    Wanted {
        api: api.parse().unwrap(),
        boot: boot.map(|mac| mac.parse().unwrap()),
        static_ip: static_ip.map(|ip| ip.parse().unwrap()),
        ip6: None,
        vlan: None,
        bond: None,
        mtu: None,
        patience: Duration::from_secs(120),
        image: api.parse().unwrap(),
    }
}
