//! The ordered sequence that boots a host's inspection image, for the shell to execute.
//!
//! The order matters: whatever is booted finds its credentials, and only the last step may fail once the power
//! has been touched. Each step may be repeated. A host that is found paused in the first two ends the pass.
//!
//! 1. Read the power state of [`BootPlan::host`].
//! 2. [`ensure`](super::mint::ensure) the credentials from fresh reads of host and record, passing
//!    [`BootPlan::still_running`], and write them if told to. A conflict ends the pass; it starts anew.
//! 3. If [`BootPlan::power`] says anything: set the boot source to PXE, once, then do it. Not otherwise: on a
//!    host that runs already, the boot source would catch the boot of its installed system.
//! 4. Remember the run of the credentials as booted.
//! 5. Read the host anew; do what [`BootPlan::request`] says.

use super::credentials::Credentials;
use super::fault::PowerState;
use super::host_view;
use super::machine::PowerAction;
use super::signal::{Signal, SignalKey};
use super::verdict::sign;
use crate::contract::name::HostKey;
use crate::resource::{Beskar7Machine, HostState, PhysicalHost};

/// How to boot one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootPlan {
    /// The host.
    pub host: HostKey,
    /// The run this host was last powered for under the present claim.
    pub booted_run: Option<String>,
}

/// What to do with the `inspect` request once the host is booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InspectRequest {
    /// Record this signal.
    Write(Signal),
    /// The host has moved on by itself: say nothing, fail nothing.
    NoLongerApplies,
    /// The host is another machine's by now: the pass fails.
    NotOurs,
}

impl BootPlan {
    /// The run that may be running on the host at this power; goes into [`ensure`](super::mint::ensure).
    pub fn still_running(&self, power: PowerState) -> Option<&str> {
        self.booted_run.as_deref().filter(|_| power == PowerState::On)
    }

    /// What to do with the power: nothing when this very run was booted already and still is.
    pub fn power(&self, credentials: &Credentials, power: PowerState) -> Option<PowerAction> {
        match power {
            PowerState::Off => Some(PowerAction::On),
            PowerState::On if self.still_running(power) == Some(credentials.run.as_str()) => None,
            PowerState::On => Some(PowerAction::ForceRestart),
        }
    }

    /// The request, judged by a fresh read of the host and signed with the credentials in force.
    pub fn request(
        &self,
        fresh: &PhysicalHost,
        machine: &Beskar7Machine,
        credentials: &Credentials,
    ) -> InspectRequest {
        if !host_view::is_claimed_by(fresh, machine) {
            return InspectRequest::NotOurs;
        }
        match fresh.status.state {
            HostState::InUse => {
                InspectRequest::Write(sign(fresh, credentials, SignalKey::InspectionRequest, "inspect", None))
            }
            _ => InspectRequest::NoLongerApplies,
        }
    }
}
