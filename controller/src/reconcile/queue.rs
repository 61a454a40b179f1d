//! What is to be looked at, and when: each key at most once at a time.
//!
//! A key is idle, due at some instant, ready in one lane, or running. One that is woken while it runs is run once
//! more afterwards, so no change is missed and none is worked on twice at once.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::Hash;

use tokio::time::Instant;

use super::rooms::Lane;

/// What a key takes room of when it is woken.
pub(super) trait Laned {
    fn lane(&self) -> Lane;
}

/// The queue; plain data, driven by its owner.
#[derive(Debug)]
pub(super) struct Queue<K> {
    ready: [VecDeque<K>; Lane::ALL.len()],
    queued: HashSet<K>,
    running: HashSet<K>,
    again: HashSet<K>,
    due: HashMap<K, (Instant, u64)>,
    timers: BTreeSet<(Instant, u64)>,
    by_timer: HashMap<u64, K>,
    next_timer: u64,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self {
            ready: std::array::from_fn(|_| VecDeque::new()),
            queued: HashSet::new(),
            running: HashSet::new(),
            again: HashSet::new(),
            due: HashMap::new(),
            timers: BTreeSet::new(),
            by_timer: HashMap::new(),
            next_timer: 0,
        }
    }
}

impl<K: Clone + Eq + Hash + Laned> Queue<K> {
    /// Looks at the key as soon as there is room.
    pub(super) fn wake(&mut self, key: K) {
        self.cancel_timer(&key);
        if self.running.contains(&key) {
            self.again.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready[key.lane().index()].push_back(key);
        }
    }

    /// Looks at a key nobody looks at yet.
    pub(super) fn ensure(&mut self, key: K) {
        let known = self.queued.contains(&key) || self.running.contains(&key) || self.due.contains_key(&key);
        if !known {
            self.wake(key);
        }
    }

    /// Whether a key waits for room in this lane.
    pub(super) fn waits(&self, lane: Lane) -> bool {
        !self.ready[lane.index()].is_empty()
    }

    /// The next key of this lane to run; it runs until [`done`](Self::done) or [`moved`](Self::moved).
    pub(super) fn take(&mut self, lane: Lane) -> Option<K> {
        let key = self.ready[lane.index()].pop_front()?;
        self.queued.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    /// The key's run has ended; it is due again at `at`, or when it is woken.
    pub(super) fn done(&mut self, key: K, at: Option<Instant>) {
        self.running.remove(&key);
        if self.again.remove(&key) {
            self.wake(key);
        } else if let Some(at) = at {
            let id = self.next_timer;
            self.next_timer += 1;
            self.timers.insert((at, id));
            self.by_timer.insert(id, key.clone());
            self.due.insert(key, (at, id));
        }
    }

    /// The key's run has found no room for what it came to, and is to be run anew when there is some.
    pub(super) fn moved(&mut self, key: K, lane: Lane) {
        self.running.remove(&key);
        self.again.remove(&key);
        if self.queued.insert(key.clone()) {
            self.ready[lane.index()].push_back(key);
        }
    }

    /// When the next timer ends.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Makes ready what is due by now.
    pub(super) fn pass_timers(&mut self, now: Instant) {
        while let Some((at, id)) = self.timers.first().copied() {
            if at > now {
                return;
            }
            match self.by_timer.get(&id).cloned() {
                Some(key) => self.wake(key),
                None => {
                    self.timers.remove(&(at, id));
                }
            }
        }
    }

    fn cancel_timer(&mut self, key: &K) {
        if let Some((at, id)) = self.due.remove(key) {
            self.timers.remove(&(at, id));
            self.by_timer.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    impl Laned for &str {
        fn lane(&self) -> Lane {
            Lane::Pass
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_runs_once_at_a_time_and_again_when_woken_meanwhile() {
        let mut queue = Queue::default();
        queue.wake("a");
        queue.wake("a");
        assert_eq!(queue.take(Lane::Pass), Some("a"));
        assert_eq!(queue.take(Lane::Pass), None);
        queue.wake("a");
        queue.wake("a");
        assert_eq!(queue.take(Lane::Pass), None);
        queue.done("a", None);
        assert_eq!(queue.take(Lane::Pass), Some("a"));
        queue.done("a", None);
        assert_eq!(queue.take(Lane::Pass), None);
    }

    #[tokio::test(start_paused = true)]
    async fn timers_wake_in_order_and_a_wake_replaces_a_timer() {
        let mut queue = Queue::default();
        let now = Instant::now();
        for (key, after) in [("late", 20), ("early", 10), ("woken", 30)] {
            queue.wake(key);
            queue.take(Lane::Pass);
            queue.done(key, Some(now + Duration::from_secs(after)));
        }
        queue.wake("woken");
        assert_eq!(queue.take(Lane::Pass), Some("woken"));
        queue.done("woken", None);
        assert_eq!(queue.next_due(), Some(now + Duration::from_secs(10)));
        queue.pass_timers(now + Duration::from_secs(25));
        assert_eq!(
            (queue.take(Lane::Pass), queue.take(Lane::Pass), queue.take(Lane::Pass)),
            (Some("early"), Some("late"), None)
        );
        assert_eq!(queue.next_due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn ensuring_leaves_what_is_known_alone() {
        let mut queue = Queue::default();
        queue.ensure("a");
        assert_eq!(queue.take(Lane::Pass), Some("a"));
        queue.ensure("a");
        queue.done("a", Some(Instant::now() + Duration::from_secs(1)));
        queue.ensure("a");
        assert_eq!(queue.take(Lane::Pass), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_waits_for_room_elsewhere_is_not_run_twice() {
        let mut queue = Queue::default();
        queue.wake("a");
        assert_eq!(queue.take(Lane::Pass), Some("a"));
        queue.wake("a");
        queue.moved("a", Lane::Act);
        queue.wake("a");
        assert!(!queue.waits(Lane::Pass) && queue.waits(Lane::Act));
        assert_eq!((queue.take(Lane::Pass), queue.take(Lane::Act)), (None, Some("a")));
        queue.wake("a");
        queue.done("a", None);
        assert_eq!(queue.take(Lane::Pass), Some("a"));
    }
}
