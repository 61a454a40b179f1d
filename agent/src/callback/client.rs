//! The calls.
use std::sync::Arc;
use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::callback::Event;
use farrier_shared::contract::InspectionReport;
use reqwest::dns::Resolve;
use zeroize::Zeroizing;
use super::{CallbackError, Policy};

/// The machine's user-data; zeroized on drop.
pub type UserData = Zeroizing<Vec<u8>>;

/// Client of one controller for one run.
#[derive(Debug)]
pub struct Client {}

impl Client {
    /// A client for the controller of these parameters.
    pub fn new(params: &BootParams, resolver: Arc<dyn Resolve>, policy: Policy) -> Result<Self, CallbackError> { todo!() }
    /// Sends the report.
    pub async fn report(&self, report: &InspectionReport) -> Result<(), CallbackError> { todo!() }
    /// Polls for the user-data until it is there or the command line's timeout has passed.
    pub async fn bootstrap(&self) -> Result<UserData, CallbackError> { todo!() }
    /// Sends one event; `false` once the controller has said it knows no events. Never retried.
    pub async fn event(&self, event: &Event) -> Result<bool, CallbackError> { todo!() }
    /// Reports success, patiently.
    pub async fn provisioned(&self) -> Result<(), CallbackError> { todo!() }
    /// Reports failure; `false` when the controller does not know the call.
    pub async fn provision_failed(&self, reason: &str) -> Result<bool, CallbackError> { todo!() }
    /// Sends the end of the log, at most 1 MiB; `false` when the controller does not know the call.
    pub async fn logs(&self, text: &[u8]) -> Result<bool, CallbackError> { todo!() }
}
