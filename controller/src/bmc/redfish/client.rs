//! The few things asked of a BMC, in Redfish.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farrier_shared::lifecycle::PowerState;
use farrier_shared::lifecycle::fault::{BmcFacts, Failure};
use farrier_shared::resource::host::Address;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::actions::{Step, plan};
use super::addresses;
use super::known::{Known, Place, Service};
use super::model::{ActionInfo, Collection, Link, Power, Root, System};
use super::quirks::{self, Quirks};
use super::transport::{Pace, Purpose, Transport};
use crate::bmc::{Bmc, BmcError, BootMode, Call, ResetKind};

/// Most tries of one change whose entity tag does not match.
const PATCH_TRIES: u32 = 3;

const ROOT: Purpose = Purpose::connect("show its Redfish root");
const SYSTEMS: Purpose = Purpose::connect("list its computer systems");
const SYSTEM: Purpose = Purpose::query("show its computer system");
const BOOT_SOURCE: Purpose = Purpose::query("set the boot source");
const RESET: Purpose = Purpose::query("change the power state");

/// A Redfish BMC with the one system that is managed through it.
pub(super) struct RedfishBmc {
    transport: Transport,
    pace: Pace,
    known: Arc<Known>,
    service: Service,
    place: Place,
    /// The system as connecting found it, for the look that follows at once.
    found: Mutex<Option<(System, Quirks)>>,
}

impl RedfishBmc {
    /// Finds the first system: where it was the last time or, when it is not there, from the root on. Then what is
    /// wrong is told as for a BMC that was never asked.
    pub(super) async fn connect(
        transport: Transport,
        pace: Pace,
        known: Arc<Known>,
        service: Service,
    ) -> Result<Self, BmcError> {
        let place = known.place(&service);
        let nowhere = Place { system: String::new(), vendor: quirks::of("") };
        let mut bmc = Self { transport, pace, known, service, place: nowhere, found: Mutex::default() };
        if let Some(place) = place {
            bmc.place = place;
            match bmc.read_system().await {
                Ok(found) => {
                    bmc.found = Mutex::new(Some(found));
                    return Ok(bmc);
                }
                Err(error) if error.failure() != Some(Failure::Query) => return Err(error),
                Err(_) => bmc.known.forget(&bmc.service),
            }
        }
        bmc.place = bmc.first_system().await?;
        bmc.known.found(bmc.service.clone(), bmc.place.clone());
        Ok(bmc)
    }

    /// Where the first system is.
    async fn first_system(&self) -> Result<Place, BmcError> {
        let transport = &self.transport;
        let root: Root = transport.get(&transport.root(), ROOT).await?.value;
        let none = || transport.failed(SYSTEMS, None, "it has no computer system".to_owned());
        let systems = root.systems.filter(|link| !link.id.is_empty()).ok_or_else(none)?;
        let list: Collection = transport.get(&systems.id, SYSTEMS).await?.value;
        let system = list.members.first().filter(|link| !link.id.is_empty()).ok_or_else(none)?.id.clone();
        let vendor = root.vendor.unwrap_or_default();
        if list.members.len() > 1 {
            tracing::warn!(
                bmc = transport.authority(),
                systems = list.members.len(),
                used = system,
                vendor,
                "the BMC manages several systems; the first is used"
            );
        }
        Ok(Place { system, vendor: quirks::of(&vendor) })
    }

    /// The system as it is now, with the entity tag to send when changing it.
    async fn read_system(&self) -> Result<(System, Quirks), BmcError> {
        self.read_settings(&self.place.system).await
    }

    /// The system, or what shows its settings alone.
    async fn read_settings(&self, link: &str) -> Result<(System, Quirks), BmcError> {
        let got = self.transport.get::<System>(link, SYSTEM).await?;
        let mut system = got.value;
        let quirks = quirks::of(system.manufacturer.as_deref().unwrap_or_default()).or(self.place.vendor);
        system.etag =
            got.etag.or(system.etag).map(|etag| if quirks.strong_etag { strong(&etag) } else { etag });
        Ok((system, quirks))
    }

    /// The addresses of the system's interfaces. They are many requests and seldom change.
    async fn addresses(&self, system: &System) -> Option<Vec<Address>> {
        if let Some(addresses) = self.known.addresses(&self.service, system) {
            return addresses;
        }
        let read = addresses::read(&self.transport, system, self.pace.addresses).await;
        self.known.addresses_read(&self.service, system, read.addresses.clone(), read.whole);
        read.addresses
    }

