//! fetch
use std::sync::Arc;
use farrier_shared::contract::WebUrl;
use super::DeployError;
/// What can be told of an image from its first bytes, before anything is destroyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFacts {
    /// Bytes the server will send, when it says.
    pub served: Option<u64>,
    /// Bytes a disk needs at least, as far as known: pass it to [`crate::disk::choose`].
    pub required: u64,
}
/// Fetches images; trusts no server, since the digest is the anchor.
#[derive(Clone, Debug)]
pub struct ImageClient {}
impl ImageClient {
    /// A client on the lease's resolver.
    pub fn new(resolver: Arc<dyn reqwest::dns::Resolve>) -> Result<Self, DeployError> { todo!() }
    /// Looks at the head of the image: format, size, partition table.
    pub async fn peek(&self, url: &WebUrl) -> Result<ImageFacts, DeployError> { todo!() }
}
