//! The parts of Redfish's JSON that are used. Everything is optional: BMCs leave out what they please.

use std::net::IpAddr;

use farrier_shared::resource::host::{Address, HardwareDetails, HardwareHealth};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// A link to another resource.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Link {
    #[serde(rename = "@odata.id", default)]
    pub(super) id: String,
}

/// The service root.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Root {
    pub(super) systems: Option<Link>,
    #[serde(deserialize_with = "lenient")]
    pub(super) vendor: Option<String>,
}

/// Any collection.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Collection {
    pub(super) members: Vec<Link>,
}

/// A ComputerSystem. Fields not named here are ignored whatever they are: `OperatingSystem`, for one, is text on
/// some BMCs and a link on others.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct System {
    #[serde(rename = "@odata.id")]
    pub(super) id: String,
    #[serde(rename = "@odata.etag", deserialize_with = "lenient")]
    pub(super) etag: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) manufacturer: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) serial_number: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) power_state: Option<Power>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<Status>,
    #[serde(deserialize_with = "lenient")]
    pub(super) boot: Option<Boot>,
    #[serde(deserialize_with = "lenient")]
    pub(super) actions: Option<Actions>,
    #[serde(rename = "@Redfish.Settings", deserialize_with = "lenient")]
    pub(super) settings: Option<Settings>,
    #[serde(deserialize_with = "lenient")]
    pub(super) ethernet_interfaces: Option<Link>,
    #[serde(deserialize_with = "lenient")]
    pub(super) network_interfaces: Option<Link>,
}

/// Where changes go that a resource does not take itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Settings {
    #[serde(deserialize_with = "lenient")]
    pub(super) settings_object: Option<Link>,
}

/// Power as told; two of the states pass by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Power {
    On,
    Off,
    PoweringOn,
    PoweringOff,
    #[serde(other)]
    Unknown,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Status {
    #[serde(deserialize_with = "lenient")]
    health: Option<String>,
    #[serde(deserialize_with = "lenient")]
    health_rollup: Option<String>,
    #[serde(deserialize_with = "lenient")]
    state: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Boot {
    #[serde(deserialize_with = "lenient")]
    pub(super) boot_source_override_mode: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) boot_source_override_enabled: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) boot_source_override_target: Option<String>,
    #[serde(rename = "BootSourceOverrideTarget@Redfish.AllowableValues", deserialize_with = "lenient")]
    pub(super) allowed_targets: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Actions {
    #[serde(rename = "#ComputerSystem.Reset")]
    pub(super) reset: Option<ResetAction>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResetAction {
    pub(super) target: String,
    #[serde(rename = "ResetType@Redfish.AllowableValues", deserialize_with = "lenient")]
    pub(super) allowed: Option<Vec<String>>,
    #[serde(rename = "@Redfish.ActionInfo", deserialize_with = "lenient")]
    pub(super) action_info: Option<String>,
}

/// What an action's parameters may be, where the action itself does not say.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct ActionInfo {
    parameters: Vec<Parameter>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Parameter {
    name: String,
    allowable_values: Option<Vec<String>>,
}

impl ActionInfo {
    pub(super) fn reset_types(self) -> Option<Vec<String>> {
        self.parameters.into_iter().find(|p| p.name == "ResetType")?.allowable_values
    }
}

/// An EthernetInterface or NetworkInterface.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Interface {
    #[serde(rename = "IPv4Addresses", deserialize_with = "lenient")]
    v4: Option<Vec<InterfaceAddress>>,
    #[serde(rename = "IPv6Addresses", deserialize_with = "lenient")]
    v6: Option<Vec<InterfaceAddress>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InterfaceAddress {
    #[serde(rename = "Address", deserialize_with = "lenient")]
    address: Option<String>,
}

/// `null` and values of an unexpected type read as absent: one odd field must not hide all others.
fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Field<T> {
        Read(T),
        Odd(IgnoredAny),
    }
    Ok(match Field::deserialize(deserializer)? {
        Field::Read(value) => Some(value),
        Field::Odd(_) => None,
    })
}

