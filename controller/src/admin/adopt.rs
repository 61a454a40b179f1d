//! Taking over a host as it is: its system is installed already, by an earlier controller or by hand.
//!
//! A machine that carries the provider id of a host which it has claimed is adopted by the lifecycle: the host goes
//! to `Ready` and is neither booted nor written. Plain objects may carry neither field, since either one alone, or on
//! a host that is in use, would take a host from its machine. Here both are written in an order that is safe to be
//! cut off: the machine first, which by its provider id claims no other host; then the claim, compare-and-swap.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use farrier_shared::contract::{HostKey, Name, ProviderId};
use farrier_shared::lifecycle::claim::reference_to;
use farrier_shared::lifecycle::host_view;
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost};

use super::Admin;
use super::error::ApiError;
use super::given::{parse, printable, same_place};
use super::kind::Kind;
use super::objects::{key_of, kind_of, unowned};
use crate::store::StoreError;

/// How often the claim is tried anew when the controller writes the host meanwhile.
const ATTEMPTS: u32 = 8;

/// Creates the machine that is given and has the host adopted with it. Again with the same machine it goes on where
/// it was cut off.
pub(super) async fn adopt(
    State(admin): State<Admin>,
    Path((namespace, kind, name)): Path<(String, String, String)>,
    body: Bytes,
) -> Result<Response, ApiError> {
    let key = key_of(&namespace, &name)?;
    if kind_of(&kind)? != Kind::Host {
        return Err(ApiError::not_found("only hosts can be adopted"));
    }
    let mut given: Beskar7Machine = parse(&body)?;
    same_place(&given, &key.namespace, None)?;
    printable(&given.metadata)?;
    let id = ProviderId::of(&key);
    if given.spec.provider_id.as_ref().is_some_and(|other| *other != id) {
        return Err(ApiError::invalid("spec.providerID", "names another host", "leave it out"));
    }
    given.spec.provider_id = Some(id);
    given.validate()?;
    may_be_adopted(&host(&admin, &key).await?, &given.metadata.name)?;
    let (machine, created) = machine_for(&admin, given).await?;
    match claim(&admin, &key, &machine).await {
        Ok(()) => {
            tracing::info!(host = %key, machine = %machine.metadata.name, "the host is to be adopted as it is");
            Ok((StatusCode::CREATED, Json(serde_json::json!({ "status": "accepted" }))).into_response())
        }
        Err(error) => {
            // Somebody else has the host by now; a machine that waits for it would wait for ever.
            if created && let Err(error) = admin.store.delete::<Beskar7Machine>(&machine.metadata.key()).await
            {
                tracing::warn!(%error, machine = %machine.metadata.name, "the machine stays, delete it");
            }
            Err(error)
        }
    }
}

async fn host(admin: &Admin, key: &HostKey) -> Result<PhysicalHost, ApiError> {
    let found = admin.store.get::<PhysicalHost>(key).await?;
    found.ok_or_else(|| ApiError::not_found(format!("host {key} does not exist")))
}

/// Refuses a host that is anybody's, or that the lifecycle would not adopt.
fn may_be_adopted(host: &PhysicalHost, machine: &Name) -> Result<(), ApiError> {
    let name = &host.metadata.name;
    let refused = |problem: String, hint: &str| Err(ApiError::new(StatusCode::CONFLICT, "", problem, hint));
    if host.metadata.deletion_timestamp.is_some() {
        return refused(format!("host {name} is being deleted"), "apply it anew when it is gone");
    }
    match (host_view::consumer(host), host.status.state) {
        (Some(ours), _) if ours == *machine => Ok(()),
        _ if host_view::is_claimed(host) => {
            let by =
                host_view::consumer(host).map_or_else(|| "another".to_owned(), |other| other.to_string());
            refused(format!("host {name} is in use by machine {by}"), "a host in use cannot be adopted")
        }
        (_, HostState::New | HostState::Available) => Ok(()),
        (_, state) => refused(
            format!("host {name} is {state}, expected New or Available: {}", host.status.error_message),
            "see `farrier describe host`; adopt it when its BMC answers",
        ),
    }
}

/// The machine, new, or left from an earlier try; and whether it is new.
async fn machine_for(admin: &Admin, given: Beskar7Machine) -> Result<(Beskar7Machine, bool), ApiError> {
    let key = given.metadata.key();
    if let Some(found) = admin.store.get::<Beskar7Machine>(&key).await? {
        let ours = found.spec.provider_id == given.spec.provider_id;
        if ours && found.metadata.deletion_timestamp.is_none() {
            return Ok((found, false));
        }
        let hint = "choose another name for the machine";
        let problem = format!("machine {} exists already", key.name);
        return Err(ApiError::new(StatusCode::CONFLICT, "metadata.name", problem, hint));
    }
    let mut new = given;
    new.status = Default::default();
    unowned(&mut new.metadata);
    Ok((admin.store.create(new).await?, true))
}

async fn claim(admin: &Admin, key: &HostKey, machine: &Beskar7Machine) -> Result<(), ApiError> {
    for _ in 0..ATTEMPTS {
        let mut host = host(admin, key).await?;
        may_be_adopted(&host, &machine.metadata.name)?;
        if host_view::is_claimed_by(&host, machine) {
            return Ok(());
        }
        host.spec.consumer_ref = Some(reference_to(machine));
        match admin.store.update(&host).await {
            Ok(_) => return Ok(()),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ApiError::new(StatusCode::CONFLICT, "", format!("host {key} keeps changing"), "try again"))
}
