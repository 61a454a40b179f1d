//! What a BMC answers.

use farrier_shared::lifecycle::PowerState;

use super::actions::plan;
use super::model::{ActionInfo, Collection, Interface, Root, System};
use super::quirks;
use super::transport::message_id;
use crate::bmc::ResetKind;

/// Most bytes kept of one text: as many characters as the model keeps, of four bytes each.
const MOST: usize = 256 * 4;

/// One answer, taken for each of the resources that are read.
pub fn redfish(bytes: &[u8]) {
    let _ = serde_json::from_slice::<Root>(bytes);
    let _ = serde_json::from_slice::<Collection>(bytes);
    let _ = serde_json::from_slice::<ActionInfo>(bytes).map(ActionInfo::reset_types);
    if let Ok(interface) = serde_json::from_slice::<Interface>(bytes) {
        assert!(interface.addresses().len() <= 64);
    }
    let id = message_id(bytes).unwrap_or_default();
    assert!(id.len() <= 100 && id.is_ascii());
    let Ok(system) = serde_json::from_slice::<System>(bytes) else { return };
    let kept = system.details();
    for text in [&kept.manufacturer, &kept.model, &kept.serial_number, &kept.status.health] {
        assert!(text.len() <= MOST && !text.contains(char::is_control));
    }
    let quirks = quirks::of(&kept.manufacturer);
    let allowed = system.actions.and_then(|actions| actions.reset).and_then(|reset| reset.allowed);
    for kind in [ResetKind::On, ResetKind::GracefulShutdown, ResetKind::ForceOff, ResetKind::ForceRestart] {
        for power in [PowerState::On, PowerState::Off] {
            if let Ok(steps) = plan(kind, power, allowed.as_deref(), &quirks) {
                assert!(steps.len() <= 2 && steps.iter().all(|step| !step.types.is_empty()));
            }
        }
    }
}
