//! The order of a run, top to bottom: [`attempt`]. Around it, what makes every end of it known: [`pid1`].

mod afterwards;
mod contact;
mod deadline;
mod failure;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod options;
mod other_disks;
mod redaction;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use farrier_shared::contract::callback::EventName;
use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::cut_line;
use farrier_shared::contract::options::DiskHints;
use tokio::signal::unix::{SignalKind, signal};

use crate::callback::Policy;
use crate::deploy::{self, ImageClient, Progress};
use crate::disk::{self, Disk, DiskError, KernelTarget, Target, Wish};
use crate::facts::ipmi::Question;
use crate::facts::lldp::Neighbours;
use crate::facts::{self, Facts};
use crate::init::drivers::{self, Named};
use crate::init::{self, Cmdline, Ending, Init};
use crate::net::{self, Network, Wanted};
use crate::seed::{self, Payload};
use crate::time::{self, SystemClock};

use deadline::{blocking, to_the_end, within};

pub use contact::Contact;
pub use failure::Failure;

/// A tmpfs for mount points and private device nodes.
const WORK: &str = "/run";
/// How often a run that only waits says that it does.
const WAITING_PERIOD: Duration = Duration::from_secs(30);

/// How long drivers may take: several times what waiting for hardware allows itself, and less than for ever, which
/// is what a probe of broken hardware may take.
const DRIVERS_WAIT: Duration = Duration::from_secs(5 * 60);
/// How long looking at the machine may take, disks that answer slowly included.
const FACTS_WAIT: Duration = Duration::from_secs(2 * 60);
/// How long the network may take, several interfaces included.
const NETWORK_WAIT: Duration = Duration::from_secs(10 * 60);
/// How long the first MiB of the image may take: longer than its server's failures are borne.
const PEEK_WAIT: Duration = Duration::from_secs(20 * 60);
/// How long a run that was stopped may take to leave a disk unbootable, and a bit.
const STOP_WAIT: Duration = Duration::from_secs(130);

/// One run, from drivers to the controller's word that it knows of the installed system.
///
/// # Errors
/// The first step that failed. Once the network is up, `contact` can tell the controller of it.
pub async fn attempt(cmdline: Cmdline, contact: Contact, root: PathBuf) -> Result<(), Failure> {
    let params = BootParams::parse(cmdline.expose()).map_err(Failure::at("command line"))?;
    let whole = cut_line::check_whole(cmdline.expose()).map_err(Failure::at("command line"));
    drop(cmdline);
    let options = options::read(&params.extra).map_err(Failure::at("command line"));

    let hints = options.as_ref().ok().and_then(|options| options.disk_hints.clone());
    let drivers = match load_drivers(&root, &params, hints.clone()).await {
        // A probe that hangs is one device's, and the disk that is wanted may be there. Without a pin it is chosen among
        // all, of which some may be missing.
        Err(Failure { step, cause, .. }) if params.disk.is_some() => {
            tracing::warn!(step, cause, "going on with the hardware that has appeared");
            Ok(())
        }
        ended => ended,
    };
    let neighbours = Neighbours::listen(&root);
    let bmc = Question::ask(&root, drivers::load_ipmi);
    let network = bring_up_network(&root, &params).await?;
    let resolver = net::resolver(&network);
    // Before anything is verified by it.
    time::settle(&SystemClock, &params, Arc::clone(&resolver), &network.config.ntp()).await;
    contact.open(&params, Arc::clone(&resolver), Policy::default()).map_err(Failure::at("controller"))?;
    // These failures are reported like all others, so they had to wait for the network.
    whole?;
    drivers?;
    let options = options?;

    contact.event(EventName::Preparing, &format!("network is up on {}", network.config.interface));
    let mut facts = look_around(&root, bmc).await?;
    other_disks::note_members(&mut facts, &root).await;
    neighbours.add_to(&mut facts.report);
    contact.event(EventName::Registering, "sending the report");
    contact.report(&facts.report).await.map_err(Failure::at("report"))?;
    let wish = |required| Wish { pin: params.disk.as_ref(), hints: hints.as_ref(), required };
    choose(&facts.disks, &wish(0), &root)?;

    let waiting = || contact.event(EventName::Waiting, "waiting for user-data");
    let user_data = meanwhile(contact.bootstrap(), WAITING_PERIOD, waiting).await;
    let user_data = user_data.map_err(Failure::at("bootstrap"))?;
    let payload = Payload { user_data, provider_id: params.provider_id.clone() };
    let seed =
        seed::seed(options.seed.unwrap_or_default(), payload, WORK.into()).map_err(Failure::at("seed"))?;

    contact.event(EventName::Installing, "looking at the image");
    let images = ImageClient::new(resolver).map_err(|e| Failure::new("image", &e.reason()))?;
    let order = options::order(&options, &params);
    let peek = async { images.peek(&order.source).await.map_err(|e| Failure::new("image", &e.reason())) };
    let image = within("image", PEEK_WAIT, peek).await?;
    // Looked up anew: the wait may have been long, and only now is known how large a disk is needed.
    let disks = look_for_disks(&root).await?;
    let disk = choose(&disks, &wish(image.required), &root)?;

    let roots = facts::roots(&root);
    let disk_name = disk.path.display().to_string();
    let target: Arc<dyn Target> = Arc::new(KernelTarget::new(disk, roots));
    let progress = Arc::new(Progress::new());
    let installing = deploy::install(&images, &order, Arc::clone(&target), seed, Arc::clone(&progress));
    let outcome = contact.while_installing(Box::pin(installing), &progress).await;
    let outcome = outcome.map_err(|still| stands_still(still, &disk_name, &progress))?;
    let outcome = outcome.map_err(|e| Failure::of_deploy(&e))?;
    contact.installed();
    tracing::info!(written = outcome.written, read_back = outcome.read_back, "the system is installed");
    let policy = options.efi_boot.unwrap_or_default();
    afterwards::make_boot_entry(&contact, &target, policy, &root, WORK).await;
    other_disks::compare(&contact, &target, &disks, &root).await;

    contact.provisioned().await.map_err(Failure::at("provisioned"))
}

