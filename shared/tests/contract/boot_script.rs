//! The rendered boot script, byte by byte.

use farrier_shared::contract::cmdline::{BootParams, BootScript, MAX_SCRIPT, ScriptError};
use farrier_shared::contract::cut_line::{MAX_LINE, check_whole};
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
        text.contains(
            " farrier.run=0123456789abcdef farrier.verify=full loglevel=5 initrd=initrd.img farrier.end=1\n"
        ),
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
    // The image's place stands in the script twice, and in the kernel's line not at all.
    let mut sized = |len: usize| {
        parts.image = format!("http://images.example/{}", "i".repeat(len)).parse().unwrap();
        script(&parts).render().map(|script| script.len())
    };
    let room = (MAX_SCRIPT - sized(1).unwrap()) / 2;
    let full = sized(1 + room).unwrap();
    assert!(full <= MAX_SCRIPT && full > MAX_SCRIPT - 2);
    assert_eq!(sized(2 + room), Err(ScriptError::TooLong { len: full + 2 }));
}

#[test]
fn a_kernel_line_may_have_2047_bytes_and_not_one_more() {
    let ours: &[(&str, &str)] = &[("run", "r1")];
    for extra in [&[], ours] {
        let mut parts = parts();
        let line = |parts: &Parts| {
            let script = BootScript { extra, efi: true, ..script(parts) }.render()?;
            let kernel = script.lines().nth(1).unwrap();
            Ok::<_, ScriptError>(
                kernel.strip_prefix("kernel http://images.example/inspection/").unwrap().to_owned(),
            )
        };
        let bare = line(&parts).unwrap().len();
        let target =
            |room: usize| format!("{}/{}", "https://images.example/os.raw.zst", "t".repeat(room - 1));
        parts.target = target(MAX_LINE - bare).parse().unwrap();
        let full = line(&parts).unwrap();
        assert_eq!(full.len(), MAX_LINE);
        assert_eq!(check_whole(&full), Ok(()), "what is rendered is whole");
        parts.target = target(MAX_LINE - bare + 1).parse().unwrap();
        let error = line(&parts).unwrap_err();
        assert_eq!(error, ScriptError::LineTooLong { len: MAX_LINE + 1, ca: parts.ca.len().div_ceil(3) * 4 });
    }
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
