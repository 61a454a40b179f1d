//! A BMC for a virtual server: a Redfish service whose power button is a QEMU process.

mod machine;
mod power;
mod service;
mod shapes;

pub use machine::{Boot, Cause, Engine, Machine, PowerState};
pub use service::{Bmc, Login};
