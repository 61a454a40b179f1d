//! What agents, or whoever has a token, may send.

use farrier_shared::contract::callback::{Event, ProvisionFailed, sanitise_reason};
use farrier_shared::contract::report::InspectionReport;
use farrier_shared::contract::{BootNonce, Time, Token};
use farrier_shared::lifecycle::{Credentials, hardware};
use farrier_shared::resource::machine::HardwareRequirements;

use super::events;

/// An inspection report: what is stored of it is read back as the same.
pub fn report(bytes: &[u8]) {
    let Ok(report) = InspectionReport::from_json(bytes) else { return };
    let wanted =
        HardwareRequirements { min_cpu_cores: Some(1), min_memory_gb: Some(1), min_disk_gb: Some(1) };
    let _ = hardware::check(&report, &wanted);
    let stored = serde_json::to_vec(&report).expect("a report is written as JSON");
    let again = InspectionReport::from_json(&stored).expect("what is stored can be read");
    // The last digit of a fraction is no fact, and only additive facts may hold fractions.
    let contract = |report| InspectionReport { farrier: None, ..report };
    assert_eq!(contract(again), contract(report));
}

/// A failure or an event.
pub fn callback(bytes: &[u8]) {
    let told: ProvisionFailed = serde_json::from_slice(bytes).unwrap_or_default();
    for reason in [&*told.reason, &String::from_utf8_lossy(bytes)] {
        let kept = sanitise_reason(reason);
        assert!(kept.len() <= 300 && !kept.contains(char::is_control));
        assert!(!kept.ends_with(": "), "a reason is never empty");
    }
    let Ok(event) = serde_json::from_slice::<Event>(bytes) else { return };
    let Some(event) = events::of_this_run(event, &credentials()) else { return };
    for text in [Some(&event.message), event.step.as_ref(), event.run.as_ref()].into_iter().flatten() {
        assert!(text.chars().count() <= 256 && !text.contains(char::is_control));
    }
}

fn credentials() -> Credentials {
    let at = Time::from_unix(0);
    Credentials {
        host_uid: "host".to_owned(),
        consumer: "machine".to_owned(),
        consumer_uid: "uid".to_owned(),
        run: "run-1".to_owned(),
        token: Token::from_random([0; 32]),
        token_issued_at: at,
        token_expires_at: at,
        nonce: BootNonce::from_random([0; 32]),
        nonce_expires_at: at,
    }
}
