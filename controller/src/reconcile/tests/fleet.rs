//! A small data centre: fake BMCs, a clock that follows the paused one, and an agent that only signs.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farrier_shared::contract::{HostKey, Name, Time};
use farrier_shared::lifecycle::fault::{BmcFacts, Transient};
use farrier_shared::lifecycle::verdict::sign;
use farrier_shared::lifecycle::{Credentials, PowerState, SignalKey, Timings};
use farrier_shared::resource::host::RedfishConnection;
use farrier_shared::resource::machine::{Beskar7MachineSpec, MachineBootstrap, MachinePhase};
use farrier_shared::resource::secret::SecretBytes;
use farrier_shared::resource::{
    Beskar7Machine, HostState, ObjectMeta, PhysicalHost, PhysicalHostSpec, Resource, Secret,
};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bmc::access::ADDRESSES;
use crate::bmc::{Bmc, BmcError, BootMode, Call, Connector, HostAccess, ResetKind};
use crate::boot::Renderer;
use crate::clock::Clock;
use crate::progress::Progress;
use crate::reconcile::{Context, run};
use crate::store::Store;

/// One faked BMC.
#[derive(Debug, Default)]
pub(super) struct FakeBmc {
    pub(super) on: bool,
    pub(super) log: Vec<String>,
    /// Refuses every connection.
    pub(super) dead: bool,
    /// Takes the longest a call may take, then fails.
    pub(super) hangs: bool,
    /// Fails the next so many resets.
    pub(super) busy: u32,
    /// How often its addresses were to be read anew.
    pub(super) distrusted: u32,
    /// Does the next so many resets and never says so.
    pub(super) mute: u32,
}

/// All faked BMCs, by host name or address.
#[derive(Clone, Debug, Default)]
pub(super) struct FakeBmcs(Arc<Mutex<HashMap<String, FakeBmc>>>);

struct FakeClient {
    all: FakeBmcs,
    name: String,
}

impl FakeBmcs {
    pub(super) fn with<T>(&self, name: &str, act: impl FnOnce(&mut FakeBmc) -> T) -> T {
        act(self.0.lock().unwrap().entry(name.to_owned()).or_default())
    }

    async fn reach(&self, name: &str) -> Result<(), BmcError> {
        let unreachable =
            |class| BmcError::Unreachable { authority: name.to_owned(), action: "answer".to_owned(), class };
        if self.with(name, |b| b.hangs) {
            tokio::time::sleep(Duration::from_secs(30)).await;
            return Err(unreachable(Transient::TimedOut));
        }
        if self.with(name, |b| b.dead) { Err(unreachable(Transient::Refused)) } else { Ok(()) }
    }
}

impl Connector for FakeBmcs {
    fn connect<'a>(&'a self, access: &'a HostAccess) -> Call<'a, Arc<dyn Bmc>> {
        Box::pin(async move {
            let name = access.base.host_str().unwrap().to_owned();
            self.reach(&name).await?;
            Ok(Arc::new(FakeClient { all: self.clone(), name }) as Arc<dyn Bmc>)
        })
    }
}

impl FakeClient {
    fn call<T>(&self, act: impl FnOnce(&mut FakeBmc) -> T + Send + 'static) -> Call<'_, T>
    where
        T: Send + 'static,
    {
        Box::pin(async move {
            self.all.reach(&self.name).await?;
            Ok(self.all.with(&self.name, act))
        })
    }
}

fn power(on: bool) -> PowerState {
    if on { PowerState::On } else { PowerState::Off }
}

impl Bmc for FakeClient {
    fn system_info(&self) -> Call<'_, BmcFacts> {
        self.call(|b| BmcFacts { power: Some(power(b.on)), ..BmcFacts::default() })
    }

    fn distrust_addresses(&self) {
        self.all.with(&self.name, |b| b.distrusted += 1);
    }

    fn power_state(&self) -> Call<'_, PowerState> {
        self.call(|b| power(b.on))
    }

    fn set_boot_pxe_once(&self, mode: BootMode) -> Call<'_, ()> {
        self.call(move |b| {
            b.log.push(match mode {
                BootMode::AsConfigured => "pxe".to_owned(),
                mode => format!("pxe({mode:?})"),
            });
        })
    }

    fn clear_boot_override(&self) -> Call<'_, ()> {
        self.call(|b| b.log.push("clear".to_owned()))
    }

    fn reset(&self, kind: ResetKind) -> Call<'_, ()> {
        Box::pin(async move {
            self.all.reach(&self.name).await?;
            let busy = self.all.with(&self.name, |b| {
                let busy = b.busy > 0;
                b.busy = b.busy.saturating_sub(1);
                busy
            });
            if busy {
                let left = self.all.with(&self.name, |b| b.busy);
                return Err(BmcError::Unreachable {
                    authority: self.name.clone(),
                    // Differs from time to time when it goes on for long.
                    action: if left < 2 { "reset".to_owned() } else { format!("reset {left}") },
                    class: Transient::Http(503),
                });
            }
            let mute = self.all.with(&self.name, |b| {
                b.log.push(format!("{kind:?}"));
                b.on = matches!(kind, ResetKind::On | ResetKind::ForceRestart);
                let mute = b.mute > 0;
                b.mute = b.mute.saturating_sub(1);
                mute
            });
            let (authority, action) = (self.name.clone(), "reset".to_owned());
            let lost = BmcError::Unreachable { authority, action, class: Transient::TimedOut };
            if mute { Err(lost) } else { Ok(()) }
        })
    }
}

