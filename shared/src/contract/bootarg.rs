//! The kernel command line keys both sides know: one table, used to render and to parse.

/// A key on the kernel command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BootArg {
    /// Base URL of the callback listener.
    Api,
    /// Namespace of the host.
    Namespace,
    /// Name of the host.
    Host,
    /// Bearer token.
    Token,
    /// URL of the OS image.
    Target,
    /// Digest of the served bytes of the image.
    TargetDigest,
    /// Provider id.
    ProviderId,
    /// Base64 of the PEM bundle that alone is trusted for callbacks.
    Ca,
    /// Pinned target disk.
    Disk,
    /// Static IPv4 configuration.
    Ip,
    /// Seconds to wait for user-data.
    Timeout,
    /// Keep the console and do not reboot on failure.
    Debug,
    /// The interface the firmware booted from.
    BootIf,
}

impl BootArg {
    /// Every key, in the order the contract renders them; `BOOTIF` is rendered last.
    pub const ALL: [Self; 13] = [
        Self::Api,
        Self::Namespace,
        Self::Host,
        Self::Token,
        Self::Target,
        Self::TargetDigest,
        Self::ProviderId,
        Self::Ca,
        Self::Disk,
        Self::Ip,
        Self::Timeout,
        Self::Debug,
        Self::BootIf,
    ];

    /// The key as written.
    pub fn key(self) -> &'static str {
        match self {
            Self::Api => "beskar7.api",
            Self::Namespace => "beskar7.namespace",
            Self::Host => "beskar7.host",
            Self::Token => "beskar7.token",
            Self::Target => "beskar7.target",
            Self::TargetDigest => "beskar7.target-digest",
            Self::ProviderId => "beskar7.provider-id",
            Self::Ca => "beskar7.ca",
            Self::Disk => "beskar7.disk",
            Self::Ip => "beskar7.ip",
            Self::Timeout => "beskar7.timeout",
            Self::Debug => "beskar7.debug",
            Self::BootIf => "BOOTIF",
        }
    }

    /// Whether a run cannot start without it.
    pub fn required(self) -> bool {
        matches!(
            self,
            Self::Api
                | Self::Namespace
                | Self::Host
                | Self::Token
                | Self::Target
                | Self::TargetDigest
                | Self::ProviderId
                | Self::Ca
        )
    }
}
