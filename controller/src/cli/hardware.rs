//! What the inspection found, in a few lines of a terminal's width.

use farrier_shared::contract::capacity;
use farrier_shared::contract::report::InspectionReport;
use serde_json::Value;

use super::wrap::wrap;

/// Columns of a line without its heading.
const WIDTH: usize = 66;
/// Most disks, interfaces and notes shown of each; `farrier get host NAME -o yaml` has all.
const MOST: usize = 16;

/// Headings and lines; a heading is empty on the lines after its first. Texts are as the machine sent them.
pub(super) fn lines(report: &InspectionReport) -> Vec<(&'static str, String)> {
    let nothing = Value::Null;
    let facts = report.farrier.as_ref().unwrap_or(&nothing);
    let mut lines = vec![("Firmware", firmware(report, facts))];
    let cores: i64 = report.cpus.iter().map(|c| i64::from(c.cores)).sum();
    lines.push(("Cores", format!("{cores} in {} packages{}", report.cpus.len(), numa(facts))));
    let memory = report.memory.iter().filter_map(|m| capacity::gigabytes(&m.capacity).ok());
    let memory = memory.fold(0_i64, i64::saturating_add);
    lines.push(("Memory", format!("{memory} GB in {} modules", report.memory.len())));
    several(
        &mut lines,
        "Disks",
        report.disks.iter().map(|disk| {
            let detail = named(facts, "disks", &disk.name);
            let sectors = match (&detail["logicalSectorBytes"], &detail["physicalSectorBytes"]) {
                (Value::Number(logical), Value::Number(physical)) => format!(" {logical}/{physical} B"),
                (Value::Number(logical), _) => format!(" {logical} B"),
                _ => String::new(),
            };
            let health = match detail["health"]["percentageUsed"].as_u64() {
                Some(used) => format!(" {used} % used"),
                None => String::new(),
            };
            format!("{} {} GB{}{sectors}{health}", disk.name, disk.size_gb, after(" ", &detail["transport"]))
        }),
    );
    several(
        &mut lines,
        "NICs",
        report.nics.iter().map(|nic| {
            let detail = named(facts, "nics", &nic.name);
            let speed = if nic.speed.is_empty() { String::new() } else { format!(" {}", nic.speed) };
            let port = match detail["lldp"]["portId"].as_str() {
                Some(port) => {
                    let switch =
                        ["systemName", "chassisId"].into_iter().find_map(|key| detail["lldp"][key].as_str());
                    format!(" to {} {port}", switch.unwrap_or_default())
                }
                None if detail["carrier"] == false => " no cable".to_owned(),
                None => String::new(),
            };
            format!("{} {}{speed}{port}", nic.mac_address, nic.name)
        }),
    );
    let gpus = facts["gpus"].as_array().into_iter().flatten();
    let gpus = gpus.map(|gpu| {
        format!("{}{} {}", text(&gpu["vendor"]), after(":", &gpu["device"]), text(&gpu["address"]))
    });
    several(&mut lines, "GPUs", gpus);
    let bmc = &facts["bmc"];
    if bmc.is_object() {
        let lan = bmc["lan"].as_array().into_iter().flatten();
        // The first channel with an address is the one in use.
        let lan = lan.min_by_key(|channel| channel["address"].is_null()).unwrap_or(&Value::Null);
        let told = format!(
            "IPMI{}{}{}{}{}",
            after(" ", &bmc["ipmiVersion"]),
            after(" by ", &bmc["ipmiInterface"]),
            after(" at ", &lan["address"]),
            after(" on ", &lan["mac"]),
            after(", Redfish from the host at ", &bmc["hostInterfaceAddress"])
        );
        lines.push(("Management", cut(&told)));
    }
    let notes = facts["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for note in notes.take(MOST) {
        lines.extend(
            wrap(note, WIDTH).into_iter().enumerate().map(|(n, l)| (if n == 0 { "Note" } else { "" }, l)),
        );
    }
    lines
}

fn firmware(report: &InspectionReport, facts: &Value) -> String {
    let secure_boot = match facts["secureBoot"].as_bool() {
        Some(true) => ", Secure Boot on",
        Some(false) => ", Secure Boot off",
        None => "",
    };
    let tpm = match (facts["tpmVersion"].as_u64(), facts["tpm"].as_bool()) {
        (Some(version), _) => format!(", TPM {version}"),
        (None, Some(true)) => ", TPM".to_owned(),
        _ => String::new(),
    };
    let date = after(" of ", &facts["firmwareDate"]);
    cut(&format!("{} {}{date}{secure_boot}{tpm}", report.boot_mode_detected, report.firmware_version))
}

fn numa(facts: &Value) -> String {
    match facts["numa"].as_array().map_or(0, Vec::len) {
        0 | 1 => String::new(),
        nodes => format!(", {nodes} NUMA nodes"),
    }
}