/// Does everything as PID 1, whatever happens.
pub fn pid1() -> ! {
    let init = init::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let told = match runtime {
        Ok(runtime) => to_the_end(runtime, told(&init)).unwrap_or(Told::Failure { may_boot: true }),
        Err(error) => {
            tracing::error!(%error, "no runtime");
            Told::Failure { may_boot: false }
        }
    };
    init::end(told.ending(init.on_failure), told != Told::Success, &init)
}

/// What the controller was told in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Success,
    /// That the run failed.
    Failure {
        /// Whether a system may come up all the same.
        may_boot: bool,
    },
    /// Nothing, of a system that is installed.
    Nothing,
}

impl Told {
    /// What becomes of the machine; `on_failure` is what failures lead to.
    fn ending(self, on_failure: Ending) -> Ending {
        match self {
            Self::Success => Ending::Reboot,
            Self::Failure { may_boot: false } => on_failure,
            // Restarted, it might come up with a system that nobody has verified.
            Self::Failure { may_boot: true } => Ending::PowerOff,
            // Its host may have failed for the controller, and a host that failed must not come up by itself; or it is
            // ready, and the answer that said so was lost: what is installed stays.
            Self::Nothing => Ending::PowerOff,
        }
    }
}

/// Runs an attempt and sees to it that the controller learns how it ended.
async fn told(init: &Init) -> Told {
    let contact = Contact::default();
    match guarded(init, &contact).await {
        Ok(()) => {
            contact.event(EventName::BootingNewKernel, "restarting into the installed system");
            contact.close().await;
            Told::Success
        }
        Err(failure) if contact.is_installed() => {
            tracing::error!(step = failure.step, "the system is installed, but {}", failure.cause);
            tracing::error!(
                "the controller may not know of it: the machine is switched off and the disk stays as it is"
            );
            contact.event(EventName::Crashed, &format!("installed, then {failure}"));
            contact.close().await;
            Told::Nothing
        }
        Err(failure) => {
            tracing::error!(step = failure.step, "the run failed: {}", failure.cause);
            if failure.may_boot {
                tracing::error!(
                    "the disk may hold a system that boots: the machine is switched off, whatever was asked for"
                );
            }
            contact.event(EventName::Crashed, &failure.to_string());
            contact.fail(&failure.to_string(), &init.journal.text()).await;
            Told::Failure { may_boot: failure.may_boot }
        }
    }
}

/// An attempt in a task of its own, so that a fault in it or a person's wish ends like any other failure.
async fn guarded(init: &Init, contact: &Contact) -> Result<(), Failure> {
    let run = Box::pin(attempt(init.cmdline.clone(), contact.clone(), "/".into()));
    let mut run = tokio::spawn(run);
    tokio::select! {
        joined = &mut run => joined.unwrap_or_else(|_| {
            Err(Failure::left_behind("agent", "a fault in the agent; its place is on the machine's console"))
        }),
        name = stopped() => {
            run.abort();
            // An installation given up wipes its disk first.
            let ended = tokio::time::timeout(STOP_WAIT, run).await;
            let late = if ended.is_err() { ", and still at work long after" } else { "" };
            // Given up, it tells nobody whether it could.
            Err(Failure::left_behind("agent", &format!("stopped by {name}{late}")))
        }
    }
}