/// Longest text kept of what a BMC says, in characters. It is written with each change of the host's state.
const MAX_TEXT: usize = 256;
/// Most addresses kept of one interface.
const MAX_ADDRESSES: usize = 64;

/// What of a BMC's text is kept: some of it, and nothing that would act on a terminal.
fn kept(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect()
}

impl System {
    pub(super) fn details(&self) -> HardwareDetails {
        let text = |field: &Option<String>| kept(field.as_deref().unwrap_or_default());
        let status = self.status.clone().unwrap_or_default();
        HardwareDetails {
            manufacturer: text(&self.manufacturer),
            model: text(&self.model),
            serial_number: text(&self.serial_number),
            status: HardwareHealth {
                health: text(&status.health),
                health_rollup: text(&status.health_rollup),
                state: text(&status.state),
            },
        }
    }
}

impl Interface {
    /// Its addresses, sorted into inside and outside.
    pub(super) fn addresses(&self) -> Vec<Address> {
        let all = self.v4.iter().chain(self.v6.iter()).flatten();
        all.filter_map(|a| a.address.as_deref()?.trim().parse::<IpAddr>().ok())
            .filter(|ip| !ip.is_unspecified())
            .take(MAX_ADDRESSES)
            .map(|ip| Address { kind: kind(ip).to_owned(), address: ip.to_string() })
            .collect()
    }
}

/// Private, loopback, link-local and unique-local addresses are internal, all others external.
fn kind(ip: IpAddr) -> &'static str {
    let internal = match ip {
        IpAddr::V4(v4) => v4.is_private() || v4.is_loopback() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unique_local(),
    };
    if internal { "InternalIP" } else { "ExternalIP" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_internal_or_external() {
        for (ip, expected) in [
            ("10.1.2.3", "InternalIP"),
            ("172.31.0.1", "InternalIP"),
            ("172.32.0.1", "ExternalIP"),
            ("192.168.0.1", "InternalIP"),
            ("127.0.0.1", "InternalIP"),
            ("169.254.1.1", "InternalIP"),
            ("203.0.113.1", "ExternalIP"),
            ("::1", "InternalIP"),
            ("fe80::1", "InternalIP"),
            ("fd00::1", "InternalIP"),
            ("2001:db8::1", "ExternalIP"),
        ] {
            assert_eq!(kind(ip.parse().unwrap()), expected, "{ip}");
        }
    }

    #[test]
    fn s134_a_system_with_odd_fields_is_read_all_the_same() {
        let text = r#"{"@odata.id":"/redfish/v1/Systems/1","Manufacturer":null,"Model":7,"PowerState":"On",
            "SerialNumber":" S1 ","OperatingSystem":{"@odata.id":"/x"},"Status":{"Health":"OK","State":null},
            "Boot":"odd","Actions":{"Oem":{}}}"#;
        let system: System = serde_json::from_str(text).unwrap();
        assert_eq!(system.power_state, Some(Power::On));
        let details = system.details();
        assert_eq!((details.serial_number.as_str(), details.model.as_str()), ("S1", ""));
        assert_eq!(details.status.health, "OK");
        assert!(system.boot.is_none());
    }

    #[test]
    fn of_what_a_bmc_says_a_bounded_and_printable_part_is_kept() {
        let system = System {
            manufacturer: Some(format!("A\u{1b}[31m\n{}", "x".repeat(100_000))),
            ..System::default()
        };
        let kept = system.details().manufacturer;
        assert!(kept.starts_with("A[31mxxx"), "{kept}");
        assert_eq!(kept.chars().count(), MAX_TEXT);
        let listed = "{\"Address\":\"192.0.2.1\"},".repeat(1000);
        let interface = format!("{{\"IPv4Addresses\":[{}]}}", listed.trim_end_matches(','));
        let interface: Interface = serde_json::from_str(&interface).unwrap();
        assert_eq!(interface.addresses().len(), MAX_ADDRESSES);
    }
}
