//! What the agents last said of their progress: observations, kept in memory only.
//!
//! An entry may move a deadline and may be shown to people. It never moves a state.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use farrier_shared::contract::callback::Event;
use farrier_shared::contract::{HostKey, Time};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

/// How many unread changes a slow reader may fall behind before it is told that it missed some.
const BACKLOG: usize = 256;

/// The last event of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressEntry {
    /// What the agent said.
    #[serde(flatten)]
    pub event: Event,
    /// When the controller heard of it.
    pub at: Time,
}

/// The last event of every host; cheap to clone, all clones see the same.
#[derive(Clone, Debug)]
pub struct Progress {
    entries: Arc<RwLock<BTreeMap<HostKey, ProgressEntry>>>,
    changes: broadcast::Sender<HostKey>,
}

impl Default for Progress {
    fn default() -> Self {
        Self { entries: Arc::default(), changes: broadcast::channel(BACKLOG).0 }
    }
}

impl Progress {
    /// Nothing known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps the host's newest event.
    pub fn record(&self, host: &HostKey, entry: ProgressEntry) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).insert(host.clone(), entry);
        // No reader is no error.
        let _ = self.changes.send(host.clone());
    }

    /// The host's newest event.
    pub fn get(&self, host: &HostKey) -> Option<ProgressEntry> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(host).cloned()
    }

    /// Forgets a host: its run is over or it is gone.
    pub fn clear(&self, host: &HostKey) {
        if self.entries.write().unwrap_or_else(PoisonError::into_inner).remove(host).is_some() {
            let _ = self.changes.send(host.clone());
        }
    }

    /// Tells whose entry changed from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<HostKey> {
        self.changes.subscribe()
    }
}
