//! Group I: too little hardware, in the contract's words.

use farrier_shared::contract::report::{Cpu, Disk, InspectionReport, MemoryModule};
use farrier_shared::lifecycle::SignalKey;
use farrier_shared::lifecycle::hardware::{check, disk_warning};
use farrier_shared::resource::HostState::{Error, Inspecting};
use farrier_shared::resource::condition::Truth;
use farrier_shared::resource::machine::{HardwareRequirements, MachinePhase};

use crate::bench::Bench;
use crate::objects::machine_named;

fn report() -> InspectionReport {
    let disk = |name: &str, size_gb| Disk { name: name.to_owned(), size_gb, ..Disk::default() };
    let dimm = |text: &str| MemoryModule { capacity: text.to_owned(), ..MemoryModule::default() };
    InspectionReport {
        cpus: vec![Cpu { cores: 8, ..Cpu::default() }, Cpu { cores: 8, ..Cpu::default() }],
        memory: vec![dimm("32GiB"), dimm("16384MiB"), dimm("NoCapacity"), dimm("32")],
        disks: vec![disk("/dev/sda", 100), disk("/dev/sdb", 400)],
        ..InspectionReport::default()
    }
}

fn wanted(cores: i32, memory: i32, disk: i32) -> HardwareRequirements {
    HardwareRequirements { min_cpu_cores: Some(cores), min_memory_gb: Some(memory), min_disk_gb: Some(disk) }
}

#[test]
fn s154_sums_are_checked_in_order_and_worded_exactly() {
    let message = |w| check(&report(), &w).err().map(|e| e.to_string());
    assert_eq!(message(wanted(16, 51, 500)), None);
    let cores = Some("insufficient CPU cores: found 16, required 17".to_owned());
    assert_eq!(message(wanted(17, 52, 501)), cores);
    let memory = Some("insufficient memory: found 51 GB, required 52 GB".to_owned());
    assert_eq!(message(wanted(16, 52, 501)), memory);
    let disk = Some("insufficient disk space: found 500 GB, required 501 GB".to_owned());
    assert_eq!(message(wanted(16, 51, 501)), disk);
    assert_eq!(message(wanted(0, -1, 0)), None, "not positive is not checked");
    assert_eq!(check(&InspectionReport::default(), &HardwareRequirements::default()), Ok(()));
}

#[test]
fn a_single_disk_below_the_minimum_is_a_warning() {
    let mut spec = machine_named("m").spec;
    spec.hardware_requirements = Some(wanted(1, 1, 300));
    let warning = disk_warning(&report(), &spec).unwrap();
    assert!(warning.contains("/dev/sda (100 GB)") && !warning.contains("/dev/sdb"), "{warning}");
    spec.target_disk = Some("/dev/sda".parse().unwrap());
    assert!(disk_warning(&report(), &spec).unwrap().contains("target disk /dev/sda has 100 GB"));
    spec.target_disk = Some("/dev/sdb".parse().unwrap());
    assert_eq!(disk_warning(&report(), &spec), None);
    spec.hardware_requirements = None;
    assert_eq!(disk_warning(&report(), &spec), None);
}

fn inspected(requirements: HardwareRequirements) -> Bench {
    let mut bench = Bench::at(Inspecting);
    bench.machine.spec.hardware_requirements = Some(requirements);
    bench.report(&serde_json::to_string(&report()).unwrap());
    bench.pass();
    bench
}

#[test]
fn s107_rejected_hardware_stands_whatever_the_agent_reports_later() {
    let mut bench = inspected(wanted(64, 1, 1));
    bench.sign(SignalKey::Provisioned, "provisioned");
    bench.machine_pass();
    let (_, reason, message) = bench.machine_condition("InfrastructureReady");
    assert_eq!(reason, "HardwareRequirementsNotMet");
    assert_eq!(message, "insufficient CPU cores: found 16, required 64");
    for _ in 0..3 {
        bench.pass();
        bench.machine_pass();
    }
    assert_eq!(bench.state(), Inspecting);
    bench.wait(600);
    bench.pass();
    bench.pass();
    assert_eq!((bench.state(), bench.signals.len()), (Error, 0));
    assert_eq!(bench.machine.status.phase, Some(MachinePhase::Failed));
}

#[test]
fn the_warning_is_a_condition_and_stops_nothing() {
    let mut bench = inspected(wanted(1, 1, 300));
    bench.machine_pass();
    assert_eq!(bench.machine_condition("DiskSizeWarning").0, Truth::True);
    assert_eq!(bench.signals.len(), 1, "inspect-complete is sent");
    assert_ne!(bench.machine.status.phase, Some(MachinePhase::Failed));
}

#[test]
fn s008_a_phase_without_a_report_is_waited_for() {
    let mut bench = inspected(wanted(1, 1, 1));
    bench.host.status.inspection_report = None;
    let decision = bench.machine_pass();
    assert_eq!(decision.requeue.as_secs(), 10);
    assert!(bench.signals.is_empty());
}
