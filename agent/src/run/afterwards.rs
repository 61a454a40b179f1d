//! What is done once the system is installed, and what never undoes that: its boot entry, and a look at what could
//! get in its way.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use farrier_shared::contract::callback::EventName;
use farrier_shared::contract::options::EfiBoot;

use super::Contact;
use super::deadline::blocking;
use crate::disk::Target;
use crate::efi;

/// How long the firmware may take to store a few variables: flash on old boards takes seconds for each.
const FIRMWARE_WAIT: Duration = Duration::from_secs(60);

/// Has the firmware boot the installed system. What fails is told and goes no further: the firmware's fallback path
/// boots the system all the same.
pub(super) async fn make_boot_entry(
    contact: &Contact,
    target: &Arc<dyn Target>,
    policy: EfiBoot,
    root: &Path,
    work: &'static str,
) {
    let (target, root) = (Arc::clone(target), root.to_owned());
    let made = move || efi::boot_from(&*target, policy, &root, &PathBuf::from(work));
    match blocking("boot entry", FIRMWARE_WAIT, made).await {
        Ok(Ok(outcome)) => tracing::info!(?outcome, "boot entry"),
        Ok(Err(error)) => warn(contact, &format!("no boot entry was made: {error}")),
        Err(failure) => warn(contact, &format!("no boot entry was made: {failure}")),
    }
}

/// Tells the operator of something that does not keep the run from going on.
pub(super) fn warn(contact: &Contact, text: &str) {
    tracing::warn!("{text}");
    contact.event(EventName::Installing, &format!("warning: {text}"));
}
