//! What operators get wrong: an error that names the field, an exit code, and nothing stored.

use std::time::Duration;

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::Given;
use super::run;
use crate::lab::{Controller, Lab, ServeOptions, ServerPlan};

const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

pub(super) async fn run(given: &Given) -> Result<()> {
    let mut lab = Lab::open(&given.dir).await?;
    let controller = lab.controller(&given.inspection, ServeOptions::default()).await?;
    // Not enrolled: nothing may change but by the input under test.
    let server = lab.server(ServerPlan { runs: false, ..ServerPlan::new("anvil") }).await?;
    let user_data = given.dir.join("user-data");
    std::fs::write(&user_data, "#cloud-config\n")?;

    let empty = stored(&controller).await?;
    files(&controller).await?;
    requests(&controller).await?;
    ensure!(stored(&controller).await? == empty, "something was stored");

    run::enrol(&controller, &server).await?;
    let before = stored(&controller).await?;
    flags(&controller, &user_data.display().to_string()).await?;
    duplicates(&controller, &server.manifest()).await?;
    ensure!(stored(&controller).await? == before, "something was stored");
    reaching(&controller, &given.dir.join("nowhere.sock").display().to_string()).await
}

fn host(spec: &str) -> String {
    format!(
        "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: PhysicalHost\nmetadata:\n  name: bad\nspec:\n{spec}"
    )
}

fn machine(spec: &str) -> String {
    format!(
        "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: Beskar7Machine\nmetadata:\n  name: bad\nspec:\n{spec}"
    )
}

/// YAML files: each with the words its error must have.
async fn files(controller: &Controller) -> Result<()> {
    let good_host =
        "  redfishConnection:\n    address: https://10.77.1.1:8443\n    credentialsSecretRef: x\n";
    let image = "  inspectionImageURL: http://10.77.0.1/i\n";
    let target = "  targetImageURL: http://10.77.0.1/os.raw\n";
    let digest = format!("  targetImageDigest: {DIGEST}\n");
    let table = [
        (host(&format!("{good_host}  colour: red\n")), vec!["colour"]),
        (
            host("  redfishConnection:\n    address: ftp://10.77.1.1\n    credentialsSecretRef: x\n"),
            vec!["address"],
        ),
        (host("  redfishConnection:\n    address: https://10.77.1.1\n"), vec!["credentialsSecretRef"]),
        (host(&format!("{good_host}  bootMACAddresses: [\"52:54:00\"]\n")), vec!["bootMACAddresses"]),
        (machine(&format!("{image}{target}  targetImageDigest: sha256:abc\n")), vec!["targetImageDigest"]),
        (
            machine(&format!("{image}{target}  targetImageDigest: {}\n", DIGEST.to_uppercase())),
            vec!["targetImageDigest"],
        ),
        (machine(&format!("{image}  targetImageURL: not a URL\n{digest}")), vec!["targetImageURL"]),
        (machine(&format!("{image}{target}")), vec!["targetImageDigest"]),
        (machine(&format!("{image}{target}{digest}  targetDisc: /dev/sda\n")), vec!["targetDisc"]),
        (machine(&format!("{image}{target}{digest}  staticIP: 10.0.0.1\n")), vec!["staticIP"]),
        (host(good_host).replace("name: bad", "name: Not_A_Name"), vec!["name"]),
        (host(good_host).replace("PhysicalHost", "PhysicalGhost"), vec!["kind", "PhysicalGhost"]),
        (format!("{}---\n{}", host(good_host), host(good_host)), vec!["metadata.name", "bad"]),
        (format!("{}---\n{}", host(good_host), host("  nothing: right\n")), vec!["standard input:"]),
        ("just text".to_owned(), vec!["standard input"]),
        (String::new(), vec!["standard input"]),
    ];
    for (yaml, words) in table {
        let said = controller.cli(&["apply", "-f", "-"], &yaml).await?;
        ensure!(said.code == Some(2), "apply ended with {:?} on:\n{yaml}\n{}", said.code, said.err);
        for word in words {
            ensure!(said.err.contains(word), "the error does not say {word:?}: {}on:\n{yaml}", said.err);
        }
    }
    Ok(())
}

