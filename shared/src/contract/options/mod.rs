//! Values of the `farrier.*` parameters: parsed where an operator gives them and again where the agent honours
//! them, by the same code.

pub mod disk_hints;
pub mod efi_boot;
pub mod grow;

pub use disk_hints::DiskHints;
pub use efi_boot::EfiBoot;
pub use grow::Grow;