/// Resolves when somebody at the console presses Ctrl-Alt-Del, or another process tells us to stop.
async fn stopped() -> &'static str {
    if let Err(errno) = nix::sys::reboot::set_cad_enabled(false) {
        tracing::debug!(%errno, "Ctrl-Alt-Del stays with the kernel");
    }
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => "Ctrl-Alt-Del",
        _ = terminate.recv() => "SIGTERM",
    }
}

async fn load_drivers(root: &Path, params: &BootParams, hints: Option<DiskHints>) -> Result<(), Failure> {
    let (root, named) = (root.to_owned(), Named { nic: params.bootif, disk: params.disk.clone(), hints });
    let work = move || drivers::bring_up(&root, &init::kernel_release(), &named);
    blocking("drivers", DRIVERS_WAIT, work).await
}

async fn bring_up_network(root: &Path, params: &BootParams) -> Result<Network, Failure> {
    let wanted = Wanted::from_params(params);
    let network = async { net::bring_up(root, &wanted).await.map_err(Failure::at("network")) };
    within("network", NETWORK_WAIT, network).await
}

async fn look_around(root: &Path, bmc: Question) -> Result<Facts, Failure> {
    let root = root.to_owned();
    let look = move || {
        let mut facts = facts::collect(&root);
        bmc.add_to(&mut facts.report);
        facts
    };
    blocking("facts", FACTS_WAIT, look).await
}

async fn look_for_disks(root: &Path) -> Result<Vec<Disk>, Failure> {
    let root = root.to_owned();
    blocking("facts", FACTS_WAIT, move || facts::look_for_disks(&root)).await
}

fn stands_still(still: Duration, disk: &str, progress: &Progress) -> Failure {
    let at = progress.snapshot();
    let cause = format!(
        "{}: no progress for {} s after {} bytes; the disk {disk} or the image server hangs",
        at.step.word(),
        still.as_secs(),
        at.bytes
    );
    Failure::left_behind("deploy", &cause)
}

fn choose(disks: &[Disk], wish: &Wish<'_>, root: &Path) -> Result<Disk, Failure> {
    let chosen: Result<Disk, DiskError> = disk::choose(disks, wish, &facts::roots(root));
    if let Ok(disk) = &chosen {
        let others = disk.other_paths.join(", ");
        tracing::info!(disk = %disk.path.display(), size = disk.size, other_paths = others, "target disk");
    }
    chosen.map_err(Failure::at("target disk"))
}

/// Awaits a future and calls `tick` at once and then every `period`.
async fn meanwhile<T>(future: impl Future<Output = T>, period: Duration, tick: impl Fn()) -> T {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    tokio::pin!(future);
    loop {
        tokio::select! {
            result = &mut future => return result,
            _ = ticks.tick() => tick(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deploy::DeployError;

    #[test]
    fn an_installed_system_the_controller_may_not_know_of_is_not_started() {
        for on_failure in [Ending::Reboot, Ending::PowerOff] {
            assert_eq!(Told::Success.ending(on_failure), Ending::Reboot);
            assert_eq!(Told::Failure { may_boot: false }.ending(on_failure), on_failure);
            assert_eq!(Told::Nothing.ending(on_failure), Ending::PowerOff);
        }
    }

    #[test]
    fn a_disk_that_may_boot_all_the_same_is_not_given_the_chance() {
        let disk = || "/dev/sda".to_owned();
        let wipe = DiskError::NotWiped { disk: disk(), offset: 0 };
        let unwiped = DeployError::NotWiped { disk: disk(), cause: Box::new(DeployError::Abandoned), wipe };
        for (failure, may_boot) in [
            (Failure::of_deploy(&unwiped), true),
            (Failure::of_deploy(&DeployError::Abandoned), false),
            (stands_still(Duration::from_secs(600), "/dev/sda", &Progress::new()), true),
            (Failure::new("report", "refused"), false),
        ] {
            assert_eq!(failure.may_boot, may_boot, "{failure}");
            let ending = Told::Failure { may_boot }.ending(Ending::Reboot);
            assert_eq!(ending, if may_boot { Ending::PowerOff } else { Ending::Reboot });
        }
    }
}
