//! Get, list, create, apply, delete.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use farrier_shared::contract::{HostKey, Name};
use farrier_shared::lifecycle::{HistoryEntry, host_view};
use farrier_shared::resource::metadata::ObjectMeta;
use farrier_shared::resource::{Beskar7Machine, PhysicalHost, Resource, Secret};
use serde::Deserialize;

use super::Admin;
use super::error::ApiError;
use super::given::{parse, printable, same_place};
use super::kind::Kind;
use super::listing;
use super::release;
use super::view::SecretView;
use crate::progress::ProgressEntry;
use crate::store::StoreError;

/// How often an apply is tried anew when the controller writes the same object meanwhile.
const APPLY_ATTEMPTS: u32 = 8;

/// What an operator may write.
trait Written: Resource {
    /// Rules beyond single values; also what must be merged before checking.
    fn check(&mut self) -> Result<(), ApiError>;
    /// Takes spec from `given`, keeping what the controller owns.
    fn take_spec(&mut self, given: Self) -> Result<(), ApiError>;
    /// Drops what only the controller may say.
    fn as_new(&mut self) -> Result<(), ApiError>;
    /// As shown to clients.
    fn shown(self) -> Result<serde_json::Value, ApiError>;
    /// Rules that depend on the controller and on what else is stored.
    fn admit(&self, _admin: &Admin) -> impl Future<Output = Result<(), ApiError>> + Send {
        async { Ok(()) }
    }
}

const OWNED: &str = "remove the field: the controller alone writes it";

fn value<T: serde::Serialize>(object: &T) -> Result<serde_json::Value, ApiError> {
    serde_json::to_value(object).map_err(|e| {
        tracing::error!(category = ?e.classify(), "an object cannot be shown");
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "",
            "the object cannot be shown",
            "see the controller's log",
        )
    })
}

impl Written for PhysicalHost {
    fn check(&mut self) -> Result<(), ApiError> {
        Ok(self.validate()?)
    }

    fn take_spec(&mut self, given: Self) -> Result<(), ApiError> {
        let claim = self.spec.consumer_ref.clone();
        if given.spec.consumer_ref.is_some() && given.spec.consumer_ref != claim {
            return Err(ApiError::invalid("spec.consumerRef", "differs from the present claim", OWNED));
        }
        self.spec = given.spec;
        self.spec.consumer_ref = claim;
        Ok(())
    }

    fn as_new(&mut self) -> Result<(), ApiError> {
        if self.spec.consumer_ref.is_some() {
            return Err(ApiError::invalid("spec.consumerRef", "a new host cannot be claimed", OWNED));
        }
        self.status = Default::default();
        Ok(())
    }

    fn shown(self) -> Result<serde_json::Value, ApiError> {
        value(&self)
    }

    /// Options that the script of the machine it has would have no room for.
    async fn admit(&self, admin: &Admin) -> Result<(), ApiError> {
        let Some(stored) = admin.store.get::<Self>(&self.metadata.key()).await? else { return Ok(()) };
        if stored.spec.agent_options == self.spec.agent_options {
            return Ok(());
        }
        let Some(key) = host_view::consumer_key(&stored) else { return Ok(()) };
        let Some(machine) = admin.store.get::<Beskar7Machine>(&key).await? else { return Ok(()) };
        let fits = admin.scripts.fits(&self.metadata.key(), &self.spec.agent_options, &machine);
        fits.map_err(|error| {
            let problem = format!("with {} of machine {}: it {}", error.field, key.name, error.problem);
            ApiError::invalid("spec.agentOptions", problem, "shorten either; nothing was stored")
        })
    }
}

impl Written for Beskar7Machine {
    fn check(&mut self) -> Result<(), ApiError> {
        Ok(self.validate()?)
    }

    fn take_spec(&mut self, given: Self) -> Result<(), ApiError> {
        let id = self.spec.provider_id.clone();
        if given.spec.provider_id.is_some() && given.spec.provider_id != id {
            return Err(ApiError::invalid("spec.providerID", "differs from the host the machine has", OWNED));
        }
        self.spec = given.spec;
        self.spec.provider_id = id;
        Ok(())
    }

    fn as_new(&mut self) -> Result<(), ApiError> {
        if self.spec.provider_id.is_some() {
            return Err(ApiError::invalid("spec.providerID", "a new machine cannot have a host", OWNED));
        }
        self.status = Default::default();
        Ok(())
    }

    fn shown(self) -> Result<serde_json::Value, ApiError> {
        value(&self)
    }

