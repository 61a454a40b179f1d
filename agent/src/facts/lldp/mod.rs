//! Which switch port each interface is plugged into, as the switch itself says.
//!
//! Switches speak every 30 s, and many as soon as a link comes up. Nothing waits for them: the interfaces listen while
//! the run goes on, and the report has what was heard until then.

mod frame;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farrier_shared::contract::InspectionReport;
use tokio::time::timeout;

pub use frame::{Neighbour, parse};

use crate::net::hear::hear;
use crate::net::links;
use crate::sys::packet;

/// How long an interface listens: longer than a switch is silent.
const LISTEN: Duration = Duration::from_secs(35);
/// Longest payload taken: that of a plain Ethernet frame.
const LONGEST: usize = 1500;
/// Most interfaces that listen.
const MOST: usize = 64;

/// What has been heard so far, by interface.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    heard: Arc<Mutex<BTreeMap<String, Neighbour>>>,
}

impl Neighbours {
    /// Has every physical interface listen, each in a task of its own, until it has heard its switch or for as long
    /// as one may be silent. `root` is where `/sys` is.
    pub fn listen(root: &Path) -> Self {
        let neighbours = Self::default();
        for link in links::physical(root).into_iter().take(MOST) {
            let socket = match packet::lldp_socket(link.index) {
                Ok(socket) => socket,
                Err(error) => {
                    tracing::debug!(interface = link.name, %error, "not listening for its switch");
                    continue;
                }
            };
            let heard = neighbours.clone();
            tokio::spawn(async move {
                if let Ok(neighbour) = timeout(LISTEN, hear(&socket, LONGEST, parse)).await {
                    tracing::info!(
                        interface = link.name,
                        switch = neighbour.system_name,
                        port = neighbour.port_id,
                        "heard its switch"
                    );
                    heard.add(link.name, neighbour);
                }
            });
        }
        neighbours
    }

    fn add(&self, interface: String, neighbour: Neighbour) {
        // A panic elsewhere leaves the map whole.
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).insert(interface, neighbour);
    }

    /// Adds what has been heard to the additive facts of a report.
    pub fn add_to(&self, report: &mut InspectionReport) {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let nics = report.farrier.as_mut().and_then(|facts| facts.get_mut("nics")?.as_array_mut());
        for nic in nics.into_iter().flatten() {
            let neighbour = nic.get("name").and_then(|name| heard.get(name.as_str()?));
            if let (Some(neighbour), Some(nic)) = (neighbour.cloned(), nic.as_object_mut()) {
                // Plain texts: they always are JSON.
                nic.insert("lldp".to_owned(), serde_json::to_value(neighbour).unwrap_or_default());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_heard_is_told_of_its_interface_alone() {
        let farrier = json!({"nics": [{"name": "eth0"}, {"name": "eth1"}]});
        let mut report = InspectionReport { farrier: Some(farrier), ..InspectionReport::default() };
        let neighbours = Neighbours::default();
        let (chassis_id, port_id) = ("44:4c:a8:01:02:03".to_owned(), "Ethernet1/7".to_owned());
        neighbours.add("eth1".into(), Neighbour { chassis_id, port_id, ..Neighbour::default() });
        neighbours.add_to(&mut report);
        let lldp = json!({"chassisId": "44:4c:a8:01:02:03", "portId": "Ethernet1/7"});
        assert_eq!(
            report.farrier.unwrap(),
            json!({"nics": [{"name": "eth0"}, {"name": "eth1", "lldp": lldp}]})
        );
        neighbours.add_to(&mut InspectionReport::default());
    }
}
