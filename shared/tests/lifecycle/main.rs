//! The lifecycle, scenario by scenario. Test names begin with the scenario's number.

#![expect(clippy::unwrap_used, reason = "the bench's own parts are known to be there")]

mod bench;
mod bindings;
mod bmc;
mod boot;
mod callbacks;
mod claim;
mod clock_step;
mod credentials;
mod deadlines;
mod digest_url;
mod hardware;
mod host;
mod machine;
#[path = "../objects/mod.rs"]
mod objects;
mod paused;
mod release;
mod replaced;
mod transitions;
