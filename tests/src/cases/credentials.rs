//! Nonces and tokens that must not count: wrong, expired, used up, somebody else's.
//!
//! The servers here draw power and do nothing; the test plays firmware and agent itself.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use farrier_shared::lifecycle::credentials::Credentials;
use reqwest::{Client, Method};
use serde_json::Value;

use super::Given;
use super::run::{self, Order, UserData};
use crate::lab::{
    BOOT_PORT, CALLBACK_PORT, CONTROLLER, Controller, Lab, ServeOptions, Server, ServerPlan, age,
    credentials, until,
};
use crate::secrets::{self, Secret};

/// A token of the right form that nobody was given.
const WRONG: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

pub(super) async fn run(given: &Given) -> Result<()> {
    let mut lab = Lab::open(&given.dir).await?;
    let mut controller = lab.controller(&given.inspection, ServeOptions::default()).await?;
    let mut servers = Vec::new();
    let mut secrets = Vec::new();
    for name in ["mine", "foreign", "late"] {
        let server = lab.server(ServerPlan { runs: false, ..ServerPlan::new(name) }).await?;
        run::enrol(&controller, &server).await?;
        let user_data = UserData::new()?;
        let image = lab.images.url("never-fetched.raw");
        let digest = format!("sha256:{}", "0".repeat(64));
        let order = Order::of(&image, &digest, &user_data);
        run::provision(&lab, &controller, name, &order).await?;
        run::reaches(&controller, name, "Inspecting", Duration::from_secs(60)).await?;
        let minted = credentials(&controller.data_dir(), name).await?;
        secrets.extend(run::hidden(&minted, &server));
        secrets.push(user_data.secret.clone());
        servers.push((server, minted));
    }
    let [mine, foreign, late] =
        <[(Server, Credentials); 3]>::try_from(servers).ok().context("three servers")?;

    // A host whose credentials have run out while it was booting.
    controller.kill().await?;
    age(&controller.data_dir(), "late").await?;
    controller.resume().await?;

    nonces(&mut lab, &controller, &mine.1, &foreign.1, &late.1).await?;
    tokens(&given.dir, &controller, &mine.1, &foreign.1, &late.1).await?;

    secrets.push(Secret { name: "invented token", text: WRONG.to_owned() });
    let leaks = secrets::leaks(&given.dir, &secrets)?;
    ensure!(leaks.is_empty(), "secrets in logs: {leaks:#?}");
    Ok(())
}

/// An answer without its date: all that a caller could tell two refusals apart by.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

async fn nonces(
    lab: &mut Lab,
    controller: &Controller,
    mine: &Credentials,
    foreign: &Credentials,
    late: &Credentials,
) -> Result<()> {
    // The rate limit counts by address: every question here comes from another one.
    let path = |host: &str, nonce: &str| {
        format!("http://{CONTROLLER}:{BOOT_PORT}/api/v1/boot/default/{host}/{nonce}?platform=efi")
    };
    let before = settled(controller).await?;
    let mut refusals = Vec::new();
    for (what, url) in [
        ("an unknown host", path("nobody", mine.nonce.expose())),
        ("a wrong nonce", path("mine", WRONG)),
        ("a foreign nonce", path("mine", foreign.nonce.expose())),
        ("an expired nonce", path("late", late.nonce.expose())),
        ("an empty nonce", path("mine", "")),
        ("a malformed host", path("Mine..", mine.nonce.expose())),
        ("a token for a nonce", path("mine", mine.token.expose())),
    ] {
        refusals.push((what, get(lab.client_address()?, &url).await?));
    }
    unchanged(controller, &before, "a refused nonce").await?;

    let url = path("mine", mine.nonce.expose());
    let firmware = lab.client_address()?;
    let first = get(firmware, &url).await?;
    ensure!(first.status == 200 && first.body.contains(mine.token.expose()), "the boot script is {first:?}");
    let consumed = settled(controller).await?;
    ensure!(get(firmware, &url).await? == first, "the same firmware gets another script");
    refusals.push(("a used nonce from elsewhere", get(lab.client_address()?, &url).await?));
    unchanged(controller, &consumed, "a used nonce").await?;
    alike(&refusals, 404)
}

