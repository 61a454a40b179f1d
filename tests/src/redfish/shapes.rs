//! JSON of the Redfish resources, and the boot override as a strict BMC takes it.

use serde_json::{Value, json};

use super::machine::{Machine, PowerState};

/// Reset types this BMC has.
pub(super) const RESET_TYPES: [&str; 4] = ["On", "ForceOff", "GracefulShutdown", "ForceRestart"];
/// Path of the one system.
pub(super) const SYSTEM: &str = "/redfish/v1/Systems/1";

pub(super) fn root() -> Value {
    json!({
        "@odata.id": "/redfish/v1",
        "@odata.type": "#ServiceRoot.v1_11_0.ServiceRoot",
        "Id": "RootService",
        "Name": "Farrier lab BMC",
        "RedfishVersion": "1.11.0",
        "Systems": { "@odata.id": "/redfish/v1/Systems" },
    })
}

pub(super) fn collection(path: &str, kind: &str, members: &[String]) -> Value {
    json!({
        "@odata.id": path,
        "@odata.type": format!("#{kind}.{kind}"),
        "Name": kind,
        "Members@odata.count": members.len(),
        "Members": members.iter().map(|member| json!({ "@odata.id": member })).collect::<Vec<_>>(),
    })
}

pub(super) fn system(machine: &Machine) -> Value {
    let hardware = machine.hardware();
    let once = machine.network_once();
    json!({
        "@odata.id": SYSTEM,
        "@odata.type": "#ComputerSystem.v1_16_0.ComputerSystem",
        "Id": "1",
        "Name": "System",
        "SystemType": "Physical",
        "Manufacturer": hardware.manufacturer,
        "Model": hardware.product,
        "SerialNumber": hardware.serial,
        "PowerState": match machine.power() { PowerState::On => "On", PowerState::Off => "Off" },
        "Status": { "Health": "OK", "HealthRollup": "OK", "State": "Enabled" },
        "ProcessorSummary": { "Count": hardware.sockets },
        "MemorySummary": { "TotalSystemMemoryGiB": hardware.memory_mib / 1024 },
        "Boot": {
            "BootSourceOverrideEnabled": if once { "Once" } else { "Disabled" },
            "BootSourceOverrideTarget": if once { "Pxe" } else { "None" },
            "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Hdd"],
            "BootSourceOverrideMode": "UEFI",
        },
        "EthernetInterfaces": { "@odata.id": format!("{SYSTEM}/EthernetInterfaces") },
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": format!("{SYSTEM}/Actions/ComputerSystem.Reset"),
                "ResetType@Redfish.AllowableValues": RESET_TYPES,
            },
        },
    })
}

/// One network card as BMCs show it: the address, no more.
pub(super) fn ethernet(machine: &Machine, index: usize) -> Option<Value> {
    let nic = machine.hardware().nics.get(index)?;
    Some(json!({
        "@odata.id": format!("{SYSTEM}/EthernetInterfaces/{index}"),
        "@odata.type": "#EthernetInterface.v1_9_0.EthernetInterface",
        "Id": index.to_string(),
        "Name": format!("NIC {index}"),
        "MACAddress": nic.mac,
        "PermanentMACAddress": nic.mac,
        "IPv4Addresses": [],
        "IPv6Addresses": [],
        "Status": { "Health": "OK", "State": "Enabled" },
    }))
}

pub(super) fn error(message: &str) -> Value {
    json!({ "error": {
        "code": "Base.1.8.GeneralError",
        "message": message,
        "@Message.ExtendedInfo": [{ "MessageId": "Base.1.8.GeneralError", "Message": message }],
    } })
}

/// Reads a boot override: whether the next boot shall be from the network.
///
/// As strict as the strictest boards: both fields must be there, whatever is asked.
///
/// # Errors
/// What a board would answer with 400.
pub(super) fn network_once(patch: &Value) -> Result<bool, String> {
    let boot = patch.get("Boot").ok_or("the body has no Boot object")?;
    let field = |name: &str| boot.get(name).and_then(Value::as_str).ok_or(format!("Boot has no {name}"));
    match (field("BootSourceOverrideTarget")?, field("BootSourceOverrideEnabled")?) {
        ("Pxe", "Once") => Ok(true),
        ("None", "Disabled") => Ok(false),
        (target, enabled) => Err(format!("no such override: {target} {enabled}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_needs_both_fields() {
        for (patch, expected) in [
            (
                json!({"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}),
                Some(true),
            ),
            (
                json!({"Boot": {"BootSourceOverrideTarget": "None", "BootSourceOverrideEnabled": "Disabled"}}),
                Some(false),
            ),
            (json!({"Boot": {"BootSourceOverrideEnabled": "Disabled"}}), None),
            (
                json!({"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Disabled"}}),
                None,
            ),
            (json!({}), None),
        ] {
            assert_eq!(network_once(&patch).ok(), expected, "{patch}");
        }
    }
}
