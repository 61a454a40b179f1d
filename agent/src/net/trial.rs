//! One interface with all it has been given: tried while the controller is looked for, kept while the run lasts.

use std::path::Path;
use std::time::Duration;

use farrier_shared::contract::options::Mtu;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::carrier::Carrier;
use super::config::{Address6, AddressPlan, Ipv6Plan, NetworkConfig};
use super::dhcp::Lease;
use super::family::{self, Desk, Family, News};
use super::netlink::{Netlink, NetlinkError};
use super::stack::Candidate;
use super::waiting::Waiting;
use super::wanted::Methods;

/// How long an IPv6 address may take to prove unique on its link (RFC 4862: one second, and the link's own time).
const DUPLICATE_WAIT: Duration = Duration::from_secs(5);

/// What news come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// There are other settings.
    Changed,
    /// The settings hold for longer.
    Extended,
    /// Addresses of this family must go.
    Lost(Family),
    /// There will be none; why.
    Ended(Family, String),
    /// The link was away and is back.
    Back,
}

/// One interface.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) candidate: Candidate,
    v4: Option<AddressPlan>,
    lease: Option<Lease>,
    v6: Option<Ipv6Plan>,
    /// What of it the kernel was given.
    set4: Option<AddressPlan>,
    set6: Option<Ipv6Plan>,
    /// MTU whatever the lease says.
    mtu: Option<Mtu>,
    waiting: Waiting,
    carrier: watch::Receiver<Carrier>,
    /// What obtains and renews.
    #[expect(dead_code, reason = "held so that it ends with this value")]
    tasks: JoinSet<()>,
}

impl Trial {
    pub(super) fn start(
        netlink: &Netlink,
        root: &Path,
        candidate: Candidate,
        methods: &Methods,
        mtu: Option<Mtu>,
        desk: Desk,
    ) -> Self {
        let mut tasks = JoinSet::new();
        let (state, carrier) = watch::channel(Carrier::default());
        let root = root.to_owned();
        tasks.spawn(family::run(netlink.clone(), root, candidate.clone(), methods.clone(), state, desk));
        Self {
            candidate,
            v4: None,
            lease: None,
            v6: None,
            set4: None,
            set6: None,
            mtu,
            waiting: Waiting::new(methods.families()),
            carrier,
            tasks,
        }
    }

    pub(super) fn index(&self) -> u32 {
        self.candidate.link.index
    }

    pub(super) fn has_address(&self) -> bool {
        self.v4.is_some() || self.v6.is_some()
    }

    /// Whether all is known that there will be.
    pub(super) fn is_complete(&self) -> bool {
        self.waiting.is_complete()
    }

    /// Whether nothing else is to be expected soon, `now` after the start of the search.
    pub(super) fn is_waited_out(&self, now: Duration) -> bool {
        self.waiting.is_over(*self.carrier.borrow(), now)
    }

    /// What it comes to, `took` after the start.
    pub(super) fn config(&self, took: Duration) -> NetworkConfig {
        NetworkConfig {
            interface: self.candidate.link.name.clone(),
            index: self.index(),
            mac: self.candidate.link.mac,
            v4: self.v4.clone(),
            lease: self.lease.clone(),
            v6: self.v6.clone(),
            took,
        }
    }

    /// Takes news in, `now` after the start of the search; changes nothing in the kernel.
    pub(super) fn take(&mut self, item: News, now: Duration) -> Turn {
        match item {
            News::V4(plan, lease) => {
                self.waiting.heard(Family::V4, now);
                self.lease = lease;
                if self.v4.as_ref() == Some(&plan) {
                    return Turn::Extended;
                }
                self.v4 = Some(plan);
                Turn::Changed
            }
            News::V6(plan) => {
                self.waiting.heard(Family::V6, now);
                self.v6 = Some(plan);
                Turn::Changed
            }
            News::Lost(family) => {
                self.waiting.lost(family);
                match family {
                    Family::V4 => (self.v4, self.lease) = (None, None),
                    Family::V6 => self.v6 = None,
                }
                Turn::Lost(family)
            }
            News::Ended(family, cause) => {
                self.waiting.ended(family);
                Turn::Ended(family, cause)
            }
            News::LinkBack => Turn::Back,
        }
    }

    /// Has the kernel know all that is known, and no longer what is not so any more. Addresses that stay are left
    /// alone: connections go on.
    ///
    /// # Errors
    /// The first address the kernel refuses.
    pub(super) async fn apply(&mut self, netlink: &Netlink) -> Result<(), NetlinkError> {
        self.apply4(netlink).await?;
        self.apply6(netlink).await
    }

    async fn apply4(&mut self, netlink: &Netlink) -> Result<(), NetlinkError> {
        let index = self.index();
        let address = |plan: &Option<AddressPlan>| plan.as_ref().map(|p| p.address);
        if self.set4.is_some() && address(&self.set4) != address(&self.v4) {
            netlink.clear4(index).await;
            self.set4 = None;
        }
        let Some(plan) = &self.v4 else { return Ok(()) };
        if let (Some(mtu), None) = (plan.mtu, self.mtu) {
            netlink.set_mtu(index, self.candidate.base, mtu).await;
        }
        netlink.configure4(index, plan).await?;
        if let Some(old) = self.set4.as_ref().filter(|old| *old != plan) {
            netlink.drop_stale4(index, old, plan).await;
        }
        self.set4 = Some(plan.clone());
        Ok(())
    }

    async fn apply6(&mut self, netlink: &Netlink) -> Result<(), NetlinkError> {
        let index = self.index();
        let Some(plan) = &self.v6 else {
            if self.set6.take().is_some() {
                netlink.clear6(index).await;
            }
            return Ok(());
        };
        if let Some(old) = &self.set6 {
            let gone = |own: &&Address6| !plan.addresses.contains(own);
            let gone: Vec<_> = old.addresses.iter().filter(gone).map(|own| own.address).collect();
            if !gone.is_empty() {
                netlink.remove6(index, &gone).await;
            }
            if old.gateway != plan.gateway {
                netlink.clear_routes6(index).await;
            }
        }
        netlink.configure6(index, plan).await?;
        self.await_unique(netlink, plan).await;
        self.set6 = Some(plan.clone());
        Ok(())
    }

    /// Waits until the IPv6 addresses may be used.
    async fn await_unique(&self, netlink: &Netlink, plan: &Ipv6Plan) {
        let deadline = Instant::now() + DUPLICATE_WAIT;
        loop {
            let present = netlink.addresses6(self.index()).await;
            let ours =
                || present.iter().filter(|a| plan.addresses.iter().any(|own| own.address == a.address));
            if let Some(taken) = ours().find(|a| a.duplicate) {
                let (interface, address) = (&self.candidate.link.name, taken.address);
                tracing::error!(interface, %address, "another machine on the link has this address");
                return;
            }
            if !ours().any(|a| a.tentative) || Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Takes all of it off the interface; what is known stays known.
    pub(super) async fn clear(&mut self, netlink: &Netlink) {
        netlink.clear4(self.index()).await;
        netlink.clear6(self.index()).await;
        (self.set4, self.set6) = (None, None);
    }
}
