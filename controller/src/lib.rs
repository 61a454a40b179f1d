//! The farrier command: the controller that owns every host's lifecycle, and its command line.

pub mod clock;
pub mod progress;
pub mod store;
pub mod tls;