    /// A boot script that no firmware would take: exactly on the host it wants, else on one with the shortest name and
    /// no options.
    async fn admit(&self, admin: &Admin) -> Result<(), ApiError> {
        let stored = admin.store.get::<Self>(&self.metadata.key()).await?;
        if stored.is_some_and(|stored| stored.spec.provider_id.is_some()) {
            // Installed: it is not booted again.
            return Ok(());
        }
        let namespace = &self.metadata.namespace;
        let wanted = self.spec.host_name.as_ref().map(|name| HostKey::new(namespace.clone(), name.clone()));
        let host = match &wanted {
            Some(key) => admin.store.get::<PhysicalHost>(key).await?,
            None => None,
        };
        let options = host.map(|host| host.spec.agent_options).unwrap_or_default();
        let shortest = || {
            HostKey::new(
                namespace.clone(),
                name_of("metadata.name", "h").unwrap_or(self.metadata.name.clone()),
            )
        };
        let key = wanted.unwrap_or_else(shortest);
        admin
            .scripts
            .fits(&key, &options, self)
            .map_err(|error| ApiError::invalid(&error.field, error.problem, "shorten it; nothing was stored"))
    }
}

impl Written for Secret {
    fn check(&mut self) -> Result<(), ApiError> {
        self.merge_string_data();
        Ok(self.validate()?)
    }

    fn take_spec(&mut self, given: Self) -> Result<(), ApiError> {
        self.data = given.data;
        self.secret_type = given.secret_type;
        Ok(())
    }

    fn as_new(&mut self) -> Result<(), ApiError> {
        Ok(())
    }

    fn shown(self) -> Result<serde_json::Value, ApiError> {
        value(&SecretView::of(&self))
    }
}

/// Runs `$body` with `$R` as the type of the kind.
macro_rules! with_kind {
    ($kind:expr, $R:ident => $body:expr) => {
        match $kind {
            Kind::Host => {
                type $R = PhysicalHost;
                $body
            }
            Kind::Machine => {
                type $R = Beskar7Machine;
                $body
            }
            Kind::Secret => {
                type $R = Secret;
                $body
            }
        }
    };
}

pub(super) fn kind_of(text: &str) -> Result<Kind, ApiError> {
    text.parse().map_err(|e: super::kind::KindError| ApiError::not_found(e.to_string()))
}

fn name_of(field: &str, text: &str) -> Result<Name, ApiError> {
    text.parse::<Name>().map_err(|e| ApiError::invalid(field, e.to_string(), "correct the name in the path"))
}

pub(super) fn key_of(namespace: &str, name: &str) -> Result<HostKey, ApiError> {
    Ok(HostKey::new(name_of("metadata.namespace", namespace)?, name_of("metadata.name", name)?))
}

type ItemPath = Path<(String, String, String)>;

