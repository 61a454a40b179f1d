//! What becomes of recorded times when the machine's clock is set.
//!
//! Deadlines and expiries are times of day, since they must survive a restart. Once the clock is set, those that it
//! told before are as wrong as it was: left alone, a step forward would end every run at once, and a step back would
//! keep one alive for as long as the step was. They move along with the clock.

use super::credentials::Credentials;
use super::deadline::Progress;
use super::reasons;
use crate::contract::time::Time;
use crate::resource::host::PhysicalHostStatus;

/// The clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// The first instant this process's clock told. What is older was told by another, which may have been right.
    pub since: Time,
    /// The last instant it told before it was set. What is later was told by another as well.
    pub before: Time,
    /// Seconds it was set forward; negative when it was set back.
    pub seconds: i64,
}

impl ClockStep {
    /// The same instant by the clock as it is now, if it was told by the clock as it was.
    fn moved(self, time: Time) -> Time {
        if self.since <= time && time <= self.before { self.along(time) } else { time }
    }

    fn along(self, time: Time) -> Time {
        Time::from_unix(time.unix().saturating_add(self.seconds))
    }

    /// Moves what the deadlines of a host's run and the repeat of its boot script go by.
    pub fn apply_to_host(self, status: &mut PhysicalHostStatus) {
        let consumed = status.bootstrap.as_mut().and_then(|b| b.boot_nonce_consumed_at.as_mut());
        let times = [
            status.inspection_timestamp.as_mut(),
            status.deploying_timestamp.as_mut(),
            status.bmc_fault_since.as_mut(),
            consumed,
        ];
        let conditions = status.conditions.iter_mut().filter(|c| {
            [reasons::HOST_INSPECTED, reasons::REDFISH_CONNECTION_READY].contains(&c.kind.as_str())
        });
        for time in times.into_iter().flatten().chain(conditions.map(|c| &mut c.last_transition_time)) {
            *time = self.moved(*time);
        }
    }

    /// The credentials with their ends moved, or nothing when they were minted by another clock. What has ended stays
    /// ended.
    pub fn apply_to_credentials(self, credentials: &Credentials) -> Option<Credentials> {
        let issued = self.moved(credentials.token_issued_at);
        let end = |end: Time| if end > self.before { self.along(end) } else { end.min(self.along(end)) };
        (issued != credentials.token_issued_at).then(|| Credentials {
            token_issued_at: issued,
            token_expires_at: end(credentials.token_expires_at),
            nonce_expires_at: end(credentials.nonce_expires_at),
            ..credentials.clone()
        })
    }

    /// Moves when a run last advanced; only this process knows of that.
    pub fn apply_to_progress(self, progress: &mut Progress) {
        progress.advanced_at = self.along(progress.advanced_at);
    }
}