async fn tokens(
    dir: &std::path::Path,
    controller: &Controller,
    mine: &Credentials,
    foreign: &Credentials,
    late: &Credentials,
) -> Result<()> {
    let client = https(dir)?;
    let token = mine.token.expose();
    let bearers = [
        ("no token", "mine", None),
        ("an empty token", "mine", Some("Bearer ".to_owned())),
        ("another scheme", "mine", Some(format!("Basic {token}"))),
        ("a wrong token", "mine", Some(format!("Bearer {WRONG}"))),
        ("a foreign token", "mine", Some(format!("Bearer {}", foreign.token.expose()))),
        ("a nonce for a token", "mine", Some(format!("Bearer {}", mine.nonce.expose()))),
        ("a token and more", "mine", Some(format!("Bearer {token} {token}"))),
        ("half a token", "mine", Some(format!("Bearer {}", &token[..21]))),
        ("an expired token", "late", Some(format!("Bearer {}", late.token.expose()))),
        ("an unknown host", "nobody", Some(format!("Bearer {token}"))),
    ];
    let calls = [
        (Method::POST, "inspection"),
        (Method::GET, "bootstrap"),
        (Method::POST, "provisioned"),
        (Method::POST, "provision-failed"),
        (Method::POST, "events"),
    ];
    let before = settled(controller).await?;
    let mut refusals = Vec::new();
    for (method, call) in &calls {
        for (what, host, bearer) in &bearers {
            let url = format!("https://{CONTROLLER}:{CALLBACK_PORT}/api/v1/{call}/default/{host}");
            let mut request = client.request(method.clone(), url);
            if *method == Method::POST {
                request = request.body(r#"{"status":"provisioned","reason":"forged","event":"Alive"}"#);
            }
            if let Some(bearer) = bearer {
                request = request.header("authorization", bearer);
            }
            refusals.push((*what, answer(request).await?));
        }
    }
    alike(&refusals, 401)?;
    ensure!(refusals[0].1.body == r#"{"error":"unauthorized"}"#, "the refusal is {:?}", refusals[0].1);
    unchanged(controller, &before, "a refused token").await?;

    // The same questions with the right token are answered: it was the token that was refused.
    let url = format!("https://{CONTROLLER}:{CALLBACK_PORT}/api/v1/bootstrap/default/mine");
    let served = answer(client.get(url).bearer_auth(token)).await?;
    ensure!(
        served.status == 200 && served.body.starts_with("#cloud-config"),
        "user-data is {}",
        served.status
    );
    Ok(())
}

fn alike(refusals: &[(&str, Answer)], status: u16) -> Result<()> {
    let (_, first) = refusals.first().context("there are refusals")?;
    ensure!(first.status == status, "refused with {}", first.status);
    for (what, answer) in refusals {
        ensure!(answer == first, "{what} is answered {answer:?}, others {first:?}");
    }
    Ok(())
}

/// The objects once nothing the controller does by itself changes them any more.
async fn settled(controller: &Controller) -> Result<Vec<Value>> {
    let mut last = Vec::new();
    let still = async || {
        let now = objects(controller).await?;
        let same = now == last;
        last.clone_from(&now);
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok((same, now))
    };
    let (_, objects) =
        until(Duration::from_secs(60), "the controller to settle", still, |(same, _)| *same).await?;
    Ok(objects)
}

/// Checks that the objects are as they were.
async fn unchanged(controller: &Controller, before: &[Value], by: &str) -> Result<()> {
    let now = objects(controller).await?;
    let changed = before.iter().zip(&now).find(|(before, now)| before != now);
    ensure!(changed.is_none() && before.len() == now.len(), "{by} changed something: {changed:#?}");
    Ok(())
}

/// Every host and machine with its history, except what the passage of time changes.
async fn objects(controller: &Controller) -> Result<Vec<Value>> {
    let admin = controller.admin()?;
    let mut all = vec![admin.list("secrets").await?];
    for collection in ["hosts", "machines"] {
        let list = admin.list(collection).await?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        all.extend(items.into_iter().map(|mut item| {
            // The two that a look at the BMC may touch at any time.
            if let Some(metadata) = item["metadata"].as_object_mut() {
                metadata.remove("resourceVersion");
            }
            item
        }));
    }
    for host in ["mine", "foreign", "late"] {
        all.push(admin.history(host).await?.into());
    }
    Ok(all)
}

async fn get(from: Ipv4Addr, url: &str) -> Result<Answer> {
    let client = Client::builder().local_address(std::net::IpAddr::from(from)).build()?;
    answer(client.get(url)).await
}

async fn answer(request: reqwest::RequestBuilder) -> Result<Answer> {
    let response = request.timeout(Duration::from_secs(20)).send().await?;
    let status = response.status().as_u16();
    let mut headers: Vec<_> = response
        .headers()
        .iter()
        .filter(|(name, _)| *name != "date")
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    headers.sort();
    Ok(Answer { status, headers, body: response.text().await? })
}

/// A client that trusts the controller's own CA and no other.
fn https(dir: &std::path::Path) -> Result<Client> {
    let pem = std::fs::read(dir.join("data/tls/ca.crt")).context("read the controller's CA")?;
    let ca = reqwest::Certificate::from_pem(&pem)?;
    Ok(Client::builder().tls_certs_only([ca]).build()?)
}
