//! URL paths of the callback listener (contract section 2), and Farrier's additive ones.

use super::name::HostKey;
use super::secret::BootNonce;

/// What an agent may call, each with its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callback {
    /// `POST`: the inspection report.
    Inspection,
    /// `GET`: the machine's user-data.
    Bootstrap,
    /// `POST`: the image is written and verified.
    Provisioned,
    /// `POST`: the run failed.
    ProvisionFailed,
    /// `POST`: progress; Farrier's own.
    Events,
    /// `POST`: bounded log bundle; Farrier's own.
    Logs,
}

impl Callback {
    /// The path segment after `/api/v1/`.
    pub fn segment(self) -> &'static str {
        match self {
            Self::Inspection => "inspection",
            Self::Bootstrap => "bootstrap",
            Self::Provisioned => "provisioned",
            Self::ProvisionFailed => "provision-failed",
            Self::Events => "events",
            Self::Logs => "logs",
        }
    }

    /// The whole path for one host.
    pub fn path(self, host: &HostKey) -> String {
        format!("/api/v1/{}/{}/{}", self.segment(), host.namespace, host.name)
    }

    /// The route pattern, with `{ns}` and `{host}`.
    pub fn route(self) -> String {
        format!("/api/v1/{}/{{ns}}/{{host}}", self.segment())
    }
}

/// Route pattern of the per-host boot script.
pub const BOOT_ROUTE: &str = "/api/v1/boot/{ns}/{host}/{nonce}";
/// Route pattern of the first stage by MAC; Farrier's own.
pub const FIRST_STAGE_ROUTE: &str = "/ipxe/{mac}";
/// Liveness.
pub const HEALTH_ROUTE: &str = "/healthz";

/// Path of a host's boot script. Carries the nonce: never log it.
pub fn boot(host: &HostKey, nonce: &BootNonce) -> String {
    format!("/api/v1/boot/{}/{}/{}", host.namespace, host.name, nonce.expose())
}