    /// Changes the system's boot settings, at the system or, where it does not take them, at its settings resource.
    async fn patch_boot(&self, boot: impl Fn(&System, &Quirks) -> Value) -> Result<(), BmcError> {
        let (system, quirks) = self.read_system().await?;
        let body = json!({ "Boot": boot(&system, &quirks) });
        let settings = system.settings.as_ref().and_then(|s| s.settings_object.clone());
        let sent = self.patch(&self.place.system, &body, system.etag).await;
        match (sent, settings) {
            (Err(error), Some(Link { id }))
                if matches!(error.status(), Some(400 | 404 | 405)) && !id.is_empty() =>
            {
                tracing::debug!(bmc = self.transport.authority(), %error, "trying its settings resource");
                let (settings, _) = self.read_settings(&id).await?;
                self.patch(&id, &body, settings.etag).await
            }
            (sent, _) => sent,
        }
    }

    /// Sends a change with the entity tag; a tag that does not match costs further tries: with the tag as it is by
    /// then, since somebody else may have changed something in between, and in its strong form, since some compare
    /// it as that. Where a tag is demanded and none was given, any will do.
    async fn patch(&self, link: &str, body: &Value, etag: Option<String>) -> Result<(), BmcError> {
        let mut etag = etag;
        let mut tries = 0;
        loop {
            let sent = self.transport.send(Method::PATCH, link, body, etag.as_deref(), BOOT_SOURCE).await;
            tries += 1;
            match sent {
                Err(error) if error.status() == Some(428) && etag.is_none() => etag = Some("*".to_owned()),
                Err(error) if error.status() == Some(412) && tries < PATCH_TRIES => {
                    let fresh = self.read_settings(link).await?.0.etag;
                    etag = if tries % 2 == 0 { fresh.as_deref().map(strong) } else { fresh };
                }
                other => return other,
            }
        }
    }

    /// A boot source that was taken and does not show will not be used either; a person should know.
    async fn look_whether_it_stuck(&self) {
        let Ok((System { boot: Some(boot), settings: None, .. }, _)) = self.read_system().await else {
            return;
        };
        let (target, enabled) = (boot.boot_source_override_target, boot.boot_source_override_enabled);
        if target.as_deref().is_some_and(|t| t != "Pxe") || enabled.as_deref() == Some("Disabled") {
            tracing::warn!(
                bmc = self.transport.authority(),
                ?target,
                ?enabled,
                "the BMC took network boot and does not show it; the server may boot its disk"
            );
        }
    }

    /// The system once its power is not changing any more, or as it is when it has changed for too long.
    async fn settled(&self) -> Result<(System, Quirks, PowerState), BmcError> {
        let begun = Instant::now();
        loop {
            let (system, quirks) = self.read_system().await?;
            let power = system.power_state;
            let changing = matches!(power, Some(Power::PoweringOn | Power::PoweringOff));
            if changing && begun.elapsed() < self.limit(quirks.power_settles) {
                tokio::time::sleep(self.pace.poll).await;
                continue;
            }
            let power = self.told(power)?;
            return Ok((system, quirks, power));
        }
    }

    fn told(&self, power: Option<Power>) -> Result<PowerState, BmcError> {
        plain(power).ok_or_else(|| {
            self.transport.failed(SYSTEM, None, "it does not tell whether the system is on or off".to_owned())
        })
    }

    fn limit(&self, wanted: Duration) -> Duration {
        wanted.min(self.pace.settle)
    }

    async fn carry_out(&self, kind: ResetKind) -> Result<(), BmcError> {
        let (system, quirks, power) = self.settled().await?;
        let action = system.actions.and_then(|a| a.reset).filter(|reset| !reset.target.is_empty());
        let action = action
            .ok_or_else(|| self.transport.failed(RESET, None, "it offers no reset action".to_owned()))?;
        let mut allowed = action.allowed.filter(|list| !list.is_empty());
        if let (None, Some(link)) = (&allowed, &action.action_info) {
            // Not being told is no reason not to try.
            let info = self.transport.get::<ActionInfo>(link, RESET).await.ok();
            allowed = info.and_then(|info| info.value.reset_types());
        }
        let steps = plan(kind, power, allowed.as_deref(), &quirks).map_err(|e| {
            self.transport.failed(RESET, None, format!("it offers none of {}", e.wanted.join(", ")))
        })?;
        let mut before = power;
        for step in steps {
            self.take(&action.target, &step, before, &quirks).await?;
            before = step.ends;
        }
        Ok(())
    }

