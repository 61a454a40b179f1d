//! `GET /apis/v1/watch`: one JSON line for each host now, and one for each change from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use farrier_shared::contract::{HostKey, Name};
use farrier_shared::lifecycle::host_view;
use farrier_shared::resource::{Beskar7Machine, PhysicalHost, Resource as _};
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, mpsc};

use super::Admin;
use super::error::ApiError;
use super::view::HostLine;
use crate::store::{Scope, StoreError, Term};

/// Lines a slow client may leave unread before the watch waits for it.
const BACKLOG: usize = 64;

/// Watches at a time. Each holds a connection for as long as it likes, and the listener has 128 of them: some must
/// be left for commands.
pub(super) const MAX_WATCHES: usize = 96;

/// A place for each watch.
pub(super) fn slots() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_WATCHES))
}

/// Which hosts.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WatchQuery {
    namespace: Option<Name>,
    host: Option<Name>,
}

impl WatchQuery {
    fn wants(&self, key: &HostKey) -> bool {
        self.namespace.as_ref().is_none_or(|n| *n == key.namespace)
            && self.host.as_ref().is_none_or(|h| *h == key.name)
    }
}

pub(super) async fn serve(
    State(admin): State<Admin>,
    Extension(slots): Extension<Arc<Semaphore>>,
    Query(query): Query<WatchQuery>,
) -> Result<Response, ApiError> {
    let slot = slots.try_acquire_owned().map_err(|_| {
        let problem = format!("{MAX_WATCHES} watches are open, which is the most there may be");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "", problem, "end another `farrier watch` first")
    })?;
    let (send, receive) = mpsc::channel::<Bytes>(BACKLOG);
    tokio::spawn(async move {
        let _slot = slot;
        let mut watch = Watch { admin, query, send, last: BTreeMap::new() };
        if let Err(Some(error)) = watch.run().await {
            tracing::error!(%error, "a watch ended");
        }
    });
    let lines = futures_util::stream::unfold(receive, |mut receive| async move {
        receive.recv().await.map(|line| (Ok::<_, Infallible>(line), receive))
    });
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"))];
    Ok((kind, Body::from_stream(lines)).into_response())
}

struct Watch {
    admin: Admin,
    query: WatchQuery,
    send: mpsc::Sender<Bytes>,
    last: BTreeMap<HostKey, HostLine>,
}

/// `None` when the client has left.
type Ended = Option<StoreError>;

impl Watch {
    async fn run(&mut self) -> Result<(), Ended> {
        // Subscribed first: what changes while everything is read is told twice rather than not at all.
        let mut changes = self.admin.store.watch();
        let mut progress = self.admin.progress.subscribe();
        self.tell_all().await?;
        loop {
            let changed = tokio::select! {
                () = self.send.closed() => return Ok(()),
                change = changes.recv() => match change {
                    Ok(change) if change.kind == PhysicalHost::KIND => Ok(Some(change.key)),
                    Ok(change) if change.kind == Beskar7Machine::KIND => Ok(self.host_of(&change.key).await?),
                    Ok(_) => Ok(None),
                    Err(error) => Err(error),
                },
                host = progress.recv() => host.map(Some),
            };
            match changed {
                Ok(Some(host)) => self.tell(&host).await?,
                Ok(None) => {}
                Err(RecvError::Lagged(_)) => self.tell_all().await?,
                Err(RecvError::Closed) => return Ok(()),
            }
        }
    }

    async fn tell_all(&mut self) -> Result<(), Ended> {
        let mut keys: BTreeSet<HostKey> =
            self.admin.store.keys::<PhysicalHost>().await.map_err(Some)?.into_iter().collect();
        keys.extend(self.last.keys().cloned());
        for key in keys {
            self.tell(&key).await?;
        }
        Ok(())
    }

    /// Sends the host's line unless it is the one sent last.
    async fn tell(&mut self, key: &HostKey) -> Result<(), Ended> {
        if !self.query.wants(key) {
            return Ok(());
        }
        let host = match self.admin.store.get::<PhysicalHost>(key).await {
            // The others must not go dark because of one that is damaged; lists leave it out likewise.
            Err(error @ StoreError::Encoding { .. }) => {
                tracing::warn!(%error, "a host is left out of a watch");
                return Ok(());
            }
            read => read.map_err(Some)?,
        };
        let line = match host {
            Some(host) => {
                let machine = self.machine_of(&host).await?;
                HostLine::of(&host, machine.as_ref(), self.admin.progress.get(key).as_ref())
            }
            None if self.last.contains_key(key) => HostLine::gone(key),
            None => return Ok(()),
        };
        if self.last.get(key) == Some(&line) {
            return Ok(());
        }
        let Ok(mut text) = serde_json::to_vec(&line) else { return Ok(()) };
        text.push(b'\n');
        if line.deleted {
            self.last.remove(key);
        } else {
            self.last.insert(key.clone(), line);
        }
        self.send.send(text.into()).await.map_err(|_| None)
    }

    /// The machine that has claimed the host, else one pinned to it by name.
    async fn machine_of(&self, host: &PhysicalHost) -> Result<Option<Beskar7Machine>, Ended> {
        if let Some(key) = host_view::consumer_key(host) {
            return self.admin.store.get(&key).await.map_err(Some);
        }
        let scope = Scope::Namespace { namespace: host.metadata.namespace.clone(), after: None };
        let wants = Term::Wants(&host.metadata.name);
        let machines: Vec<Beskar7Machine> = self.admin.store.find(wants, scope, 1).await.map_err(Some)?;
        Ok(machines.into_iter().next())
    }

    /// The host a changed machine has or wants.
    async fn host_of(&self, machine: &HostKey) -> Result<Option<HostKey>, Ended> {
        let machine: Option<Beskar7Machine> = self.admin.store.get(machine).await.map_err(Some)?;
        Ok(machine.and_then(|m| {
            let by_id = m.spec.provider_id.map(|id| id.host().clone());
            by_id.or_else(|| Some(HostKey::new(m.metadata.namespace, m.spec.host_name?)))
        }))
    }
}
