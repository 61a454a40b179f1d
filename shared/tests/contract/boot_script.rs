//! The rendered boot script, byte by byte.

use farrier_shared::contract::cmdline::{BootParams, BootScript, MAX_SCRIPT, ScriptError};
use farrier_shared::contract::{Digest, DiskPin, HostKey, StaticIp, Token, WebUrl};

const GOLDEN: &str = include_str!("golden_boot_script.txt");

struct Parts {
    image: WebUrl,
    api: WebUrl,
    host: HostKey,
    token: Token,
    target: WebUrl,
    digest: Digest,
    ca: Vec<u8>,
    disk: DiskPin,
    ip: StaticIp,
}

fn parts() -> Parts {
    Parts {
        image: "http://images.example/inspection".parse().unwrap(),
        api: "https://controller.example:8082".parse().unwrap(),
        host: HostKey::new("contract-test".parse().unwrap(), "host-01".parse().unwrap()),
        token: "test-token-0123456789abcdef0000000000000000".parse().unwrap(),
        target: "https://images.example/os.raw.zst".parse().unwrap(),
        digest: Digest::from_bytes([0xab; 32]),
        ca: b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n".to_vec(),
        disk: "/dev/vda".parse().unwrap(),
        ip: "192.0.2.10::192.0.2.1:24:192.0.2.53".parse().unwrap(),
    }
}

fn script(parts: &Parts) -> BootScript<'_> {
    BootScript {
        inspection_image: &parts.image,
        api: &parts.api,
        host: &parts.host,
        token: &parts.token,
        target: &parts.target,
        target_digest: &parts.digest,
        ca_pem: &parts.ca,
        disk: Some(&parts.disk),
        static_ip: None,
        bootif: Some("52:54:00:12:34:56".parse().unwrap()),
        extra: &[],
        quiet: false,
        efi: false,
    }
}

#[test]
fn the_script_is_the_golden_one() {
    assert_eq!(script(&parts()).render().unwrap(), GOLDEN);
}

#[test]
fn rendering_is_pure() {
    let parts = parts();
    assert_eq!(script(&parts).render(), script(&parts).render());
}

#[test]
fn optional_parts_stand_in_their_order_or_not_at_all() {
    let parts = parts();
    let all = BootScript { static_ip: Some(&parts.ip), ..script(&parts) }.render().unwrap();
    let tail = " beskar7.disk=/dev/vda beskar7.ip=192.0.2.10::192.0.2.1:24:192.0.2.53 BOOTIF=01-52-54-00-12-34-56\ninitrd ";
    assert!(all.contains(tail), "{all}");
    let none = BootScript { disk: None, bootif: None, ..script(&parts) }.render().unwrap();
    assert!(!none.contains("beskar7.disk") && !none.contains("BOOTIF") && !none.contains("beskar7.ip"));
    assert!(!none.contains("  ") && !none.contains(" \n"), "single spaces only");
}

#[test]
fn additions_come_last_and_cannot_break_out_of_their_word() {
    let parts = parts();
    let extra = [("run", "0123456789abcdef"), ("verify", "full")];
    let text = BootScript { extra: &extra, quiet: true, efi: true, ..script(&parts) }.render().unwrap();
    assert!(
        text.contains(" farrier.run=0123456789abcdef farrier.verify=full loglevel=5 initrd=initrd.img\n"),
        "{text}"
    );
    for (key, value) in [("run", "a b"), ("run", "a\nboot"), ("r un", "a"), ("run", "\"a"), ("r=n", "a")] {
        let extra = [(key, value)];
        let error = BootScript { extra: &extra, ..script(&parts) }.render().unwrap_err();
        assert!(matches!(error, ScriptError::Unsafe { .. }), "{key} {value:?}");
    }
}

#[test]
fn s096_a_script_may_have_4096_bytes_and_not_one_more() {
    let mut parts = parts();
    parts.ca.clear();
    let bare = script(&parts).render().unwrap().len();
    let room = MAX_SCRIPT - bare;
    parts.ca = vec![b'x'; room / 4 * 3];
    let full = script(&parts).render().unwrap().len();
    assert!(full <= MAX_SCRIPT && full > MAX_SCRIPT - 4);
    parts.ca.extend_from_slice(b"xxx");
    assert_eq!(script(&parts).render(), Err(ScriptError::TooLong { len: full + 4 }));
}

#[test]
fn what_is_rendered_is_what_is_parsed() {
    let parts = parts();
    let kernel = GOLDEN.lines().nth(1).unwrap();
    let params = BootParams::parse(kernel).unwrap();
    assert_eq!((params.api, params.host, params.token), (parts.api, parts.host, parts.token));
    assert_eq!((params.target, params.target_digest), (parts.target, parts.digest));
    assert_eq!((params.ca_pem, params.disk), (parts.ca, Some(parts.disk)));
    assert_eq!(params.bootif.unwrap().to_string(), "52:54:00:12:34:56");
    assert_eq!(params.provider_id.to_string(), "b7://contract-test/host-01");
}