    async fn take(
        &self,
        target: &str,
        step: &Step,
        before: PowerState,
        quirks: &Quirks,
    ) -> Result<(), BmcError> {
        let limit = self.limit(if step.polite { quirks.shutdown_settles } else { quirks.power_settles });
        let mut refusal = None;
        for reset_type in &step.types {
            let body = json!({ "ResetType": reset_type });
            match self.transport.send(Method::POST, target, &body, None, RESET).await {
                Ok(()) => return self.confirm(step.ends, before, limit).await,
                // Servers that are there already refuse to go there; so do ones that do not know this type.
                Err(error) if matches!(error.status(), Some(400 | 404 | 405 | 409 | 501)) => {
                    if before != step.ends && self.power().await? == step.ends {
                        return Ok(());
                    }
                    refusal = Some(error);
                }
                // Sent again, a restart would hit what has just begun to boot: whether it was taken shows in the power.
                Err(error) if error.outcome_unknown() && before != step.ends => {
                    return self.confirm(step.ends, before, limit).await.map_err(|_| error);
                }
                Err(error) => return Err(error),
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// Waits until the power is as it should be. A BMC that is busy with just that may not answer meanwhile.
    async fn confirm(&self, ends: PowerState, before: PowerState, limit: Duration) -> Result<(), BmcError> {
        let begun = Instant::now();
        if before == ends {
            // A restart shows the state it ends in before it has begun.
            tokio::time::sleep(self.pace.poll).await;
        }
        loop {
            let seen = self.power().await;
            if seen.as_ref().is_ok_and(|power| *power == ends) {
                return Ok(());
            }
            if begun.elapsed() >= limit {
                seen?;
                let (after, wanted) = (limit.as_secs(), ends.as_str());
                return Err(self.transport.failed(
                    RESET,
                    None,
                    format!("it took the request, but the system is not {wanted} after {after} s"),
                ));
            }
            tokio::time::sleep(self.pace.poll).await;
        }
    }

    async fn power(&self) -> Result<PowerState, BmcError> {
        let (system, _) = self.read_system().await?;
        self.told(system.power_state)
    }
}

/// An entity tag in its strong form.
fn strong(etag: &str) -> String {
    etag.trim_start_matches("W/").to_owned()
}

/// The boot mode to send along, if any: not where it is that already, since some refuse to have it written.
fn mode_to_say(wanted: BootMode, system: &System, quirks: &Quirks) -> Option<String> {
    let boot = system.boot.as_ref();
    let present = boot.and_then(|b| b.boot_source_override_mode.as_deref());
    let off = boot.and_then(|b| b.boot_source_override_enabled.as_deref()) == Some("Disabled");
    let wanted = match wanted {
        BootMode::AsConfigured if quirks.repeat_boot_mode && off => present.map(|_| "UEFI"),
        BootMode::AsConfigured => present.filter(|_| quirks.repeat_boot_mode),
        BootMode::Uefi => Some("UEFI"),
        BootMode::Legacy => Some("Legacy"),
    };
    wanted.filter(|wanted| quirks.repeat_boot_mode || present != Some(*wanted)).map(str::to_owned)
}

fn plain(power: Option<Power>) -> Option<PowerState> {
    match power? {
        Power::On | Power::PoweringOn => Some(PowerState::On),
        Power::Off | Power::PoweringOff => Some(PowerState::Off),
        Power::Unknown => None,
    }
}

impl Bmc for RedfishBmc {
    fn system_info(&self) -> Call<'_, BmcFacts> {
        Box::pin(async move {
            let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (system, _) = match found {
                Some(found) => found,
                None => self.read_system().await?,
            };
            let addresses = self.addresses(&system).await;
            Ok(BmcFacts { power: plain(system.power_state), details: Some(system.details()), addresses })
        })
    }

    fn distrust_addresses(&self) {
        self.known.forget_addresses(&self.service);
    }

    fn power_state(&self) -> Call<'_, PowerState> {
        Box::pin(self.power())
    }

    fn set_boot_pxe_once(&self, mode: BootMode) -> Call<'_, ()> {
        Box::pin(async move {
            let (system, _) = self.read_system().await?;
            let allowed = system.boot.and_then(|b| b.allowed_targets).filter(|list| !list.is_empty());
            if allowed.is_some_and(|list| !list.iter().any(|target| target == "Pxe")) {
                let reason = "it does not offer Pxe as a boot source; enable network boot in the firmware";
                return Err(self.transport.failed(BOOT_SOURCE, None, reason.to_owned()));
            }
            self.patch_boot(|system, quirks| {
                let mut boot =
                    json!({ "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once" });
                if let Some(mode) = mode_to_say(mode, system, quirks) {
                    boot["BootSourceOverrideMode"] = Value::String(mode);
                }
                boot
            })
            .await?;
            self.look_whether_it_stuck().await;
            Ok(())
        })
    }

    fn clear_boot_override(&self) -> Call<'_, ()> {
        Box::pin(self.patch_boot(|_, _| {
            // Disabled alone is refused by strict BMCs.
            json!({ "BootSourceOverrideTarget": "None", "BootSourceOverrideEnabled": "Disabled" })
        }))
    }

    fn reset(&self, kind: ResetKind) -> Call<'_, ()> {
        Box::pin(self.carry_out(kind))
    }
}
