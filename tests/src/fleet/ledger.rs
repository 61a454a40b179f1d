//! What happened to the servers of a fleet, as they saw it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farrier_shared::contract::paths::Callback;
use tokio::time::Instant;

/// Something that happened to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Its power came on or was cycled; whether it was told to boot from the network.
    Powered {
        /// From the network, once.
        network: bool,
    },
    /// Its power went off.
    Off,
    /// An agent began a run.
    Began,
    /// The controller answered a callback with success.
    Acknowledged(Callback),
    /// The image was written, all of it.
    Wrote,
    /// The agent gave up.
    GaveUp(String),
}

/// One line.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Number of the server.
    pub server: usize,
    /// The run, where there is one.
    pub run: Option<String>,
    /// What happened.
    pub what: What,
    /// When.
    pub at: Instant,
}

/// The whole fleet's book.
#[derive(Debug, Default)]
pub struct Ledger {
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    entries: Vec<Entry>,
    calls: Vec<Duration>,
}

impl Ledger {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, server: usize, run: Option<&str>, what: What) {
        let entry = Entry { server, run: run.map(str::to_owned), what, at: Instant::now() };
        self.book().entries.push(entry);
    }

    pub(super) fn took(&self, call: Duration) {
        self.book().calls.push(call);
    }

    /// Everything so far, in order.
    pub fn entries(&self) -> Vec<Entry> {
        self.book().entries.clone()
    }

    /// Everything of one server, in order.
    pub fn of(&self, server: usize) -> Vec<Entry> {
        self.book().entries.iter().filter(|e| e.server == server).cloned().collect()
    }

    /// How often this happened, to all servers together.
    pub fn count(&self, what: &What) -> usize {
        self.book().entries.iter().filter(|e| e.what == *what).count()
    }

    /// How long callbacks took, sorted; what was retried counts as one.
    pub fn calls(&self) -> Vec<Duration> {
        let mut calls = self.book().calls.clone();
        calls.sort_unstable();
        calls
    }
}
