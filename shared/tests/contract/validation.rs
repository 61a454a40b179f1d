//! Objects as operators write them: taken from JSON, checked across fields, refused with the field's path.

use farrier_shared::resource::host::BootMode;
use farrier_shared::resource::{Beskar7Machine, HostState, PhysicalHost, Secret};
use serde_json::{Value, json};

fn host() -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "PhysicalHost",
        "metadata": {"name": "host-01"},
        "spec": {
            "redfishConnection": {"address": "https://bmc.example", "credentialsSecretRef": "bmc"},
            "bootMACAddresses": ["52:54:00:12:34:56"]
        }
    })
}

fn machine() -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Beskar7Machine",
        "metadata": {"name": "machine-01"},
        "spec": {
            "inspectionImageURL": "http://images.example/inspection",
            "targetImageURL": "http://images.example/os.raw",
            "targetImageDigest": format!("sha256:{}", "0".repeat(64))
        }
    })
}

fn with(mut object: Value, path: &str, value: Value) -> Value {
    match value {
        Value::Null => {
            let (parent, key) = path.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
        }
        value => {
            let (parent, key) = path.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[key] = value;
        }
    }
    object
}

fn check_host(object: Value) -> Result<(), String> {
    serde_json::from_value::<PhysicalHost>(object).unwrap().validate().map_err(|e| e.field)
}

fn check_machine(object: Value) -> Result<(), String> {
    serde_json::from_value::<Beskar7Machine>(object).unwrap().validate().map_err(|e| e.field)
}

#[test]
fn hosts() {
    assert_eq!(check_host(host()), Ok(()));
    let address = "/spec/redfishConnection/address";
    let at = "spec.redfishConnection.address";
    let macs = |list: &[&str]| with(host(), "/spec/bootMACAddresses", json!(list));
    let table = [
        (with(host(), "/apiVersion", json!("v1")), "apiVersion"),
        (with(host(), "/kind", json!("Host")), "kind"),
        (with(host(), address, json!("https://user:pw@bmc.example")), at),
        (with(host(), address, json!("https://user@bmc.example")), at),
        (with(host(), address, json!("https://bmc.example/?q")), at),
        (with(host(), address, json!("https://bmc.example/#f")), at),
        (macs(&["52:54:00:12:34:56", "52:54:00:12:34:56"]), "spec.bootMACAddresses[1]"),
        (macs(&["01:00:5e:00:00:01"]), "spec.bootMACAddresses[0]"),
        (with(host(), "/spec/consumerRef", json!({"kind": "Beskar7Machine"})), "spec.consumerRef"),
        (with(host(), "/spec/consumerRef", json!({"kind": "Machine", "name": "m"})), "spec.consumerRef"),
    ];
    for (object, field) in table {
        assert_eq!(check_host(object), Err(field.to_owned()));
    }
}

#[test]
fn s159_machines() {
    assert_eq!(check_machine(machine()), Ok(()));
    let url = |text: &str| {
        let none = with(machine(), "/spec/targetImageDigest", Value::Null);
        with(none, "/spec/targetImageDigestURL", json!(text))
    };
    assert_eq!(check_machine(url("https://images.example/SHA256SUMS")), Ok(()));
    let minimum = |key: &str, n: i32| with(machine(), "/spec/hardwareRequirements", json!({key: n}));
    assert_eq!(check_machine(minimum("minDiskGB", 1)), Ok(()));
    let long = format!("https://images.example/{}", "a".repeat(2048));
    let both = with(machine(), "/spec/targetImageDigestURL", json!("https://images.example/S"));
    let no_key = json!({"matchExpressions": [{"key": "", "operator": "Exists"}]});
    let table = [
        (with(machine(), "/spec/targetImageDigest", Value::Null), "spec"),
        (both, "spec"),
        (url("http://images.example/S"), "spec.targetImageDigestURL"),
        (url("https://u:p@images.example/S"), "spec.targetImageDigestURL"),
        (url(&long), "spec.targetImageDigestURL"),
        (minimum("minCPUCores", 0), "spec.hardwareRequirements.minCPUCores"),
        (minimum("minMemoryGB", -1), "spec.hardwareRequirements.minMemoryGB"),
        (minimum("minDiskGB", 0), "spec.hardwareRequirements.minDiskGB"),
        (with(machine(), "/spec/hostSelector", no_key), "spec.hostSelector.matchExpressions[0]"),
        (with(machine(), "/kind", json!("PhysicalHost")), "kind"),
    ];
    for (object, field) in table {
        assert_eq!(check_machine(object), Err(field.to_owned()));
    }
    let operator = json!({"matchExpressions": [{"key": "rack", "operator": "Near"}]});
    assert_eq!(
        check_machine(with(machine(), "/spec/hostSelector", operator)),
        Ok(()),
        "terminal later, not refused"
    );
}

