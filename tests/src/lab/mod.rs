//! A machine room in one process: a network of its own, DHCP and TFTP, image servers, a controller, servers
//! with BMCs. All of it is inside namespaces that the kernel takes down with the process, however it ends.

mod admin;
mod boot_server;
mod controller;
mod failing;
mod files;
mod greetings;
mod images;
mod network;
mod sandbox;
mod server;
mod trunk;
mod vault;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

pub use admin::Admin;
pub use controller::{Controller, Said, ServeOptions};
pub use failing::until;
pub use files::{Inspection, programs};
pub use greetings::Greetings;
pub use images::{Images, Served};
pub use network::Wire;
pub use sandbox::command as sandboxed;
pub use server::{DiskPlan, Server, ServerPlan};
pub use trunk::{Sockets, VLAN};
pub use vault::{age, credentials};

use boot_server::BootServer;
use network::Network;

/// The provisioning network's address of the controller and every other service of the lab.
pub const CONTROLLER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Its IPv6 address there.
pub const CONTROLLER6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 1);
/// Its address in the network of the VLAN.
pub const VLAN_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 3, 1);
/// First address of the BMC network.
pub const BMC_NETWORK: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 0);
/// HTTPS port of the controller.
pub const CALLBACK_PORT: u16 = 8082;
/// HTTP port of the controller.
pub const BOOT_PORT: u16 = 8080;
/// Port of the lab's own image server, which can fail on purpose.
pub const IMAGE_PORT: u16 = 8090;
/// Port that installed systems report to.
pub const GREETING_PORT: u16 = 8091;

/// What addresses a machine gets on the provisioning network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addressing {
    /// IPv4, with the room as the router.
    #[default]
    Routed,
    /// IPv4, and no router: what is not on the same wire cannot be reached.
    Isolated,
    /// IPv4 for firmware and iPXE; IPv6 alone for all that comes later.
    Ipv6,
}

/// A machine room without controller or servers; both are added by name.
#[derive(Debug)]
pub struct Lab {
    /// Everything it writes.
    pub dir: PathBuf,
    /// The image server that fails as told.
    pub images: Images,
    /// What installed systems reported.
    pub greetings: Greetings,
    network: Network,
    boot_server: BootServer,
}

impl Lab {
    /// Opens the room in `dir`. The process must be in a network namespace of its own.
    ///
    /// # Errors
    /// When the network cannot be set up or a service does not start.
    pub async fn open(dir: &Path) -> Result<Self> {
        Self::with(dir, Addressing::default()).await
    }

    /// Opens a room with other addresses.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn with(dir: &Path, addressing: Addressing) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
        let network = Network::set_up()?;
        let boot_server = BootServer::start(dir, addressing)?;
        Ok(Self {
            dir: dir.to_owned(),
            images: Images::serve((CONTROLLER, IMAGE_PORT).into()).await?,
            greetings: Greetings::serve(GREETING_PORT).await?,
            network,
            boot_server,
        })
    }

    /// Starts a controller whose data and log are in the room's directory.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn controller(&self, inspection: &Inspection, options: ServeOptions) -> Result<Controller> {
        Controller::start(&self.dir, inspection, options).await
    }

    /// Serves iPXE another script than the operators' first stage from now on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn serve_to_ipxe(&self, script: &str) -> Result<()> {
        self.boot_server.serve_to_ipxe(script)
    }

    /// A new address on the provisioning network, to ask from as one more machine.
    ///
    /// # Errors
    /// When it cannot be added.
    pub fn client_address(&mut self) -> Result<Ipv4Addr> {
        self.network.client_address()
    }

    /// Puts a server into the room, off, with its BMC answering.
    ///
    /// # Errors
    /// When a network port or the BMC cannot be made.
    pub async fn server(&mut self, plan: ServerPlan) -> Result<Server> {
        Server::install(&self.dir, &mut self.network, plan).await
    }
}
