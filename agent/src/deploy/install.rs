//! install
use std::sync::Arc;
use farrier_shared::contract::{Digest, WebUrl};
use super::{DeployError, ImageClient, Progress};
use crate::disk::Target;
use crate::seed::Seed;

/// Whether the medium is read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Images of at most 8 GiB decoded.
    #[default]
    Auto,
    /// Always (`farrier.verify=readback`).
    ReadBack,
    /// Never (`farrier.verify=off`).
    Off,
}

/// What to install.
pub struct Order {
    /// Where the image is.
    pub image: WebUrl,
    /// Digest of the served bytes.
    pub digest: Digest,
    /// Digest of the decoded bytes, when the operator gave one (`farrier.content-digest`).
    pub content_digest: Option<Digest>,
    /// Reading back.
    pub verify: Verify,
}

/// What was installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes served.
    pub served: u64,
    /// Bytes of the disk image.
    pub written: u64,
    /// Whether the medium was read back.
    pub read_back: bool,
}

/// Installs the image on the target and plants the seed. On any failure after the first write the disk is left
/// unbootable. Blocking work runs on threads of its own.
pub async fn install(
    client: &ImageClient, order: &Order, target: Arc<dyn Target>, seed: Arc<dyn Seed>, progress: Arc<Progress>,
) -> Result<Outcome, DeployError> { todo!() }