/// One line each, and how many more there are.
fn several(
    lines: &mut Vec<(&'static str, String)>,
    heading: &'static str,
    each: impl Iterator<Item = String>,
) {
    let mut more = 0;
    for (n, line) in each.enumerate() {
        match n {
            0 => lines.push((heading, cut(&line))),
            n if n < MOST => lines.push(("", cut(&line))),
            _ => more += 1,
        }
    }
    if more > 0 {
        lines.push(("", format!("and {more} more")));
    }
}

/// The additive facts of the thing with this name.
fn named<'a>(facts: &'a Value, list: &str, name: &str) -> &'a Value {
    let mut all = facts[list].as_array().into_iter().flatten();
    all.find(|item| item["name"] == name).unwrap_or(&Value::Null)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A text behind something; nothing where there is none.
fn after(what: &str, value: &Value) -> String {
    match text(value) {
        "" => String::new(),
        text => format!("{what}{text}"),
    }
}

fn cut(line: &str) -> String {
    let line = line.trim();
    if line.chars().count() <= WIDTH {
        return line.to_owned();
    }
    line.chars().take(WIDTH - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use farrier_shared::contract::report::{Cpu, Disk, MemoryModule, Nic};
    use serde_json::json;

    use super::*;

    fn report(farrier: Option<Value>) -> InspectionReport {
        InspectionReport {
            boot_mode_detected: "UEFI".into(),
            firmware_version: "2.19.1".into(),
            cpus: vec![Cpu { cores: 16, ..Cpu::default() }, Cpu { cores: 16, ..Cpu::default() }],
            memory: vec![MemoryModule { capacity: "32GiB".into(), ..MemoryModule::default() }],
            disks: vec![Disk { name: "/dev/nvme0n1".into(), size_gb: 960, ..Disk::default() }],
            nics: vec![Nic {
                name: "eth0".into(),
                mac_address: "52:54:00:12:34:56".into(),
                speed: "10Gbps".into(),
                ..Nic::default()
            }],
            farrier,
            ..InspectionReport::default()
        }
    }

    #[test]
    fn a_server_is_shown_with_what_was_found_of_it() {
        let facts = json!({
            "firmwareDate": "05/06/2024", "secureBoot": true, "tpmVersion": 2, "numa": [{}, {}],
            "disks": [{"name": "/dev/nvme0n1", "transport": "nvme", "logicalSectorBytes": 512,
                "physicalSectorBytes": 4096, "health": {"percentageUsed": 3}}],
            "nics": [{"name": "eth0", "lldp": {"systemName": "tor-1", "chassisId": "x", "portId": "Ethernet1/7"}}],
            "gpus": [{"address": "0000:3b:00.0", "vendor": "10de", "device": "20b0"}],
            "bmc": {"ipmiVersion": "2.0", "ipmiInterface": "KCS", "lan": [
                {"channel": 1, "mac": "ac:1f:6b:8a:5f:c9"},
                {"channel": 8, "mac": "ac:1f:6b:8a:5f:c8", "address": "10.0.9.7"},
            ]},
            "notes": ["/dev/sdb warns: reliability is degraded"],
        });
        let expected = [
            ("Firmware", "UEFI 2.19.1 of 05/06/2024, Secure Boot on, TPM 2"),
            ("Cores", "32 in 2 packages, 2 NUMA nodes"),
            ("Memory", "34 GB in 1 modules"),
            ("Disks", "/dev/nvme0n1 960 GB nvme 512/4096 B 3 % used"),
            ("NICs", "52:54:00:12:34:56 eth0 10Gbps to tor-1 Ethernet1/7"),
            ("GPUs", "10de:20b0 0000:3b:00.0"),
            ("Management", "IPMI 2.0 by KCS at 10.0.9.7 on ac:1f:6b:8a:5f:c8"),
            ("Note", "/dev/sdb warns: reliability is degraded"),
        ];
        assert_eq!(lines(&report(Some(facts))), expected.map(|(h, l)| (h, l.to_owned())));
    }

    #[test]
    fn a_report_of_the_contract_alone_is_shown_without_gaps() {
        let expected = [
            ("Firmware", "UEFI 2.19.1"),
            ("Cores", "32 in 2 packages"),
            ("Memory", "34 GB in 1 modules"),
            ("Disks", "/dev/nvme0n1 960 GB"),
            ("NICs", "52:54:00:12:34:56 eth0 10Gbps"),
        ];
        assert_eq!(lines(&report(None)), expected.map(|(h, l)| (h, l.to_owned())));
    }

    #[test]
    fn whatever_a_machine_sends_the_lines_stay_few_and_narrow() {
        let long = "x".repeat(500);
        let many: Vec<Value> =
            (0..1000).map(|_| json!({"address": long, "vendor": [1], "device": long})).collect();
        let facts = json!({"gpus": many, "bmc": {"ipmiVersion": long, "lan": [long]}, "notes": [long, "a b ".repeat(90), 7],
            "nics": {"not": "a list"}, "disks": "text", "firmwareDate": long});
        for facts in [facts, json!([]), json!("text")] {
            let lines = lines(&report(Some(facts)));
            assert!(lines.iter().all(|(_, l)| l.chars().count() <= WIDTH), "{lines:?}");
            assert!(lines.len() < 64);
        }
    }
}
