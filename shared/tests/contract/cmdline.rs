//! The kernel command line, rendered and parsed back, and what a parser must refuse.

use std::collections::HashMap;
use std::time::Duration;

use farrier_shared::contract::cmdline::{BootParams, BootScript, CmdlineError};
use farrier_shared::contract::mac::MacAddress;
use farrier_shared::contract::{Digest, DiskPin, HostKey, Name, ProviderId, StaticIp, Token, WebUrl};
use proptest::option::of;
use proptest::prelude::*;

fn good() -> Vec<(&'static str, String)> {
    let hex = "0".repeat(64);
    vec![
        ("beskar7.api", "https://controller.example:8082".to_owned()),
        ("beskar7.namespace", "default".to_owned()),
        ("beskar7.host", "host-01".to_owned()),
        ("beskar7.token", "A".repeat(43)),
        ("beskar7.target", "http://images.example/os.raw".to_owned()),
        ("beskar7.target-digest", format!("sha256:{hex}")),
        ("beskar7.provider-id", "b7://default/host-01".to_owned()),
        ("beskar7.ca", "UEVN".to_owned()),
    ]
}

fn line(words: &[(&str, String)]) -> String {
    words.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn s167_all_missing_keys_are_named_at_once_and_no_value_ever() {
    let error = BootParams::parse("quiet beskar7.token=SECRET beskar7.host=").unwrap_err();
    let text = error.to_string();
    for (key, _) in good().iter().filter(|(k, _)| *k != "beskar7.token") {
        assert!(text.contains(key), "{key}");
    }
    assert!(!text.contains("SECRET") && !text.contains("beskar7.token"));
}

#[test]
fn each_required_key_is_required() {
    for index in 0..good().len() {
        let mut words = good();
        let (key, _) = words.remove(index);
        assert_eq!(BootParams::parse(&line(&words)), Err(CmdlineError::Missing { keys: vec![key] }));
    }
}

#[test]
fn bad_values_are_fatal_and_not_repeated() {
    let bad = [
        ("beskar7.api", "ftp://x"),
        ("beskar7.namespace", "Default"),
        ("beskar7.host", "host_01"),
        ("beskar7.token", "SECRETSECRET"),
        ("beskar7.target", "file:///SECRET"),
        ("beskar7.target-digest", "sha512:SECRET"),
        ("beskar7.provider-id", "b7://SECRET"),
        ("beskar7.ca", "SECRET*"),
        ("beskar7.disk", "/dev/SECRET;reboot"),
        ("beskar7.ip", "SECRET"),
        ("beskar7.timeout", "SECRET"),
        ("BOOTIF", "SECRET"),
    ];
    for (key, value) in bad {
        let mut words = good();
        words.retain(|(k, _)| *k != key);
        words.push((key, value.to_owned()));
        let error = BootParams::parse(&line(&words)).unwrap_err();
        assert!(matches!(error, CmdlineError::Invalid { key: k, .. } if k == key), "{key}: {error}");
        assert!(!error.to_string().contains("SECRET"), "{error}");
    }
}

#[test]
fn the_last_duplicate_counts_unknown_keys_do_not_and_padding_stays() {
    let mut words = good();
    words.insert(0, ("beskar7.host", "first".to_owned()));
    words.push(("beskar7.ca", "UEVNLQ==".to_owned()));
    words.push(("beskar7.future", "x".to_owned()));
    words.push(("console", "ttyS0".to_owned()));
    words.push(("farrier.run", "r1".to_owned()));
    let params = BootParams::parse(&format!("BOOT_IMAGE=/vmlinuz quiet {}", line(&words))).unwrap();
    assert_eq!(params.host.name.as_str(), "host-01");
    assert_eq!(params.ca_pem, b"PEM-");
    assert_eq!(params.extra, HashMap::from([("run".to_owned(), "r1".to_owned())]));
    assert_eq!((params.timeout, params.debug), (Duration::from_secs(1800), false));
}

#[test]
fn nothing_secret_is_in_the_debug_text() {
    let params = BootParams::parse(&line(&good())).unwrap();
    assert!(!format!("{params:?}").contains(&"A".repeat(43)));
}

fn name() -> impl Strategy<Value = Name> {
    "[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?(\\.[a-z0-9]{1,4})?".prop_map(|s| s.parse().unwrap())
}

fn url() -> impl Strategy<Value = WebUrl> {
    ("(http|https)://[a-z0-9]{1,10}\\.example(:[1-9][0-9]{0,3})?", "(/[A-Za-z0-9._~%20=&?'-]{0,12}){0,3}")
        .prop_filter_map("a URL", |(origin, path)| format!("{origin}{path}").parse().ok())
}

prop_compose! {
    fn static_ip()(a in any::<[u8; 4]>(), g in of(any::<[u8; 4]>()), mask in 0..=32_u8, dns in of(any::<[u8; 4]>()))
        -> StaticIp {
        let show = |b: [u8; 4]| std::net::Ipv4Addr::from(b).to_string();
        let dns = dns.map(|d| format!(":{}", show(d))).unwrap_or_default();
        format!("{}::{}:{mask}{dns}", show(a), g.map(show).unwrap_or_default()).parse().unwrap()
    }
}

proptest! {
    #[test]
    fn rendered_lines_parse_back(
        image in url(), api in url(), target in url(), namespace in name(), host in name(),
        token in any::<[u8; 32]>(), digest in any::<[u8; 32]>(), ca in prop::collection::vec(any::<u8>(), 1..200),
        disk in of("[A-Za-z0-9._:/+-]{1,30}"), ip in of(static_ip()), mac in of(any::<[u8; 6]>()),
        extra in prop::collection::hash_map("[a-z][a-z-]{0,8}", "[A-Za-z0-9:,./_-]{1,12}", 0..3), efi: bool,
    ) {
        let host = HostKey::new(namespace, host);
        let disk: Option<DiskPin> = disk.map(|d| d.parse().unwrap());
        let pairs: Vec<(&str, &str)> = extra.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let token = Token::from_random(token);
        let digest = Digest::from_bytes(digest);
        let bootif = mac.map(MacAddress::from_bytes);
        let script = BootScript {
            inspection_image: &image, api: &api, host: &host, token: &token, target: &target,
            target_digest: &digest, ca_pem: &ca, disk: disk.as_ref(), static_ip: ip.as_ref(), bootif,
            extra: &pairs, quiet: efi, efi,
        }.render().unwrap();
        let lines: Vec<&str> = script.lines().collect();
        prop_assert_eq!(lines.len(), 4);
        prop_assert!(script.ends_with("boot\n"));
        let params = BootParams::parse(lines[1].strip_prefix("kernel ").unwrap()).unwrap();
        let expected = BootParams {
            api, provider_id: ProviderId::of(&host), host, token, target, target_digest: digest, ca_pem: ca,
            disk, static_ip: ip, timeout: Duration::from_secs(1800), debug: false, bootif, extra,
        };
        prop_assert_eq!(params, expected);
    }

    #[test]
    fn no_line_panics_the_parser(line in ".{0,300}") {
        let _ = BootParams::parse(&line);
    }
}
