//! The wire contract: every type both sides speak is defined here, once.
//!
//! Each is a newtype that cannot hold an invalid value; parsing is the only way in. Section numbers in the
//! docs are those of the Beskar7 contract, version 4.2.

pub mod binding;
pub mod bootarg;
pub mod callback;
pub mod capacity;
pub mod cmdline;
pub mod cut_line;
pub mod digest;
pub mod disk_pin;
pub mod mac;
pub mod name;
pub mod options;
pub mod paths;
pub mod provider_id;
pub mod report;
pub mod secret;
pub mod static_ip;
pub mod time;
pub mod web_url;

pub use binding::Binding;
pub use digest::Digest;
pub use disk_pin::DiskPin;
pub use mac::MacAddress;
pub use name::{HostKey, Name};
pub use provider_id::ProviderId;
pub use report::InspectionReport;
pub use secret::{BootNonce, Token};
pub use static_ip::StaticIp;
pub use time::Time;
pub use web_url::WebUrl;
