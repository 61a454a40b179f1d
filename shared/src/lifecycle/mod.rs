//! The host and machine lifecycles as pure functions over plain data.
//!
//! `(object, credentials, signals, observations, now) → decision`, where a decision is the next status plus a
//! list of effects. Nothing here awaits, locks, logs or reads a clock.

pub mod boot;
pub mod boot_plan;
pub mod callback;
pub mod claim;
pub mod clock_step;
pub mod credentials;
pub mod deadline;
pub mod digest_url;
pub mod failure;
pub mod fault;
pub mod hardware;
pub mod history;
pub mod host;
mod host_pass;
mod host_signals;
pub mod host_table;
pub mod host_view;
mod host_watch;
pub mod machine;
mod machine_claim;
mod machine_release;
mod machine_run;
mod machine_status;
pub mod mint;
pub mod reasons;
pub mod selector;
pub mod signal;
pub mod timing;
pub mod verdict;

pub use boot::{BootDecision, decide_boot};
pub use boot_plan::{BootPlan, InspectRequest};
pub use clock_step::ClockStep;
pub use credentials::{Credentials, CredentialsRead};
pub use deadline::{Clock, Progress};
pub use fault::{BmcFacts, BmcObservation, PowerState};
pub use history::HistoryEntry;
pub use host::{ConsumerRead, HostDecision, HostEffect, HostFacts, decide_host};
pub use machine::{
    BootstrapRead, DigestRead, MachineDecision, MachineEffect, MachineFacts, OwnerRead, PowerAction,
    decide_machine,
};
pub use signal::{Signal, SignalKey};
pub use timing::Timings;
pub use verdict::Verdict;
