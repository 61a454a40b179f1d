//! The objects an operator writes for a fleet.

use serde_json::{Value, json};

use super::bmc::{PASSWORD, USER};
use super::{NAMESPACE, address, mac, name};

const API_VERSION: &str = "infrastructure.cluster.x-k8s.io/v1beta2";
const LOGIN: &str = "bmc-login";
const CERTIFICATE: &str = "bmc-certificate";

/// The login of all BMCs, which says where it may go and whose certificate to believe.
pub(super) fn login() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": LOGIN, "namespace": NAMESPACE,
            "annotations": {
                "beskar7.infrastructure.cluster.x-k8s.io/bmc-addresses": "127.0.0.0/8",
                "beskar7.infrastructure.cluster.x-k8s.io/bmc-ca-secret": CERTIFICATE,
            },
        },
        "stringData": { "username": USER, "password": PASSWORD },
    })
}

/// The certificate all BMCs show.
pub(super) fn certificate(pem: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": CERTIFICATE, "namespace": NAMESPACE },
        "stringData": { "ca.crt": pem },
    })
}

pub(super) fn host(number: usize, bmc_port: u16) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "PhysicalHost",
        "metadata": { "name": name(number), "namespace": NAMESPACE },
        "spec": {
            "bootMACAddresses": [mac(number)],
            "redfishConnection": {
                "address": format!("https://{}:{bmc_port}", address(number)),
                "credentialsSecretRef": LOGIN,
                "caBundleSecretRef": CERTIFICATE,
            },
        },
    })
}

/// Each machine has user-data of its own, as machines have.
pub(super) fn user_data(number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": format!("{}-user-data", name(number)), "namespace": NAMESPACE },
        "stringData": { "value": format!("#cloud-config\nhostname: {}\n", name(number)) },
    })
}

pub(super) fn machine(number: usize) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "Beskar7Machine",
        "metadata": { "name": name(number), "namespace": NAMESPACE },
        "spec": {
            "inspectionImageURL": "http://127.0.0.1/images/inspection",
            "targetImageURL": "http://127.0.0.1/images/os.raw",
            "targetImageDigest": format!("sha256:{}", "ab".repeat(32)),
            "hardwareRequirements": { "minCPUCores": 8, "minMemoryGB": 64, "minDiskGB": 100 },
            "bootstrap": { "dataSecretName": format!("{}-user-data", name(number)) },
        },
    })
}
