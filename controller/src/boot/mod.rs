//! `/boot` and `/ipxe`: what firmware fetches before there is an agent.

mod client;
mod first_stage;
mod rate;
mod render;
mod script;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use farrier_shared::contract::WebUrl;
use farrier_shared::contract::paths::{BOOT_ROUTE, FIRST_STAGE_ROUTE};
use farrier_shared::lifecycle::Timings;

pub use client::{TrustedProxies, TrustedProxyError};
pub use rate::RateLimit;
pub(crate) use render::Firmware;
pub use render::{Renderer, TooLong, Unrendered};

use crate::clock::SharedClock;
use crate::store::Store;
use crate::tls::ServingIdentity;

/// Where the CA bundle of a boot script comes from.
pub trait CaBundle: Send + Sync + 'static {
    /// The PEM bundle as it is now, or why there is none.
    ///
    /// # Errors
    /// For the log; the client is answered as for every other cause.
    fn pem(&self) -> Result<Vec<u8>, String>;
}

impl CaBundle for ServingIdentity {
    fn pem(&self) -> Result<Vec<u8>, String> {
        self.ca_bundle().map_err(|e| e.to_string())
    }
}

/// A bundle that never changes.
impl CaBundle for Vec<u8> {
    fn pem(&self) -> Result<Vec<u8>, String> {
        Ok(self.clone())
    }
}

/// What the handlers share.
#[derive(Clone)]
pub struct Boot {
    /// Hosts, machines, credentials.
    pub store: Store,
    /// The time.
    pub clock: SharedClock,
    /// Lifetimes.
    pub timings: Arc<Timings>,
    /// Makes the scripts.
    pub scripts: Arc<Renderer>,
    /// Whose `X-Forwarded-For` counts.
    pub proxies: Arc<TrustedProxies>,
    /// Requests per client address.
    pub rate: Arc<RateLimit>,
}

impl std::fmt::Debug for Boot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Boot").field("scripts", &self.scripts).finish_non_exhaustive()
    }
}

/// The two routes. `reached_at` is the base URL of the listener they are served on: the first stage chains to
/// a script on the same one.
pub fn router(boot: Boot, reached_at: WebUrl) -> Router {
    Router::new()
        .route(BOOT_ROUTE, get(script::serve))
        .with_state(boot.clone())
        .merge(Router::new().route(FIRST_STAGE_ROUTE, get(first_stage::serve)).with_state((boot, reached_at)))
}
