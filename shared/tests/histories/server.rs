//! The callback listener over the model, and what attackers do to the store.

use std::net::IpAddr;

use farrier_shared::contract::binding::Binding;
use farrier_shared::contract::callback::{Event as AgentEvent, EventName, sanitise_reason};
use farrier_shared::lifecycle::callback::{self, Reception};
use farrier_shared::lifecycle::{
    BootDecision, CredentialsRead, Progress, Signal, SignalKey, decide_boot, verdict,
};

use crate::event::{Call, Event, Forgery};
use crate::world::{Agent, Stored, World};

impl World {
    pub(crate) fn fetch(&mut self, index: usize, client: IpAddr, old_nonce: Option<usize>) {
        let host = self.hosts[index].clone();
        let Stored::Present(credentials, _) = self.stored(index) else { return };
        let nonce = match old_nonce {
            None => credentials.nonce.expose().to_owned(),
            Some(n) => match self.old_nonces.len().checked_sub(n + 1) {
                Some(at) => self.old_nonces[at].clone(),
                None => return,
            },
        };
        let read = CredentialsRead::Present(&credentials);
        let served = match decide_boot(&host, read, &nonce, client, self.now, &self.timings) {
            BootDecision::Refuse(_) => return,
            BootDecision::Again { credentials } => credentials,
            BootDecision::Consume { bootstrap, credentials } => {
                let version = self.version();
                let stored = &mut self.hosts[index];
                stored.status.bootstrap = Some(*bootstrap);
                stored.metadata.resource_version = version;
                credentials
            }
        };
        if nonce != credentials.nonce.expose() {
            self.violations.push("a script was served for an earlier nonce".to_owned());
        }
        self.agents.push(Agent { host: index, token: served.token.clone(), run: served.run.clone() });
    }

    /// The newest agents are the most interesting: `agent` counts back from the last.
    pub(crate) fn call(&mut self, agent: usize, call: Call, meanwhile: Option<&Event>) {
        let Some(at) = self.agents.len().checked_sub(agent + 1) else { return };
        let (index, token, run) = {
            let agent = &self.agents[at];
            (agent.host, agent.token.clone(), agent.run.clone())
        };
        let waiting = self.signals.get(&index);
        let waits = waiting.is_some_and(|all| all.iter().any(|s| s.key == SignalKey::InspectionResult));
        let host = self.hosts[index].clone();
        let Stored::Present(credentials, _) = self.stored(index) else { return };
        let read = CredentialsRead::Present(&credentials);
        if read.verify_bearer(&host, token.expose(), self.now).is_err() {
            return;
        }
        if credentials.run != run {
            self.violations.push("a token of another run was accepted".to_owned());
        }
        let (key, value, report, reception) = match call {
            Call::Report { cores } => {
                let text = format!(r#"{{"cpus":[{{"cores":{cores}}}]}}"#);
                (
                    SignalKey::InspectionResult,
                    "result".to_owned(),
                    Some(text),
                    callback::inspection(&host, waits),
                )
            }
            Call::Provisioned => {
                (SignalKey::Provisioned, "provisioned".to_owned(), None, callback::provisioned(&host, waits))
            }
            Call::Failed => {
                let reason = sanitise_reason("image digest mismatch");
                (SignalKey::ProvisionFailed, reason, None, callback::provision_failed(&host, waits))
            }
            Call::Progress { bytes } => return self.observe_progress(index, &run, bytes),
        };
        let signal = verdict::sign(&host, &credentials, key, &value, report);
        if let Some(event) = meanwhile {
            self.step(event);
        }
        match reception {
            Reception::Record => {
                self.put_signal(index, &signal);
                match call {
                    Call::Report { .. } => drop(self.reported.insert(run)),
                    Call::Provisioned => {
                        if self.reported.contains(&run) {
                            self.owed.insert(run.clone());
                        }
                        self.provisioned.insert(run);
                    }
                    _ => {}
                }
            }
            Reception::Clear => self.signals.entry(index).or_default().retain(|s| s.key != key),
            Reception::Ignore => {}
        }
    }

    fn observe_progress(&mut self, index: usize, run: &str, bytes: u32) {
        let event = AgentEvent {
            event: EventName::Installing,
            message: String::new(),
            run: Some(run.to_owned()),
            step: Some("write".to_owned()),
            bytes: Some(bytes.into()),
            total: None,
            bytes_per_second: None,
        };
        let new = Progress::observe(self.progress.get(&index), run, &event, self.now);
        self.progress.insert(index, new);
    }

    pub(crate) fn forge(&mut self, index: usize, kind: Forgery) {
        let values = [
            (SignalKey::InspectionRequest, "inspect"),
            (SignalKey::InspectionRequest, "inspect-complete"),
            (SignalKey::InspectionRequest, "timeout"),
            (SignalKey::InspectionResult, "result"),
            (SignalKey::Provisioned, "provisioned"),
            (SignalKey::ProvisionFailed, "forged"),
        ];
        let signal = match kind {
            Forgery::Unsigned(n) => {
                let (key, value) = values[n % values.len()];
                Signal { key, value: value.to_owned(), binding: None, report: None }
            }
            // A true binding, put under another value or another key.
            Forgery::WrongValue | Forgery::WrongKey => {
                let old = self.seen_signals.last().and_then(|s| s.binding.clone());
                let binding = old.or_else(|| Some(Binding::from_stored("0".repeat(64))));
                let (key, value) = match kind {
                    Forgery::WrongKey => (SignalKey::Provisioned, "provisioned"),
                    _ => (SignalKey::InspectionRequest, "inspect-complete "),
                };
                if self.seen_signals.last().is_some_and(|s| s.key == key && s.value == value) {
                    return;
                }
                Signal { key, value: value.to_owned(), binding, report: None }
            }
        };
        // What an attacker overwrites is lost; so only forge where nothing waits.
        let waiting = self.signals.entry(index).or_default();
        if waiting.iter().all(|s| s.key != signal.key) {
            waiting.push(signal);
        }
    }

    pub(crate) fn replay(&mut self, index: usize, signal: usize) {
        let Some(at) = self.seen_signals.len().checked_sub(signal + 1) else { return };
        let old = self.seen_signals[at].clone();
        let waiting = self.signals.entry(index).or_default();
        if waiting.iter().all(|s| s.key != old.key) {
            waiting.push(old);
        }
    }
}
