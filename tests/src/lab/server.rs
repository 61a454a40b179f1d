//! A server in the room: hardware, BMC, and the YAML an operator would write for it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::network::{Network, Wire, delivered};
use crate::leftovers::Leftovers;
use crate::partitions::Sector;
use crate::qemu::{Bus, Disk, Files, Firmware, Hardware, Nic, Plug};
use crate::redfish::{Bmc, Engine, Login, Machine};
use crate::secrets;

/// What a server is to be.
#[derive(Clone, Debug)]
pub struct ServerPlan {
    /// Its name as a PhysicalHost.
    pub name: String,
    /// Its two disks, the boot disk first.
    pub disks: [DiskPlan; 2],
    /// What both hold before anything runs on it.
    pub leftovers: Leftovers,
    /// Where its two network cards are plugged in; it boots from the first one that sees the controller.
    pub wires: [Wire; 2],
    /// Processor packages of two cores each. The processors are emulated on few real ones, so no more than are looked at.
    pub packages: u32,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// What it starts with.
    pub firmware: Firmware,
    /// Agent options of the PhysicalHost.
    pub options: &'static [(&'static str, &'static str)],
    /// Whether it runs; otherwise it only draws power.
    pub runs: bool,
}

/// What a disk is to be.
#[derive(Clone, Copy, Debug)]
pub struct DiskPlan {
    /// How it is attached.
    pub bus: Bus,
    /// Size in bytes.
    pub size: u64,
    /// Its logical sectors.
    pub sector: Sector,
}

impl DiskPlan {
    /// A disk with 512-byte sectors.
    pub const fn new(bus: Bus, size: u64) -> Self {
        Self { bus, size, sector: Sector::B512 }
    }
}

impl ServerPlan {
    /// A server with UEFI, an empty 2 GiB virtio disk and an empty 3 GiB NVMe disk.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            disks: [DiskPlan::new(Bus::Virtio, 2 << 30), DiskPlan::new(Bus::Nvme, 3 << 30)],
            leftovers: Leftovers::None,
            wires: [Wire::Provisioning; 2],
            packages: 1,
            memory_mib: 1536,
            firmware: Firmware::Uefi,
            options: &[],
            runs: true,
        }
    }

    /// The same with both disks on this bus, the larger one second.
    pub fn with_disks(self, bus: Bus, sector: Sector) -> Self {
        let disks = [DiskPlan { bus, size: 2 << 30, sector }, DiskPlan { bus, size: 3 << 30, sector }];
        Self { disks, ..self }
    }
}

/// A server.
#[derive(Debug)]
pub struct Server {
    /// Its name as a PhysicalHost.
    pub name: String,
    /// Its power side.
    pub machine: Machine,
    /// Its BMC.
    pub bmc: Bmc,
    /// What its serial port printed.
    pub serial_log: PathBuf,
    /// The flash with its firmware's variables.
    pub variables: PathBuf,
    /// What its disks held at first.
    pub leftovers: Leftovers,
    options: &'static [(&'static str, &'static str)],
}

impl Server {
    pub(super) async fn install(dir: &Path, network: &mut Network, plan: ServerPlan) -> Result<Self> {
        let dir = dir.join(&plan.name);
        std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
        let address = network.bmc_address()?;
        let unique = address.octets()[3];
        let hardware = hardware(&plan, &dir, unique, network)?;
        for disk in &hardware.disks {
            plan.leftovers.lay(&disk.file, disk.size)?;
        }
        let (serial_log, variables) = (dir.join("serial.log"), dir.join("firmware-variables.fd"));
        let engine = if plan.runs {
            let files = Files {
                variables: variables.clone(),
                serial_log: serial_log.clone(),
                qemu_log: dir.join("qemu.log"),
                control: dir.join("qmp"),
            };
            Engine::Qemu { hardware, files }
        } else {
            Engine::Inert(hardware)
        };
        let machine = Machine::new(engine);
        let login = Login { user: "operator".to_owned(), password: secrets::random("bmc-password")? };
        let address = SocketAddr::from((address, 8443));
        let bmc = Bmc::serve(machine.clone(), address, login, &dir.join("redfish.log")).await?;
        let ServerPlan { name, leftovers, options, .. } = plan;
        Ok(Self { name, machine, bmc, serial_log, variables, leftovers, options })
    }