/// Follows the paused clock of the tests, and can be set.
#[derive(Debug)]
pub(super) struct PausedClock {
    started: Instant,
    machine: AtomicI64,
    shown: AtomicI64,
}

impl PausedClock {
    /// Sets the machine's clock by so many seconds.
    pub(super) fn set(&self, seconds: i64) {
        self.machine.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Time {
        let seconds = i64::try_from(self.monotonic().as_secs()).unwrap();
        Time::from_unix(1_800_000_000 + seconds + self.shown.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn was_set(&self) -> Option<i64> {
        let seconds = self.machine.load(Ordering::SeqCst) - self.shown.load(Ordering::SeqCst);
        (seconds != 0).then_some(seconds)
    }

    fn follow(&self) {
        self.shown.store(self.machine.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

/// The data centre and its controller.
pub(super) struct Fleet {
    pub(super) store: Store,
    pub(super) bmcs: FakeBmcs,
    pub(super) progress: Progress,
    pub(super) clock: Arc<dyn Clock>,
    /// The hands of that clock.
    pub(super) hands: Arc<PausedClock>,
    /// Where agents' logs are.
    pub(super) logs: tempfile::TempDir,
    running: Option<(CancellationToken, JoinHandle<()>)>,
}

pub(super) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(super) fn key(text: &str) -> HostKey {
    HostKey::new(name("default"), name(text))
}

fn meta(text: &str) -> ObjectMeta {
    ObjectMeta::new(name("default"), name(text))
}

fn secret(text: &str, data: &[(&str, &str)]) -> Secret {
    let data = data.iter().map(|(k, v)| ((*k).to_owned(), SecretBytes::new(v.as_bytes().to_vec())));
    Secret::new(meta(text), data.collect::<BTreeMap<_, _>>())
}

/// What makes the boot scripts here.
pub(super) fn scripts() -> Arc<Renderer> {
    Arc::new(Renderer {
        ca: Arc::new(b"PEM".to_vec()),
        url_base: "https://farrier.example:8082".parse().unwrap(),
        reference_boot: false,
    })
}

impl Fleet {
    /// A controller over an empty store that holds the BMCs' login and one user-data Secret.
    pub(super) async fn start() -> Self {
        Self::over(Store::in_memory().unwrap()).await
    }

    /// The same over another empty store.
    pub(super) async fn over(store: Store) -> Self {
        let hands = PausedClock { started: Instant::now(), machine: 0.into(), shown: 0.into() };
        let hands = Arc::new(hands);
        let mut fleet = Self {
            store,
            bmcs: FakeBmcs::default(),
            progress: Progress::new(),
            clock: Arc::<PausedClock>::clone(&hands),
            hands,
            logs: tempfile::tempdir().unwrap(),
            running: None,
        };
        let mut login = secret("login", &[("username", "admin"), ("password", "hunter2")]);
        login.metadata.annotations.insert(ADDRESSES.to_owned(), "*.bmc.example".to_owned());
        fleet.store.create(login).await.unwrap();
        fleet.store.create(secret("user-data", &[("value", "#cloud-config")])).await.unwrap();
        fleet.run();
        fleet
    }

    /// What the controller works with.
    pub(super) fn context(&self) -> Context {
        Context {
            store: self.store.clone(),
            progress: self.progress.clone(),
            clock: Arc::clone(&self.clock),
            timings: Arc::new(Timings::default()),
            bmc: Arc::new(self.bmcs.clone()),
            url_base: "https://farrier.example:8082".parse().unwrap(),
            scripts: scripts(),
            logs_dir: self.logs.path().to_owned(),
            max_concurrent: 4,
        }
    }

    fn run(&mut self) {
        let stop = CancellationToken::new();
        self.running = Some((stop.clone(), tokio::spawn(run(self.context(), stop))));
    }

    /// Ends the controller.
    pub(super) async fn stop(&mut self) {
        let (stop, task) = self.running.take().unwrap();
        stop.cancel();
        task.await.unwrap();
    }

    /// Ends the controller and starts another over the same store.
    pub(super) async fn restart(&mut self) {
        self.stop().await;
        self.run();
    }

    pub(super) async fn add_host(&self, text: &str) {
        let connection = RedfishConnection {
            address: format!("https://{text}.bmc.example").parse().unwrap(),
            credentials_secret_ref: name("login"),
            insecure_skip_verify: None,
            ca_bundle_secret_ref: None,
        };
        let spec = PhysicalHostSpec {
            redfish_connection: connection,
            consumer_ref: None,
            boot_mac_addresses: vec![],
            boot_mode: None,
            agent_options: Default::default(),
        };
        self.store.create(PhysicalHost::new(meta(text), spec)).await.unwrap();
    }

    pub(super) async fn add_machine(&self, text: &str, bootstrap: Option<&str>) {
        self.add_machine_that(text, bootstrap, |_| ()).await;
    }

    /// A machine that wants something in particular.
    pub(super) async fn add_machine_that(
        &self,
        text: &str,
        bootstrap: Option<&str>,
        wants: impl FnOnce(&mut Beskar7MachineSpec),
    ) {
        let mut spec = Beskar7MachineSpec {
            provider_id: None,
            inspection_image_url: "http://farrier.example:8080/images/inspection".parse().unwrap(),
            target_image_url: "https://images.example/os.raw".parse().unwrap(),
            target_image_digest: Some(format!("sha256:{}", "ab".repeat(32)).parse().unwrap()),
            target_image_digest_url: None,
            target_disk: None,
            static_ip: None,
            hardware_requirements: None,
            host_selector: None,
            host_name: None,
            bootstrap: bootstrap.map(|b| MachineBootstrap { data_secret_name: name(b) }),
            agent_options: Default::default(),
        };
        wants(&mut spec);
        self.store.create(Beskar7Machine::new(meta(text), spec)).await.unwrap();
    }

    pub(super) fn bmc<T>(&self, host: &str, act: impl FnOnce(&mut FakeBmc) -> T) -> T {
        self.bmcs.with(&format!("{host}.bmc.example"), act)
    }

    pub(super) async fn host(&self, text: &str) -> PhysicalHost {
        self.store.get(&key(text)).await.unwrap().unwrap()
    }

    pub(super) async fn machine(&self, text: &str) -> Beskar7Machine {
        self.store.get(&key(text)).await.unwrap().unwrap()
    }

    /// Waits until it holds; fails after `limit` seconds of paused time and says what was there instead.
    pub(super) async fn until<R: Resource + std::fmt::Debug>(
        &self,
        text: &str,
        limit: u64,
        holds: impl Fn(&R) -> bool,
    ) -> R {
        let begun = Instant::now();
        loop {
            let object: Option<R> = self.store.get(&key(text)).await.unwrap();
            if let Some(object) = object.as_ref().filter(|o| holds(o)) {
                return object.clone();
            }
            assert!(begun.elapsed() < Duration::from_secs(limit), "after {limit} s: {object:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(super) async fn until_host(&self, text: &str, limit: u64, state: HostState) -> PhysicalHost {
        self.until(text, limit, |h: &PhysicalHost| h.status.state == state).await
    }

    pub(super) async fn until_phase(&self, text: &str, limit: u64, phase: MachinePhase) -> Beskar7Machine {
        self.until(text, limit, |m: &Beskar7Machine| m.status.phase == Some(phase)).await
    }

    pub(super) async fn credentials(&self, host: &str) -> Credentials {
        self.store.credentials(&key(host)).await.unwrap().unwrap().value
    }

    /// What a handler leaves when the agent on this host reports.
    pub(super) async fn agent_says(&self, host: &str, signal: SignalKey, value: &str, report: Option<&str>) {
        let (object, credentials) = (self.host(host).await, self.credentials(host).await);
        let signal = sign(&object, &credentials, signal, value, report.map(str::to_owned));
        self.store.put_signal(&key(host), &signal).await.unwrap();
    }

    pub(super) async fn agent_reports(&self, host: &str) {
        let report = r#"{"manufacturer":"QEMU","cpus":[],"memory":[],"disks":[],"nics":[]}"#;
        self.agent_says(host, SignalKey::InspectionResult, "result", Some(report)).await;
    }

    /// A host and its machine, brought up to `Deploying`.
    pub(super) async fn deploying(&self, host: &str, machine: &str) {
        self.add_host(host).await;
        self.add_machine(machine, Some("user-data")).await;
        self.until_host(host, 60, HostState::Inspecting).await;
        self.agent_reports(host).await;
        self.until_host(host, 60, HostState::Deploying).await;
    }
}
