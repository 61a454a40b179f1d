//! Talking to BMCs: what may be asked of one, who may be asked, and Redfish.
//!
//! [`access`] decides whether a Secret's credentials may go to an address before any client exists. A
//! [`Connector`] then makes a [`Bmc`] of it. Reconcilers know only these two traits.

pub mod access;
mod address_list;
mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
pub mod redfish;

use std::sync::Arc;

use farrier_shared::lifecycle::PowerState;
use farrier_shared::lifecycle::fault::BmcFacts;
use farrier_shared::resource::host;
use futures_util::future::BoxFuture;

pub use access::{HostAccess, Trust};
pub use error::BmcError;

/// A call to a BMC under way.
pub type Call<'a, T> = BoxFuture<'a, Result<T, BmcError>>;

/// How the firmware is to boot from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum BootMode {
    /// As the host is set up: nothing is said about it.
    #[default]
    AsConfigured,
    /// UEFI.
    Uefi,
    /// BIOS.
    Legacy,
}

impl From<Option<host::BootMode>> for BootMode {
    fn from(wanted: Option<host::BootMode>) -> Self {
        match wanted {
            None => Self::AsConfigured,
            Some(host::BootMode::Uefi) => Self::Uefi,
            Some(host::BootMode::Legacy) => Self::Legacy,
        }
    }
}

/// A power action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResetKind {
    /// Switch on; nothing if it is on.
    On,
    /// Ask the operating system to shut down; nothing if it is off.
    GracefulShutdown,
    /// Cut the power; nothing if it is off.
    ForceOff,
    /// Cut the power and switch on; the same as `On` if it is off.
    ForceRestart,
}

/// One server's BMC. Every method may be called twice: asking for what already is so succeeds.
pub trait Bmc: Send + Sync {
    /// Hardware details, power state and addresses. Power and addresses that cannot be read are left out.
    fn system_info(&self) -> Call<'_, BmcFacts>;
    /// Reads addresses anew at the next look, although the system may show no change.
    fn distrust_addresses(&self) {}
    /// Whether the server is powered.
    fn power_state(&self) -> Call<'_, PowerState>;
    /// Makes the next boot, and only that, come from the network.
    fn set_boot_pxe_once(&self, mode: BootMode) -> Call<'_, ()>;
    /// Makes every boot come from where the firmware's own order says.
    fn clear_boot_override(&self) -> Call<'_, ()>;
    /// Carries out a power action and confirms it, within a bounded time.
    fn reset(&self, kind: ResetKind) -> Call<'_, ()>;
}

/// Makes clients for BMCs that may be asked.
pub trait Connector: Send + Sync {
    /// A client; connecting may already talk to the BMC.
    fn connect<'a>(&'a self, access: &'a HostAccess) -> Call<'a, Arc<dyn Bmc>>;
}