    /// The file behind the disk the firmware boots.
    pub fn boot_disk(&self) -> &Path {
        &self.machine.hardware().disks[0].file
    }

    /// The file behind the disk that nothing is installed on.
    pub fn other_disk(&self) -> &Path {
        &self.machine.hardware().disks[1].file
    }

    /// Address of the card it network-boots from.
    pub fn mac(&self) -> &str {
        let hardware = self.machine.hardware();
        &hardware.nics[hardware.boot_nic].mac
    }

    /// Bytes that each of its network cards was given so far.
    ///
    /// # Errors
    /// When one is not plugged in by a device that counts.
    pub fn delivered(&self) -> Result<Vec<u64>> {
        let nics = self.machine.hardware().nics.iter();
        nics.map(|nic| match &nic.plug {
            Plug::Tap(tap) => delivered(tap),
            Plug::Trunk(_) => bail!("a trunk does not count"),
        })
        .collect()
    }

    /// The host and its BMC's login and CA, as an operator writes them.
    pub fn manifest(&self) -> String {
        let name = &self.name;
        let options: String =
            self.options.iter().map(|(key, value)| format!("    {key}: \"{value}\"\n")).collect();
        let options = if options.is_empty() { options } else { format!("  agentOptions:\n{options}") };
        let ca: String = self.bmc.ca_pem.lines().map(|line| format!("    {line}\n")).collect();
        let address = self.bmc.url.trim_start_matches("https://").split(':').next().unwrap_or_default();
        format!(
            "apiVersion: v1
kind: Secret
metadata:
  name: {name}-bmc
  annotations:
    beskar7.infrastructure.cluster.x-k8s.io/bmc-addresses: \"{address}\"
    beskar7.infrastructure.cluster.x-k8s.io/bmc-ca-secret: {name}-bmc-ca
stringData:
  username: {user}
  password: {password}
---
apiVersion: v1
kind: Secret
metadata:
  name: {name}-bmc-ca
stringData:
  ca.crt: |
{ca}---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: PhysicalHost
metadata:
  name: {name}
spec:
  bootMACAddresses: [\"{mac}\"]
  redfishConnection:
    address: {url}
    credentialsSecretRef: {name}-bmc
    caBundleSecretRef: {name}-bmc-ca
{options}",
            user = self.bmc.login.user,
            password = self.bmc.login.password,
            mac = self.mac(),
            url = self.bmc.url,
        )
    }
}

fn hardware(plan: &ServerPlan, dir: &Path, unique: u8, network: &mut Network) -> Result<Hardware> {
    let disk = |(index, disk): (usize, &DiskPlan)| Disk {
        bus: disk.bus,
        serial: format!("FARRIER-DISK-{unique}{index}"),
        size: disk.size,
        sector: disk.sector,
        file: dir.join(format!("disk{index}.raw")),
    };
    let nic = |(number, wire): (u8, &Wire)| -> Result<Nic> {
        Ok(Nic { mac: format!("52:54:00:fa:{unique:02x}:{number:02x}"), plug: network.plug(*wire, dir)? })
    };
    let boot_nic = plan.wires.iter().position(|wire| wire.leads_to_the_controller());
    Ok(Hardware {
        manufacturer: "Farrier Works".to_owned(),
        product: "Anvil 2000".to_owned(),
        serial: format!("ANVIL-{unique:04}"),
        firmware: plan.firmware,
        sockets: plan.packages,
        cores: 2,
        memory_mib: plan.memory_mib,
        disks: plan.disks.iter().enumerate().map(disk).collect(),
        nics: (1..).zip(&plan.wires).map(nic).collect::<Result<_>>()?,
        boot_nic: boot_nic.context("no network card sees the controller")?,
    })
}
