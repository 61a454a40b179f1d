//! The report for people.

use std::fmt::Write as _;

use farrier_shared::contract::InspectionReport;

/// Renders a report as aligned text.
pub fn render(report: &InspectionReport) -> String {
    let mut out = String::new();
    let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    for (key, value) in [
        ("Manufacturer", &report.manufacturer),
        ("Model", &report.model),
        ("Serial number", &report.serial_number),
        ("Boot mode", &report.boot_mode_detected),
        ("Firmware", &report.firmware_version),
    ] {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{key:<14} {}", dash(value));
    }
    let rows =
        |rows: Vec<Vec<String>>| rows.into_iter().map(|r| r.iter().map(|c| dash(c)).collect()).collect();
    let sections: [(&[&str], Vec<Vec<String>>); 4] = [
        (
            &["CPU", "VENDOR", "MODEL", "CORES", "THREADS", "FREQUENCY"],
            rows(
                report
                    .cpus
                    .iter()
                    .map(|c| {
                        let (cores, threads) = (c.cores.to_string(), c.threads.to_string());
                        vec![
                            c.id.clone(),
                            c.vendor.clone(),
                            c.model.clone(),
                            cores,
                            threads,
                            c.frequency.clone(),
                        ]
                    })
                    .collect(),
            ),
        ),
        (
            &["MEMORY", "TYPE", "CAPACITY", "SPEED"],
            rows(
                report
                    .memory
                    .iter()
                    .map(|m| vec![m.id.clone(), m.kind.clone(), m.capacity.clone(), m.speed.clone()])
                    .collect(),
            ),
        ),
        (
            &["DISK", "MODEL", "SIZE", "TYPE", "SERIAL"],
            rows(
                report
                    .disks
                    .iter()
                    .map(|d| {
                        let size = format!("{} GB", d.size_gb);
                        vec![d.name.clone(), d.model.clone(), size, d.kind.clone(), d.serial_number.clone()]
                    })
                    .collect(),
            ),
        ),
        (
            &["NIC", "MAC", "DRIVER", "SPEED", "ADDRESSES"],
            rows(
                report
                    .nics
                    .iter()
                    .map(|n| {
                        let ips = n.ip_addresses.join(" ");
                        vec![n.name.clone(), n.mac_address.clone(), n.driver.clone(), n.speed.clone(), ips]
                    })
                    .collect(),
            ),
        ),
    ];
    for (header, rows) in sections {
        section(&mut out, header, &rows);
    }
    let ours = report.farrier.as_ref();
    let rules_out = ours.and_then(|f| f["disks"].as_array()).into_iter().flatten().filter_map(|disk| {
        Some(format!("{} is no target: {}", disk["name"].as_str()?, disk["refusal"].as_str()?))
    });
    let notes = ours.and_then(|f| f["notes"].as_array()).into_iter().flatten();
    for (n, note) in rules_out.chain(notes.filter_map(|n| n.as_str().map(str::to_owned))).enumerate() {
        let _ = writeln!(out, "{}Note: {note}", if n == 0 { "\n" } else { "" });
    }
    out
}

fn section(out: &mut String, header: &[&str], rows: &[Vec<String>]) {
    out.push('\n');
    let width = |column: usize| {
        rows.iter().filter_map(|r| r.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> =
        header.iter().enumerate().map(|(i, h)| width(i).max(h.chars().count())).collect();
    let mut line = |cells: Vec<&str>| {
        let padded: Vec<String> =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(out, "{}", padded.join("  ").trim_end());
    };
    line(header.to_vec());
    for row in rows {
        line(row.iter().map(String::as_str).collect());
    }
}

#[cfg(test)]
mod tests {
    use farrier_shared::contract::report::Disk;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_could_not_be_found_and_which_disks_are_no_target_is_said() {
        let farrier = json!({
            "disks": [{"name": "/dev/sda", "refusal": "read-only"}, {"name": "/dev/sdb", "refusal": null}],
            "notes": ["SMBIOS table not read: denied"],
        });
        let text = render(&InspectionReport { farrier: Some(farrier), ..InspectionReport::default() });
        let end = "\nNote: /dev/sda is no target: read-only\nNote: SMBIOS table not read: denied\n";
        assert!(text.ends_with(end), "{text}");
        assert!(!render(&InspectionReport::default()).contains("Note"));
    }

    #[test]
    fn columns_line_up_and_gaps_show_as_dashes() {
        let report = InspectionReport {
            manufacturer: "QEMU".into(),
            disks: vec![Disk { name: "/dev/nvme0n1".into(), size_gb: 17, ..Disk::default() }],
            ..InspectionReport::default()
        };
        let text = render(&report);
        assert!(text.contains("Manufacturer   QEMU\nModel          -\n"), "{text}");
        assert!(
            text.contains("DISK          MODEL  SIZE   TYPE  SERIAL\n/dev/nvme0n1  -      17 GB  -     -\n"),
            "{text}"
        );
    }
}