pub(super) async fn list(
    State(admin): State<Admin>,
    Path((namespace, kind)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    items(&admin, kind_of(&kind)?, Some(&name_of("metadata.namespace", &namespace)?)).await
}

pub(super) async fn list_everywhere(
    State(admin): State<Admin>,
    Path(kind): Path<String>,
) -> Result<Response, ApiError> {
    items(&admin, kind_of(&kind)?, None).await
}

async fn items(admin: &Admin, kind: Kind, namespace: Option<&Name>) -> Result<Response, ApiError> {
    let (store, namespace) = (admin.store.clone(), namespace.cloned());
    with_kind!(kind, R => listing::answer::<R>(store, namespace, Written::shown).await)
}

pub(super) async fn get_one(
    State(admin): State<Admin>,
    Path((namespace, kind, name)): ItemPath,
) -> Result<Response, ApiError> {
    let (kind, key) = (kind_of(&kind)?, key_of(&namespace, &name)?);
    let shown = with_kind!(kind, R => {
        let found: Option<R> = admin.store.get(&key).await?;
        found.ok_or_else(|| ApiError::not_found(format!("{kind} {key} does not exist")))?.shown()?
    });
    Ok(Json(shown).into_response())
}

pub(super) async fn create(
    State(admin): State<Admin>,
    Path((namespace, kind)): Path<(String, String)>,
    body: Bytes,
) -> Result<Response, ApiError> {
    let (kind, namespace) = (kind_of(&kind)?, name_of("metadata.namespace", &namespace)?);
    let shown = with_kind!(kind, R => {
        let mut given: R = parse(&body)?;
        same_place(&given, &namespace, None)?;
        printable(given.metadata())?;
        given.check()?;
        given.admit(&admin).await?;
        create_new(&admin, given).await?.shown()?
    });
    Ok((StatusCode::CREATED, Json(shown)).into_response())
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplyQuery {
    /// Say what would happen and store nothing.
    #[serde(default, rename = "dryRun")]
    dry_run: bool,
}

/// Creates the object or changes the stored one to what is given; says which in the status.
pub(super) async fn apply(
    State(admin): State<Admin>,
    Path((namespace, kind, name)): ItemPath,
    Query(query): Query<ApplyQuery>,
    body: Bytes,
) -> Result<Response, ApiError> {
    let (kind, key) = (kind_of(&kind)?, key_of(&namespace, &name)?);
    let (status, shown) = with_kind!(kind, R => {
        let mut given: R = parse(&body)?;
        same_place(&given, &key.namespace, Some(&key.name))?;
        printable(given.metadata())?;
        given.check()?;
        given.admit(&admin).await?;
        let (status, stored) = apply_one(&admin, &key, given, query.dry_run).await?;
        (status, stored.shown()?)
    });
    Ok((status, Json(shown)).into_response())
}

async fn apply_one<R: Written>(
    admin: &Admin,
    key: &HostKey,
    given: R,
    dry_run: bool,
) -> Result<(StatusCode, R), ApiError> {
    let mut last = None;
    for _ in 0..APPLY_ATTEMPTS {
        let Some(mut stored) = admin.store.get::<R>(key).await? else {
            if dry_run {
                let mut new = given.clone();
                new.as_new()?;
                return Ok((StatusCode::CREATED, new));
            }
            match create_new(admin, given.clone()).await {
                Ok(created) => return Ok((StatusCode::CREATED, created)),
                Err(error) if error.status == StatusCode::CONFLICT => {
                    last = Some(error);
                    continue;
                }
                Err(error) => return Err(error),
            }
        };
        if stored.metadata().deletion_timestamp.is_some() {
            let hint = "wait until it is gone, then apply again";
            return Err(ApiError::new(
                StatusCode::CONFLICT,
                "",
                format!("{} {key} is being deleted", R::KIND),
                hint,
            ));
        }
        stored.metadata_mut().labels.clone_from(&given.metadata().labels);
        stored.metadata_mut().annotations.clone_from(&given.metadata().annotations);
        stored.take_spec(given.clone())?;
        if dry_run {
            return Ok((StatusCode::OK, stored));
        }
        match admin.store.update(&stored).await {
            Ok(updated) => return Ok((StatusCode::OK, updated)),
            // Removed or changed since: look again.
            Err(error @ (StoreError::Conflict { .. } | StoreError::NotFound { .. })) => {
                last = Some(error.into());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(last.unwrap_or_else(|| ApiError::not_found(format!("{} {key} keeps changing", R::KIND))))
}

async fn create_new<R: Written>(admin: &Admin, mut given: R) -> Result<R, ApiError> {
    given.as_new()?;
    unowned(given.metadata_mut());
    Ok(admin.store.create(given).await?)
}

/// Drops what the store and the controller alone say of an object.
pub(super) fn unowned(metadata: &mut ObjectMeta) {
    metadata.uid.clear();
    metadata.resource_version.clear();
    metadata.finalizers.clear();
    metadata.deletion_timestamp = None;
}

pub(super) async fn delete(
    State(admin): State<Admin>,
    Path((namespace, kind, name)): ItemPath,
    Query(how): Query<release::How>,
) -> Result<Response, ApiError> {
    let (kind, key) = (kind_of(&kind)?, key_of(&namespace, &name)?);
    how.prepare(&admin.store, kind, &key).await?;
    with_kind!(kind, R => admin.store.delete::<R>(&key).await?);
    if kind == Kind::Host {
        admin.progress.clear(&key);
    }
    tracing::info!(%kind, %key, "deletion asked for");
    Ok((StatusCode::ACCEPTED, Json(serde_json::json!({ "status": "accepted" }))).into_response())
}

async fn host(admin: &Admin, namespace: &str, kind: &str, name: &str) -> Result<HostKey, ApiError> {
    let key = key_of(namespace, name)?;
    if kind_of(kind)? != Kind::Host {
        return Err(ApiError::not_found("only hosts have a history and progress"));
    }
    match admin.store.get::<PhysicalHost>(&key).await? {
        Some(_) => Ok(key),
        None => Err(ApiError::not_found(format!("host {key} does not exist"))),
    }
}

pub(super) async fn history(
    State(admin): State<Admin>,
    Path((namespace, kind, name)): ItemPath,
) -> Result<Json<Vec<HistoryEntry>>, ApiError> {
    let key = host(&admin, &namespace, &kind, &name).await?;
    Ok(Json(admin.store.history(&key).await?))
}

pub(super) async fn progress(
    State(admin): State<Admin>,
    Path((namespace, kind, name)): ItemPath,
) -> Result<Json<Option<ProgressEntry>>, ApiError> {
    let key = host(&admin, &namespace, &kind, &name).await?;
    Ok(Json(admin.progress.get(&key)))
}