#[test]
fn agent_options_are_checked_where_they_stand() {
    let host = |options: Value| with(host(), "/spec/agentOptions", options);
    let machine = |options: Value| with(machine(), "/spec/agentOptions", options);
    assert_eq!(check_host(host(json!({"vlan": 100, "mtu": "9000", "ip6": false}))), Ok(()));
    assert_eq!(check_machine(machine(json!({"verify": "off", "on-failure": "reboot"}))), Ok(()));
    for (options, key) in [
        (json!({"mtu": 100}), "mtu"),
        (json!({"mtu": -1}), "mtu"),
        (json!({"vlan": ""}), "vlan"),
        (json!({"verify": "off"}), "verify"),
        (json!({"run": "r1"}), "run"),
        (json!({"farrier.vlan": "1"}), "farrier.vlan"),
        (json!({"a\nb": "1"}), "a\\nb"),
    ] {
        assert_eq!(check_host(host(options)), Err(format!("spec.agentOptions.{key}")));
    }
    for (options, key) in [
        (json!({"verify": "maybe"}), "verify"),
        (json!({"vlan": 100}), "vlan"),
        (json!({"on-failure": "reboot now"}), "on-failure"),
    ] {
        assert_eq!(check_machine(machine(options)), Err(format!("spec.agentOptions.{key}")));
    }
    for odd in [json!(1.5), json!(null), json!(["1"])] {
        let read = serde_json::from_value::<PhysicalHost>(host(json!({"vlan": odd})));
        assert!(read.unwrap_err().to_string().contains("expected text"), "{odd}");
    }
}

#[test]
fn a_boot_mode_is_one_that_redfish_names() {
    let mode = |mode: Value| with(host(), "/spec/bootMode", mode);
    for (text, expected) in [("UEFI", BootMode::Uefi), ("Legacy", BootMode::Legacy)] {
        let host: PhysicalHost = serde_json::from_value(mode(json!(text))).unwrap();
        assert_eq!(host.spec.boot_mode, Some(expected));
        assert_eq!(serde_json::to_value(&host).unwrap()["spec"]["bootMode"], text);
    }
    for odd in [json!("uefi"), json!("BIOS"), json!(""), json!(1)] {
        serde_json::from_value::<PhysicalHost>(mode(odd)).unwrap_err();
    }
}

#[test]
fn an_object_without_agent_options_is_written_as_before() {
    let host: PhysicalHost = serde_json::from_value(host()).unwrap();
    assert!(serde_json::to_value(&host).unwrap()["spec"].get("bootMode").is_none());
    assert!(serde_json::to_value(&host).unwrap()["spec"].get("agentOptions").is_none());
    let with: PhysicalHost = serde_json::from_value(with(
        serde_json::to_value(&host).unwrap(),
        "/spec/agentOptions",
        json!({"vlan": 7}),
    ))
    .unwrap();
    assert_eq!(serde_json::to_value(&with).unwrap()["spec"]["agentOptions"], json!({"vlan": "7"}));
}

#[test]
fn secrets_name_their_bad_key_and_show_no_value() {
    let secret = |key: &str| -> Secret {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {key: "SECRET"}
        }))
        .unwrap()
    };
    assert_eq!(secret("value").validate(), Ok(()));
    for key in ["", "a/b", "a b"] {
        let error = secret(key).validate().unwrap_err();
        assert_eq!(error.field, "stringData");
        assert!(!error.to_string().contains("SECRET"));
    }
    let mut merged = secret("value");
    merged.merge_string_data();
    assert_eq!(merged.data["value"].expose(), b"SECRET");
    assert!(!format!("{merged:?}").contains("SECRET"));
    assert!(!format!("{:?}", secret("value")).contains("SECRET"));
}

#[test]
fn a_typing_error_in_a_spec_is_an_error_and_in_status_is_not() {
    assert!(
        serde_json::from_value::<PhysicalHost>(with(host(), "/spec/redfishConection", json!({}))).is_err()
    );
    assert!(serde_json::from_value::<PhysicalHost>(with(host(), "/status", json!({"later": 1}))).is_ok());
}

#[test]
fn states_the_contract_declares_and_never_writes_are_read() {
    for (text, state) in [("", HostState::New), ("Unknown", HostState::New), ("Ready", HostState::Ready)] {
        let object = with(host(), "/status", json!({"state": text}));
        assert_eq!(serde_json::from_value::<PhysicalHost>(object).unwrap().status.state, state);
    }
}
