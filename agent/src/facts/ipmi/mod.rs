//! The management controller's own addresses, asked of it by IPMI from the host's side.
//!
//! It is asked while the run goes on, in a thread of its own: a controller that hangs holds up nobody, and the report
//! has what was said until then. Without controller, driver or answer the report lacks the field.

mod device;
mod lan;
mod message;

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use farrier_shared::contract::InspectionReport;
use serde_json::{Value, json};

use device::Device;
use lan::Channel;

/// The first controller's device; machines with a second one are not known.
const DEVICE: &str = "dev/ipmi0";
/// How long the report waits for what has not been said yet.
const WAIT: Duration = Duration::from_secs(4);

/// A question that has been put.
#[derive(Debug)]
pub struct Question {
    said: Receiver<Channel>,
}

impl Question {
    /// Asks the controller whose device is below `root`, after `prepare`, which may load drivers and take its time.
    pub fn ask(root: &Path, prepare: impl FnOnce() + Send + 'static) -> Self {
        let path = root.join(DEVICE);
        let (tell, said) = channel();
        let asking = thread::Builder::new().name("bmc".to_owned()).spawn(move || {
            prepare();
            let mut device = match Device::open(&path) {
                Ok(device) => device,
                Err(error) => {
                    tracing::debug!(device = %path.display(), %error, "no BMC to ask");
                    return;
                }
            };
            // Nobody listens any more once the report is on its way.
            let heard = lan::channels(&mut device, |channel| drop(tell.send(channel)));
            if let Err(error) = heard {
                tracing::info!(device = %path.display(), "the BMC does not answer: {error}");
            }
        });
        if let Err(error) = asking {
            tracing::debug!(%error, "the BMC is not asked");
        }
        Self { said }
    }

    /// Adds what has been said to the additive facts of a report, and waits a moment for the rest. May block for
    /// some seconds.
    pub fn add_to(self, report: &mut InspectionReport) {
        add(&self.within(WAIT), report);
    }

    fn within(self, wait: Duration) -> Vec<Channel> {
        let until = Instant::now() + wait;
        let mut all = Vec::new();
        loop {
            match self.said.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(channel) => all.push(channel),
                Err(RecvTimeoutError::Disconnected) => return all,
                Err(RecvTimeoutError::Timeout) => {
                    tracing::info!("the BMC is slow to answer: the report goes without");
                    return all;
                }
            }
        }
    }
}

fn add(channels: &[Channel], report: &mut InspectionReport) {
    if channels.is_empty() {
        return;
    }
    let Some(facts) = report.farrier.as_mut().and_then(Value::as_object_mut) else { return };
    let bmc = facts.entry("bmc").or_insert(Value::Null);
    if bmc.is_null() {
        // SMBIOS knows of none.
        *bmc = json!({});
    }
    if let Some(bmc) = bmc.as_object_mut() {
        bmc.insert("lan".to_owned(), json!(channels));
    }
}

/// A controller that answers each request with the next of these responses, told apart by the length before each;
/// it falls silent after the last.
#[cfg(any(test, fuzzing))]
pub(super) mod scripted {
    use std::time::Duration;

    use super::lan::{self, Channel, Transport, TransportError};
    use super::message::Request;

    struct Scripted<'a>(&'a [u8]);

    impl Transport for Scripted<'_> {
        fn exchange(&mut self, request: &Request) -> Result<Vec<u8>, TransportError> {
            let said =
                self.0.split_first().map(|(length, rest)| rest.split_at(rest.len().min((*length).into())));
            let Some((response, rest)) = said else {
                let (netfn, command) = (request.netfn, request.command);
                return Err(TransportError::Silent { netfn, command, waited: Duration::ZERO });
            };
            self.0 = rest;
            Ok(response.to_vec())
        }
    }

    /// What is understood of these responses.
    pub(in crate::facts) fn channels(responses: &[u8]) -> Vec<Channel> {
        let mut all = Vec::new();
        // Silence at the end of the script is no fault.
        let _ = lan::channels(&mut Scripted(responses), |channel| all.push(channel));
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report(bmc: &Value) -> InspectionReport {
        InspectionReport { farrier: Some(json!({ "bmc": bmc })), ..InspectionReport::default() }
    }

    fn said() -> Vec<Channel> {
        vec![Channel { channel: 1, address: "10.0.9.7".parse().ok(), ..Channel::default() }]
    }

    #[test]
    fn the_addresses_stand_beside_what_smbios_knows() {
        let lan = json!([{"channel": 1, "address": "10.0.9.7"}]);
        for (before, after) in [
            (json!({"ipmiInterface": "KCS"}), json!({"ipmiInterface": "KCS", "lan": lan})),
            (Value::Null, json!({ "lan": lan })),
        ] {
            let mut report = report(&before);
            add(&said(), &mut report);
            assert_eq!(report.farrier.unwrap()["bmc"], after);
        }
        add(&said(), &mut InspectionReport::default());
    }

    #[test]
    fn a_machine_without_controller_has_a_report_without_the_field() {
        let root = tempfile::tempdir().unwrap();
        let mut report = report(&Value::Null);
        Question::ask(root.path(), || ()).add_to(&mut report);
        assert_eq!(report.farrier.unwrap(), json!({"bmc": null}));
    }

    #[test]
    fn what_is_no_controller_is_not_asked_for_long() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("dev")).unwrap();
        std::fs::write(root.path().join(DEVICE), "no device").unwrap();
        let mut report = report(&Value::Null);
        Question::ask(root.path(), || ()).add_to(&mut report);
        assert_eq!(report.farrier.unwrap(), json!({"bmc": null}));
    }

    #[test]
    fn a_driver_that_hangs_does_not_hold_up_the_report() {
        let root = tempfile::tempdir().unwrap();
        let (hang, hung) = channel::<()>();
        let question = Question::ask(root.path(), move || {
            let _ = hung.recv();
        });
        assert_eq!(question.within(Duration::from_millis(20)), []);
        drop(hang);
    }

    #[test]
    fn what_was_said_before_the_silence_is_told() {
        let (tell, said_so_far) = channel();
        tell.send(said().remove(0)).unwrap();
        let question = Question { said: said_so_far };
        assert_eq!(question.within(Duration::from_millis(20)), said());
        drop(tell);
    }

    proptest! {
        #[test]
        fn whatever_a_controller_says_only_what_can_be_is_told(
            responses in prop::collection::vec(prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..24), 0..60),
        ) {
            let script: Vec<u8> =
                responses.iter().flat_map(|r| [&[u8::try_from(r.len()).unwrap()][..], r].concat()).collect();
            crate::facts::fuzzing::ipmi(&script);
        }
    }
}
