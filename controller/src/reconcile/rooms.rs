//! Room for passes: how many of each sort are under way at a time.
//!
//! A key waits for its place in the queue, where it is a name, and not in a task, where it would hold objects:
//! ten thousand keys that are woken at once cost what the names cost.

use std::sync::Arc;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// BMCs asked how they are at the same time.
const LOOKS: usize = 256;
/// BMCs told to do something at the same time: room of its own, since they take their time with it.
const ACTIONS: usize = 512;
/// Checksum files fetched at the same time.
const FETCHES: usize = 16;

/// What a pass takes room of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lane {
    /// Reads, decisions and writes: they wait for the store only.
    Pass,
    /// Asking a BMC how it is.
    Look,
    /// Telling a BMC to do something.
    Act,
    /// Fetching a checksum file.
    Fetch,
}

impl Lane {
    /// Every lane, in the order of [`index`](Self::index).
    pub(super) const ALL: [Self; 4] = [Self::Pass, Self::Look, Self::Act, Self::Fetch];

    /// Its place in an array of [`ALL`](Self::ALL).
    pub(super) fn index(self) -> usize {
        match self {
            Self::Pass => 0,
            Self::Look => 1,
            Self::Act => 2,
            Self::Fetch => 3,
        }
    }
}

/// All rooms.
#[derive(Debug)]
pub(super) struct Rooms {
    free: [Arc<Semaphore>; 4],
    left: Arc<Notify>,
}

impl Rooms {
    /// Rooms with `passes` places for passes.
    pub(super) fn new(passes: usize) -> Self {
        let free = [passes.max(1), LOOKS, ACTIONS, FETCHES].map(|places| Arc::new(Semaphore::new(places)));
        Self { free, left: Arc::default() }
    }

    /// A place, if there is one now.
    pub(super) fn enter(&self, lane: Lane) -> Option<Place> {
        let permit = Arc::clone(&self.free[lane.index()]).try_acquire_owned().ok()?;
        Some(Place { lane, permit: Some(permit), left: Arc::clone(&self.left) })
    }

    /// Waits until a place was left since this was last waited for.
    pub(super) async fn left(&self) {
        self.left.notified().await;
    }
}

/// A place in a room; free again when dropped.
#[derive(Debug)]
pub(super) struct Place {
    /// Of this sort.
    pub(super) lane: Lane,
    permit: Option<OwnedSemaphorePermit>,
    left: Arc<Notify>,
}

impl Drop for Place {
    fn drop(&mut self) {
        // Free first: whoever is told looks at once.
        self.permit = None;
        self.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_room_takes_nobody_until_a_place_is_left() {
        let rooms = Rooms::new(1);
        let place = rooms.enter(Lane::Pass).unwrap();
        assert!(rooms.enter(Lane::Pass).is_none());
        assert_eq!(rooms.enter(Lane::Act).unwrap().lane, Lane::Act);
        rooms.left().await;
        drop(place);
        rooms.left().await;
        assert!(rooms.enter(Lane::Pass).is_some());
    }
}
