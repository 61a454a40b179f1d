//! Values of the `farrier.*` parameters: parsed where an operator gives them and again where the agent honours
//! them, by the same code.

pub mod bond;
pub mod disk_hints;
pub mod efi_boot;
pub mod grow;
pub mod ip6;
pub mod mtu;
pub mod ntp;
pub mod vlan;

pub use bond::{Bond, BondMode};
pub use disk_hints::DiskHints;
pub use efi_boot::EfiBoot;
pub use grow::Grow;
pub use ip6::{Ip6, StaticIp6};
pub use mtu::Mtu;
pub use ntp::{NtpServer, NtpServers};
pub use vlan::VlanId;
