//! What BMCs have told that seldom changes, so that a look at one need not ask for it again.
//!
//! All of it may be lost: what is not known here is asked for.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use farrier_shared::resource::host::Address;
use tokio::time::Instant;

use super::model::{Power, System};
use super::quirks::Quirks;
use crate::bmc::HostAccess;

/// How long addresses are believed of a system that shows no change, and how long a BMC nobody asks is remembered.
pub(super) const LASTS: Duration = Duration::from_secs(60 * 60);

/// How long addresses are believed that may not be all. Reading them is tried again, and not with every look: a BMC that
/// was too slow for it may be so always.
const PARTS_LAST: Duration = Duration::from_secs(15 * 60);

/// Fewest BMCs for which it is worth looking who is not asked any more.
const FEW: usize = 1024;

/// One user's view of one Redfish service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Service {
    base: String,
    username: String,
}

impl Service {
    pub(super) fn of(access: &HostAccess) -> Self {
        Self { base: access.base.to_string(), username: access.username.to_string() }
    }
}

/// What a service's root leads to.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Link to its system.
    pub(super) system: String,
    /// What is known of the BMC's vendor.
    pub(super) vendor: Quirks,
}

/// What is known of every BMC.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Services>);

#[derive(Debug, Default)]
struct Services {
    all: HashMap<Service, Told>,
    /// From how many on those are dropped that nobody asks any more.
    crowded: usize,
}

#[derive(Debug)]
struct Told {
    place: Place,
    addresses: Option<Interfaces>,
    asked: Instant,
}

#[derive(Debug)]
struct Interfaces {
    of: Appearance,
    until: Instant,
    addresses: Option<Vec<Address>>,
}

/// What a system shows when its interfaces may have changed: another board, or other power.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Appearance {
    serial: Option<String>,
    power: Option<Power>,
}

impl Appearance {
    fn of(system: &System) -> Self {
        Self { serial: system.serial_number.clone(), power: system.power_state }
    }
}

impl Known {
    fn with<T>(&self, act: impl FnOnce(&mut Services) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where the service's system is.
    pub(super) fn place(&self, service: &Service) -> Option<Place> {
        self.with(|known| {
            let told = known.all.get_mut(service)?;
            told.asked = Instant::now();
            Some(told.place.clone())
        })
    }

    /// The service has shown where its system is.
    pub(super) fn found(&self, service: Service, place: Place) {
        self.with(|known| {
            if known.all.len() >= known.crowded.max(FEW) {
                known.all.retain(|_, told| told.asked.elapsed() < LASTS);
                known.crowded = known.all.len() * 2;
            }
            known.all.insert(service, Told { place, addresses: None, asked: Instant::now() });
        });
    }

    /// What was known of the service is wrong.
    pub(super) fn forget(&self, service: &Service) {
        self.with(|known| known.all.remove(service));
    }

    /// What the service has told of addresses may be over.
    pub(super) fn forget_addresses(&self, service: &Service) {
        self.with(|known| {
            if let Some(told) = known.all.get_mut(service) {
                told.addresses = None;
            }
        });
    }

    /// The addresses of a system that looks like this, if they were read and need not be read again.
    pub(super) fn addresses(&self, service: &Service, system: &System) -> Option<Option<Vec<Address>>> {
        self.with(|known| {
            let interfaces = known.all.get(service)?.addresses.as_ref()?;
            let holds = interfaces.of == Appearance::of(system) && Instant::now() < interfaces.until;
            holds.then(|| interfaces.addresses.clone())
        })
    }

    /// The addresses were read; all of them, if `whole`.
    pub(super) fn addresses_read(
        &self,
        service: &Service,
        system: &System,
        addresses: Option<Vec<Address>>,
        whole: bool,
    ) {
        self.with(|known| {
            if let Some(told) = known.all.get_mut(service) {
                let of = Appearance::of(system);
                let until = Instant::now() + if whole { LASTS } else { PARTS_LAST };
                told.addresses = Some(Interfaces { of, until, addresses });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bmc::redfish::quirks;

    fn service(number: usize) -> Service {
        Service { base: format!("https://192.0.2.1:{number}/"), username: "root".to_owned() }
    }

    fn system(serial: &str, power: Power) -> System {
        System { serial_number: Some(serial.to_owned()), power_state: Some(power), ..System::default() }
    }

    fn place() -> Place {
        Place { system: "/redfish/v1/Systems/1".to_owned(), vendor: quirks::of("") }
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_hold_for_an_hour_of_a_system_that_looks_the_same() {
        let (known, service) = (Known::default(), service(1));
        let on = system("A", Power::On);
        let list = Some(vec![Address { kind: "InternalIP".to_owned(), address: "10.0.0.5".to_owned() }]);
        known.addresses_read(&service, &on, list.clone(), true);
        assert_eq!(known.addresses(&service, &on), None, "of a service nobody has found");

        known.found(service.clone(), place());
        assert_eq!(known.addresses(&service, &on), None);
        known.addresses_read(&service, &on, list.clone(), true);
        assert_eq!(known.addresses(&service, &on), Some(list.clone()));
        assert_eq!(known.addresses(&service, &system("A", Power::Off)), None);
        assert_eq!(known.addresses(&service, &system("B", Power::On)), None);
        tokio::time::advance(LASTS).await;
        assert_eq!(known.addresses(&service, &on), None);
        known.addresses_read(&service, &on, None, true);
        assert_eq!(known.addresses(&service, &on), Some(None));
        known.forget_addresses(&service);
        assert_eq!(known.addresses(&service, &on), None);
        assert!(known.place(&service).is_some(), "where its system is holds");

        known.addresses_read(&service, &on, list.clone(), false);
        assert_eq!(known.addresses(&service, &on), Some(list));
        tokio::time::advance(PARTS_LAST).await;
        assert_eq!(known.addresses(&service, &on), None, "some may be missing");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_asked_no_more_is_forgotten_and_who_is_asked_is_not() {
        let known = Known::default();
        for number in 0..FEW {
            known.found(service(number), place());
        }
        tokio::time::advance(LASTS / 2).await;
        assert!(known.place(&service(7)).is_some());
        tokio::time::advance(LASTS / 2).await;
        known.found(service(FEW), place());
        assert_eq!(known.with(|k| k.all.len()), 2);
        assert!(known.place(&service(7)).is_some());
        known.forget(&service(7));
        assert!(known.place(&service(7)).is_none());
    }
}
