//! A host and a machine as operators make them, once the reconcilers have put their hold on them.

use farrier_shared::contract::digest::Digest;
use farrier_shared::contract::name::Name;
use farrier_shared::lifecycle::host_view;
use farrier_shared::resource::host::{PhysicalHostSpec, RedfishConnection};
use farrier_shared::resource::machine::Beskar7MachineSpec;
use farrier_shared::resource::{Beskar7Machine, ObjectMeta, PhysicalHost};

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn host_named(text: &str) -> PhysicalHost {
    let mut metadata = ObjectMeta::new(name("default"), name(text));
    metadata.uid = format!("{text}-uid");
    metadata.finalizers.push(host_view::HOST_FINALIZER.to_owned());
    let redfish_connection = RedfishConnection {
        address: "https://bmc.example".parse().unwrap(),
        credentials_secret_ref: name("bmc"),
        insecure_skip_verify: None,
        ca_bundle_secret_ref: None,
    };
    let spec = PhysicalHostSpec {
        redfish_connection,
        consumer_ref: None,
        boot_mac_addresses: Vec::new(),
        boot_mode: None,
        agent_options: Default::default(),
    };
    PhysicalHost::new(metadata, spec)
}

pub(crate) fn machine_named(text: &str) -> Beskar7Machine {
    let mut metadata = ObjectMeta::new(name("default"), name(text));
    metadata.uid = format!("{text}-uid");
    metadata.finalizers.push(farrier_shared::lifecycle::machine::MACHINE_FINALIZER.to_owned());
    let spec = Beskar7MachineSpec {
        provider_id: None,
        inspection_image_url: "http://images.example/inspection".parse().unwrap(),
        target_image_url: "http://images.example/os.raw".parse().unwrap(),
        target_image_digest: Some(Digest::from_bytes([7; 32])),
        target_image_digest_url: None,
        target_disk: None,
        static_ip: None,
        hardware_requirements: None,
        host_selector: None,
        host_name: None,
        bootstrap: None,
        agent_options: Default::default(),
    };
    Beskar7Machine::new(metadata, spec)
}
