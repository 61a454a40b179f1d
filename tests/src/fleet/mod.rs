//! A fleet without hardware: BMCs, firmware and agents of many servers, against a real controller process.
//!
//! What the controller meets is real: Redfish over TCP, one address for each BMC; boot scripts fetched as iPXE
//! fetches them; the agent's own callback client over HTTPS, with its retries. Only what is behind them is
//! played: a power switch, and a disk that takes no bytes. Everything stays on loopback.

mod admin;
mod agent;
mod bench;
mod bmc;
mod chance;
mod firmware;
mod ledger;
mod objects;
mod room;
mod secure;
mod serve;

pub use agent::{Behaviour, Pace};
pub use bench::{Measured, measure, table};
pub use chance::Chance;
pub use ledger::{Entry, Ledger, What};
pub use room::{Plan, Room};
pub use serve::{Cost, Serve};

use std::net::Ipv4Addr;

/// Namespace of everything in a fleet.
pub const NAMESPACE: &str = "default";

/// Name of the server with this number, and of its machine.
pub fn name(number: usize) -> String {
    format!("h{number:05}")
}

/// The loopback address of a server: its BMC's, and its own when it boots.
fn address(number: usize) -> Ipv4Addr {
    let first = u32::from(Ipv4Addr::new(127, 64, 0, 1));
    Ipv4Addr::from(first + u32::try_from(number).unwrap_or(0))
}

/// The address of the card it boots from.
fn mac(number: usize) -> String {
    let [_, b, c, d] = u32::try_from(number).unwrap_or(0).to_be_bytes();
    format!("02:fa:00:{b:02x}:{c:02x}:{d:02x}")
}
