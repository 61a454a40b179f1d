//! Every duration of the lifecycle in one place, with the contract's defaults.

use std::time::Duration;

const fn minutes(n: u64) -> Duration {
    Duration::from_secs(n * 60)
}

/// How long things may take and how often they are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timings {
    /// From boot to the report; also stretches the token's lifetime.
    pub inspection_timeout: Duration,
    /// From the report accepted to the image installed, for an agent that tells no progress.
    pub deployment_timeout: Duration,
    /// How long a deployment that does tell progress may stand still.
    pub stall_timeout: Duration,
    /// The longest any deployment may take, whatever progress it tells.
    pub deployment_cap: Duration,
    /// How much later than the machine the host gives up an inspection by itself.
    pub inspection_slack: Duration,
    /// Lifetime of a boot nonce while `inspection_timeout` is at its default or less.
    pub nonce_lifetime: Duration,
    /// How long after its first fetch the same client gets the same script again.
    pub nonce_retry_window: Duration,
    /// Lifetime of a token while `inspection_timeout` is at its default or less.
    pub token_lifetime: Duration,
    /// A deployment that makes progress has its token renewed when less than this is left of it.
    pub token_renew_below: Duration,
    /// What is left of a token when its run has ended.
    pub token_grace: Duration,
    /// How far into an inspection a host found off is switched on again.
    pub power_recheck_after: Duration,
    /// Between passes over a host that is well.
    pub healthy: Duration,
    /// Between passes over what is where it is to be, and is woken by every change: for what nobody thought of.
    pub settled: Duration,
    /// Between passes over a host whose BMC does not answer.
    pub bmc_unreachable: Duration,
    /// Between passes over a host whose BMC may not be asked.
    pub bmc_unauthorized: Duration,
    /// How long a machine whose host is not booted yet bears with a BMC that answers with faults.
    pub bmc_patience: Duration,
    /// First step of the back-off after a BMC refused the login: BMCs lock accounts after a few of those.
    pub login_backoff_first: Duration,
    /// First step of the back-off after other failures.
    pub backoff_first: Duration,
    /// Last step of that back-off.
    pub backoff_last: Duration,
    /// Between passes over a machine that waits for its host.
    pub machine_poll: Duration,
    /// Between passes over a machine that finds no host.
    pub no_host: Duration,
    /// After a claim succeeded.
    pub claimed: Duration,
    /// After a write conflict, and between steps that must be seen by a fresh read.
    pub soon: Duration,
    /// Between passes over a machine without an owner, or a host with a phase but no report.
    pub incomplete: Duration,
    /// First step of the back-off of checksum-file fetches.
    pub digest_backoff_first: Duration,
    /// Last step of that back-off.
    pub digest_backoff_last: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            inspection_timeout: minutes(10),
            deployment_timeout: minutes(20),
            stall_timeout: minutes(5),
            deployment_cap: minutes(120),
            inspection_slack: minutes(1),
            nonce_lifetime: minutes(10),
            nonce_retry_window: minutes(2),
            token_lifetime: minutes(60),
            token_renew_below: minutes(15),
            token_grace: minutes(5),
            power_recheck_after: minutes(2),
            healthy: minutes(5),
            settled: minutes(60),
            bmc_unreachable: Duration::from_secs(15),
            bmc_unauthorized: minutes(5),
            bmc_patience: minutes(2),
            login_backoff_first: minutes(1),
            backoff_first: Duration::from_secs(5),
            backoff_last: minutes(30),
            machine_poll: Duration::from_secs(30),
            no_host: minutes(1),
            claimed: Duration::from_secs(5),
            soon: Duration::from_secs(1),
            incomplete: Duration::from_secs(10),
            digest_backoff_first: Duration::from_secs(30),
            digest_backoff_last: minutes(5),
        }
    }
}

/// The inspection timeout the plain token lifetime was made for.
const DEFAULT_INSPECTION: Duration = minutes(10);

impl Timings {
    /// Lifetime of a fresh boot nonce: 10 minutes, or all the time inspection may take. A server whose firmware needs
    /// longer than that to ask for its script is what the timeout is raised for.
    pub fn nonce_lifetime(&self) -> Duration {
        self.nonce_lifetime.max(self.inspection_timeout)
    }

    /// Lifetime of a fresh token: 60 minutes, and as much more as inspection may take beyond 10 and the script may be
    /// waited for beyond its time.
    pub fn token_lifetime(&self) -> Duration {
        let waited = self.nonce_lifetime().saturating_sub(self.nonce_lifetime);
        self.token_lifetime + self.inspection_timeout.saturating_sub(DEFAULT_INSPECTION) + waited
    }

    /// How long a token must still live to be kept for another boot.
    pub fn token_must_last(&self) -> Duration {
        self.nonce_lifetime() + self.inspection_timeout
    }

    /// Wait before the next try after this many failures in a row (one or more).
    pub fn backoff(&self, failures: u32) -> Duration {
        doubling(self.backoff_first, self.backoff_last, failures)
    }

    /// Wait before the next try after a login was refused this many times in a row (one or more).
    pub fn login_backoff(&self, failures: u32) -> Duration {
        doubling(self.login_backoff_first, self.backoff_last, failures)
    }

    /// Wait before the next fetch of a checksum file after this many failures in a row.
    pub fn digest_backoff(&self, failures: u32) -> Duration {
        doubling(self.digest_backoff_first, self.digest_backoff_last, failures)
    }
}

fn doubling(first: Duration, last: Duration, failures: u32) -> Duration {
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(20));
    first.saturating_mul(factor).min(last)
}

/// A duration as the contract's messages spell it: `45s`, `10m0s`, `1h0m0s`.
pub fn spoken(duration: Duration) -> String {
    let all = duration.as_secs();
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}
