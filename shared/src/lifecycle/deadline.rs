//! Deadlines of a run: when a host gives up by itself.
//!
//! A deployment whose agent tells no progress gets the contract's fixed time. One that does tell progress may
//! go on as long as it keeps moving, up to a hard cap, and is given up early once it stands still.

use super::failure;
use super::timing::Timings;
use crate::contract::callback::Event;
use crate::contract::time::Time;
use crate::resource::PhysicalHost;

/// How far a run is, folded from the agent's events. An observation: it moves a deadline, never a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The run the events belong to.
    pub run: String,
    /// Step under way, empty when the agent names none.
    pub step: String,
    /// Bytes of that step done.
    pub bytes: u64,
    /// When the step or its bytes last moved.
    pub advanced_at: Time,
}

impl Progress {
    /// The progress after `event` of `run`. A heartbeat that repeats the same step and bytes advances nothing.
    pub fn observe(previous: Option<&Self>, run: &str, event: &Event, now: Time) -> Self {
        let step = event.step.clone().unwrap_or_default();
        let bytes = event.bytes.unwrap_or(0);
        let advanced_at = match previous {
            // Never later than now, or a clock that was set back would keep a stalled run alive.
            Some(p) if p.run == run && p.step == step && bytes <= p.bytes => p.advanced_at.min(now),
            _ => now,
        };
        Self { run: run.to_owned(), step, bytes, advanced_at }
    }
}

/// What deadlines depend on beyond the host itself.
#[derive(Clone, Copy, Debug)]
pub struct Clock<'a> {
    /// Now.
    pub now: Time,
    /// Since when this controller has been taking callbacks, and acting on the host, without a break: before, it did
    /// not run, or the operator had paused the host or its machine. Reports that could not be delivered or acted on
    /// then get one `stall_timeout` to arrive.
    pub listening_since: Time,
    /// The run's progress, when its agent tells any.
    pub progress: Option<&'a Progress>,
    /// All durations.
    pub timings: &'a Timings,
}

/// A deadline: when it ends, and what is said when it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The first instant at which it has passed.
    pub ends: Time,
    /// Why the run failed, once it has passed.
    pub message: String,
}

impl Deadline {
    /// Whether it has passed.
    pub fn passed(&self, now: Time) -> bool {
        now >= self.ends
    }
}

impl Clock<'_> {
    fn grace(&self) -> Time {
        self.listening_since + self.timings.stall_timeout
    }

    /// Whether a time is to come, so that it was told by a clock that ran ahead and was set back since.
    pub(super) fn ran_ahead(&self, time: Time) -> bool {
        time > self.now
    }

    /// The deadline of a deployment that began at `began`.
    pub fn deployment(&self, host: &PhysicalHost, began: Time) -> Deadline {
        let timings = self.timings;
        let cap = began + timings.deployment_cap;
        let own = self.progress.filter(|p| host.status.run.as_ref() == Some(&p.run));
        let soft = match own {
            Some(progress) => Deadline {
                ends: (progress.advanced_at.min(self.now) + timings.stall_timeout)
                    .max(began + timings.stall_timeout),
                message: failure::deployment_stalled(&progress.step, timings.stall_timeout),
            },
            None => Deadline {
                ends: began + timings.deployment_timeout,
                message: failure::deployment_timed_out(timings.deployment_timeout),
            },
        };
        let soft = Deadline { ends: soft.ends.max(self.grace()), ..soft };
        // Without progress the fixed time rules, even where an operator set it beyond the cap.
        if own.is_some() && cap < soft.ends {
            Deadline { ends: cap, message: failure::deployment_timed_out(timings.deployment_cap) }
        } else {
            soft
        }
    }

    /// When the machine gives up an inspection that began at `began`.
    pub fn inspection(&self, began: Time) -> Time {
        (began + self.timings.inspection_timeout).max(self.grace())
    }

    /// When the host gives up by itself: a little later than the machine, which has the better reason.
    pub fn inspection_by_host(&self, began: Time) -> Deadline {
        Deadline {
            ends: self.inspection(began) + self.timings.inspection_slack,
            message: failure::INSPECTION_TIMED_OUT.to_owned(),
        }
    }

    /// When the host gives up waiting for a decision on the report taken at `reported`.
    pub fn decision(&self, reported: Time) -> Deadline {
        let limit = self.timings.inspection_timeout;
        Deadline { ends: (reported + limit).max(self.grace()), message: failure::undecided(limit) }
    }
}
