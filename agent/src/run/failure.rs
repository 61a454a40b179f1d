//! What a run ends with when no system was installed.

use crate::deploy::DeployError;

/// A run that ended without an installed system.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{step}: {cause}")]
pub struct Failure {
    /// What was being done.
    pub step: &'static str,
    /// Why it failed; no secrets.
    pub cause: String,
    /// Whether a system may come up all the same: the disk could not be made unbootable, or nobody knows.
    pub may_boot: bool,
}

impl Failure {
    pub(super) fn new(step: &'static str, cause: &(impl ToString + ?Sized)) -> Self {
        Self { step, cause: cause.to_string(), may_boot: false }
    }

    /// A closure for `map_err`.
    pub(super) fn at<E: ToString>(step: &'static str) -> impl FnOnce(E) -> Self {
        move |cause| Self::new(step, &cause)
    }

    /// A write that failed. A disk that was begun is unbootable after it, unless the error says that it is not.
    pub(super) fn of_deploy(error: &DeployError) -> Self {
        let may_boot = matches!(error, DeployError::NotWiped { .. });
        Self { may_boot, ..Self::new("deploy", &error.reason()) }
    }

    /// A run that hung, was stopped or met a fault in the agent: whether its disk was wiped after it is not known here.
    pub(super) fn left_behind(step: &'static str, cause: &str) -> Self {
        Self { may_boot: true, ..Self::new(step, cause) }
    }
}