/// JSON requests: each with the status and the field of its error.
async fn requests(controller: &Controller) -> Result<()> {
    let admin = controller.admin()?;
    let machine = |change: (&str, Value)| {
        let mut body = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "Beskar7Machine",
            "metadata": { "name": "bad", "namespace": "default" },
            "spec": {
                "inspectionImageURL": "http://10.77.0.1/i",
                "targetImageURL": "http://10.77.0.1/os.raw",
                "targetImageDigest": DIGEST,
            },
        });
        body["spec"][change.0] = change.1;
        body.to_string()
    };
    let table = [
        (machine(("colour", json!("red"))), "colour"),
        (machine(("targetImageDigest", json!("sha256:abc"))), "targetImageDigest"),
        (machine(("targetImageURL", json!("nonsense"))), "targetImageURL"),
        (machine(("targetDisk", json!("/dev/sda;reboot"))), "targetDisk"),
        ("{".to_owned(), ""),
        ("[]".to_owned(), ""),
    ];
    for (body, field) in table {
        let path = "/apis/v1/namespaces/default/machines";
        let (status, text) = admin.request(Method::POST, path, body.clone()).await?;
        ensure!(status.is_client_error(), "{status} to {body}");
        let error: Value = serde_json::from_str(&text)?;
        ensure!(
            error["error"]["problem"].as_str().is_some_and(|told| !told.is_empty()),
            "no problem in {text}"
        );
        ensure!(error["error"].to_string().contains(field), "no {field} in {text}");
    }
    Ok(())
}

/// Flags of `provision`: each with its exit code and a word of its error.
async fn flags(controller: &Controller, user_data: &str) -> Result<()> {
    let good = ["anvil", "http://10.77.0.1/os.raw", DIGEST, user_data];
    let table = [
        (0, "nobody", 4, "nobody"),
        (0, "Not A Name", 2, "HOST"),
        (1, "ftp://10.77.0.1/os.raw", 2, "--image"),
        (1, "os.raw", 2, "--image"),
        (2, "sha256:abc", 2, "--digest"),
        (2, "md5:abc", 2, "--digest"),
        (3, "/nowhere/user-data", 2, "--user-data"),
    ];
    for (index, bad, code, word) in table {
        let mut given = good;
        given[index] = bad;
        let [host, image, digest, file] = given;
        let args = ["provision", host, "--image", image, "--digest", digest, "--user-data", file];
        let said = controller.cli(&args, "").await?;
        ensure!(said.code == Some(code), "provision {given:?} ended with {:?}: {}", said.code, said.err);
        ensure!(said.err.contains(word), "the error does not say {word:?}: {}", said.err);
    }
    let said = controller.cli(&["get", "hosts", "--colour"], "").await?;
    ensure!(said.code == Some(2) && said.err.contains("--colour"), "an unknown flag: {said:?}");
    let said = controller.cli(&["get", "hosts", "nobody"], "").await?;
    ensure!(said.code == Some(4) && said.err.contains("nobody"), "an unknown host: {said:?}");
    Ok(())
}

/// A name that is taken is an error for whoever wants to create it.
async fn duplicates(controller: &Controller, manifest: &str) -> Result<()> {
    let admin = controller.admin()?;
    let host = admin.host("anvil").await?;
    let body = json!({
        "apiVersion": host["apiVersion"],
        "kind": "PhysicalHost",
        "metadata": { "name": "anvil", "namespace": "default" },
        "spec": host["spec"],
    });
    let path = "/apis/v1/namespaces/default/hosts";
    let (status, text) = admin.request(Method::POST, path, body.to_string()).await?;
    ensure!(status == 409 && text.contains("metadata.name") && text.contains("anvil"), "{status} {text}");
    let twice = format!("{manifest}---\n{manifest}");
    let said = controller.cli(&["apply", "-f", "-"], &twice).await?;
    ensure!(said.code == Some(2) && said.err.contains("metadata.name"), "the same twice: {said:?}");
    Ok(())
}

/// No controller is its own exit code.
async fn reaching(controller: &Controller, nowhere: &str) -> Result<()> {
    let said = controller.cli(&["get", "hosts", "--admin-socket", nowhere], "").await?;
    ensure!(said.code == Some(3) && said.err.contains(nowhere), "no controller: {said:?}");
    Ok(())
}

/// Every object, but for what looking at the BMC changes.
async fn stored(controller: &Controller) -> Result<Vec<Value>> {
    tokio::time::sleep(Duration::from_millis(200)).await;
    let admin = controller.admin()?;
    let mut all = Vec::new();
    for collection in ["hosts", "machines", "secrets"] {
        let list = admin.list(collection).await?;
        for item in list["items"].as_array().cloned().unwrap_or_default() {
            all.push(json!([item["metadata"]["name"], item["kind"], item["spec"], item["dataSizes"]]));
        }
    }
    Ok(all)
}
