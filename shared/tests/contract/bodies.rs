//! Bodies of callbacks: reasons made safe, reports taken whatever they lack.

use farrier_shared::contract::callback::{
    ACCEPTED_BODY, Event, EventName, FAILURE_PREFIX, MAX_REASON, UNAUTHORIZED_BODY, sanitise_reason,
};
use farrier_shared::contract::paths::{self, Callback};
use farrier_shared::contract::report::InspectionReport;
use farrier_shared::contract::{BootNonce, HostKey};
use proptest::prelude::*;

#[test]
fn reasons() {
    let table = [
        ("image digest mismatch", "image digest mismatch"),
        ("", "no details provided"),
        ("  \n\t ", "no details provided"),
        ("\u{fffd}\u{0}\u{7}", "no details provided"),
        ("  padded  ", "padded"),
        ("two\nlines\r\n", "twolines"),
        ("esc\u{1b}[31mred", "esc[31mred"),
        ("bidi\u{202e}txt\u{61c}\u{2066}", "biditxt"),
        ("zero\u{200b}width\u{feff}", "zerowidth"),
        ("tag\u{e0041}private\u{e000}", "tagprivate"),
        ("größer ✓", "größer ✓"),
    ];
    for (given, kept) in table {
        assert_eq!(sanitise_reason(given), format!("{FAILURE_PREFIX}{kept}"), "{given:?}");
    }
}

#[test]
fn long_reasons_are_cut_between_characters() {
    let text = format!("{}é", "a".repeat(255));
    assert_eq!(sanitise_reason(&text), format!("{FAILURE_PREFIX}{}", "a".repeat(255)));
    assert_eq!(sanitise_reason(&"a".repeat(300)).len(), FAILURE_PREFIX.len() + MAX_REASON);
}

proptest! {
    #[test]
    fn every_reason_is_short_printable_and_prefixed(text in any::<String>()) {
        let safe = sanitise_reason(&text);
        let rest = safe.strip_prefix(FAILURE_PREFIX).unwrap();
        prop_assert!(!rest.is_empty() && rest.len() <= MAX_REASON);
        let bad = rest.chars().find(|c| c.is_control() || *c == '\u{fffd}');
        prop_assert_eq!(bad, None);
    }

    #[test]
    fn no_body_panics_the_report_reader(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = InspectionReport::from_json(&body);
    }
}

#[test]
fn reports_are_taken_whatever_they_lack() {
    for body in [
        "{}",
        r#" {"unknown":{"deep":[1]},"namespace":"x","hostName":"y"}"#,
        r#"{"cpus":null,"memory":null,"disks":null,"nics":null,"model":null,"manufacturer":null}"#,
        r#"{"cpus":[{}],"memory":[{"capacity":null}],"disks":[{"sizeGB":null}],"nics":[{"ipAddresses":null}]}"#,
    ] {
        assert!(InspectionReport::from_json(body.as_bytes()).is_ok(), "{body}");
    }
    for body in ["", "null", "[]", "7", "{", r#"{"cpus":7}"#, r#"{"cpus":[{"cores":"8"}]}"#, "{} {}"] {
        assert!(InspectionReport::from_json(body.as_bytes()).is_err(), "{body}");
    }
}

#[test]
fn a_report_has_the_contracts_field_names() {
    let golden = include_str!("golden_report.json");
    let report = InspectionReport::from_json(golden.as_bytes()).unwrap();
    assert_eq!(report.cpus[0].cores, 16);
    assert_eq!(report.memory[0].kind, "DDR4");
    assert_eq!(report.disks[0].size_gb, 960);
    assert_eq!(report.nics[0].ip_addresses, ["192.0.2.10"]);
    let again: serde_json::Value = serde_json::to_value(&report).unwrap();
    assert_eq!(again, serde_json::from_str::<serde_json::Value>(golden).unwrap());
}

#[test]
fn event_names_are_the_vocabularys_and_new_ones_are_no_error() {
    let json = r#"{"event":"PXE Booting","bytesPerSecond":7}"#;
    let event: Event = serde_json::from_str(json).unwrap();
    assert_eq!((event.event, event.bytes_per_second), (EventName::PxeBooting, Some(7)));
    let event: Event = serde_json::from_str(r#"{"event":"Made Up Later"}"#).unwrap();
    assert_eq!(event.event, EventName::Unknown);
}

#[test]
fn paths_and_fixed_bodies() {
    let host = HostKey::new("ns".parse().unwrap(), "host".parse().unwrap());
    assert_eq!(Callback::ProvisionFailed.path(&host), "/api/v1/provision-failed/ns/host");
    assert_eq!(Callback::Inspection.route(), "/api/v1/inspection/{ns}/{host}");
    let nonce: BootNonce = "n".repeat(43).parse().unwrap();
    assert_eq!(paths::boot(&host, &nonce), format!("/api/v1/boot/ns/host/{}", "n".repeat(43)));
    assert_eq!(ACCEPTED_BODY, r#"{"status":"accepted"}"#);
    assert_eq!(UNAUTHORIZED_BODY, r#"{"error":"unauthorized"}"#);
}
