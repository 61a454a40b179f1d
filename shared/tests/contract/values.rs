//! Small values: what is taken, what is refused, and that text survives unchanged.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use farrier_shared::contract::mac::MacAddress;
use farrier_shared::contract::{Digest, DiskPin, Name, ProviderId, StaticIp, Time, WebUrl};
use proptest::prelude::*;

fn takes<T: FromStr + Display>(good: &[&str])
where
    T::Err: Display,
{
    for text in good {
        match text.parse::<T>() {
            Ok(value) => assert_eq!(value.to_string(), *text),
            Err(error) => panic!("{text:?}: {error}"),
        }
    }
}

fn refuses<T: FromStr>(bad: &[&str]) {
    for text in bad {
        assert!(text.parse::<T>().is_err(), "{text:?}");
    }
}

#[test]
fn digests() {
    let hex = "0123456789abcdef".repeat(4);
    takes::<Digest>(&[&format!("sha256:{hex}")]);
    refuses::<Digest>(&[
        "",
        &hex,
        "sha256:",
        &format!("sha256:{}", hex.to_uppercase()),
        &format!("SHA256:{hex}"),
        &format!("sha512:{hex}{hex}"),
        &format!("sha256:{hex}0"),
        &format!("sha256:{}", &hex[1..]),
        &format!(" sha256:{hex}"),
        &format!("sha256:{hex}\n"),
        &format!("sha256:g{}", &hex[1..]),
    ]);
}

#[test]
fn names() {
    let longest = "a".repeat(253);
    takes::<Name>(&["a", "host-01", "a.b.c", "0", &longest]);
    refuses::<Name>(&[
        "",
        "-a",
        "a-",
        "A",
        "a_b",
        "a..b",
        ".a",
        "a.",
        "a/b",
        "a b",
        "ä",
        "a\n",
        "..",
        &"a".repeat(254),
    ]);
}

#[test]
fn urls() {
    takes::<WebUrl>(&[
        "http://x",
        "https://x.example:8443/a/b?c=d&e=f#g",
        "http://192.0.2.1/a%20b",
        "http://[2001:db8::1]:80/",
        "https://x/it's",
        "HTTP://X/",
    ]);
    refuses::<WebUrl>(&[
        "",
        "x",
        "/x",
        "ftp://x",
        "file:///etc/passwd",
        "http://",
        "https:///x",
        "http:// x",
        "http://x/ y",
        "http://x/\n",
        "http://x/\t",
        "http://x/\"y",
        "http://x/\u{0}",
        "http://x/\u{a0}y",
        "https:x",
        "https:/x",
        "https:\\\\x",
        "http://x\\@y",
        "javascript:x",
        "http://:80/",
    ]);
}

#[test]
fn disks() {
    takes::<DiskPin>(&["/dev/sda", "sda", "/dev/disk/by-id/nvme-X_1+2:3.4", &"a".repeat(512)]);
    refuses::<DiskPin>(&["", "/dev/sd a", "/dev/sda;x", "$(x)", "/dev/sda\n", "é", "a=b", &"a".repeat(513)]);
}

#[test]
fn static_addresses() {
    takes::<StaticIp>(&[
        "192.0.2.10::192.0.2.1:24",
        "192.0.2.10:::24",
        "192.0.2.10::192.0.2.1:255.255.255.0:192.0.2.53",
        "192.0.2.10:::0",
        "192.0.2.10:::32",
    ]);
    refuses::<StaticIp>(&[
        "",
        "192.0.2.10",
        "192.0.2.10:192.0.2.9:192.0.2.1:24",
        "192.0.2.10::192.0.2.1",
        "192.0.2.10::192.0.2.1:33",
        "192.0.2.10::192.0.2.1:024",
        "192.0.2.10::192.0.2.1:255.0.255.0",
        "192.0.2.10::192.0.2.1:24:",
        "192.0.2.10::192.0.2.1:24:192.0.2.53:host",
        "192.0.2.256::192.0.2.1:24",
        "2001:db8::1",
        "192.0.2.10::gw:24",
        " 192.0.2.10:::24",
        "192.0.2.10:::+8",
    ]);
    let ip: StaticIp = "192.0.2.10::192.0.2.1:255.255.255.0:192.0.2.53".parse().unwrap();
    assert_eq!((ip.prefix_len, ip.gateway.unwrap().octets()[3], ip.dns.unwrap().octets()[3]), (24, 1, 53));
}

#[test]
fn macs() {
    takes::<MacAddress>(&["52:54:00:12:34:56"]);
    let upper: MacAddress = "AA:BB:CC:DD:EE:FF".parse().unwrap();
    assert_eq!(upper.to_string(), "aa:bb:cc:dd:ee:ff");
    assert_eq!(upper.to_bootif(), "01-aa-bb-cc-dd-ee-ff");
    assert_eq!(MacAddress::from_bootif("01-AA-bb-cc-dd-ee-ff"), Ok(upper));
    refuses::<MacAddress>(&[
        "",
        "52:54:00:12:34",
        "52:54:00:12:34:56:78",
        "52-54-00-12-34-56",
        "5:54:00:12:34:56",
        "+2:54:00:12:34:56",
        "gg:54:00:12:34:56",
        "525400123456",
    ]);
    for bad in ["", "52:54:00:12:34:56", "01-52:54:00:12:34:56", "02-52-54-00-12-34-56", "01-52-54-00-12-34"]
    {
        assert!(MacAddress::from_bootif(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn provider_ids() {
    takes::<ProviderId>(&["b7://default/host-01"]);
    refuses::<ProviderId>(&[
        "",
        "b7://",
        "b7://a",
        "b7://a/",
        "b7:///b",
        "b7://a/b/c",
        "B7://a/b",
        "b8://a/b",
        "b7://A/b",
    ]);
}

#[test]
fn times() {
    takes::<Time>(&["2026-11-29T19:47:30Z", "1970-01-01T00:00:00Z"]);
    let offset: Time = "2026-11-29T20:47:30.75+01:00".parse().unwrap();
    assert_eq!(offset.to_string(), "2026-11-29T19:47:30Z");
    refuses::<Time>(&["", "1700000000", "2026-11-29", "yesterday", "2026-11-29T19:47:30"]);
    let (early, late) = (Time::from_unix(10), Time::from_unix(70));
    assert_eq!((late.since(early), early.since(late)), (Duration::from_secs(60), Duration::ZERO));
    // Arithmetic at the ends neither panics nor fails to print.
    let far = Time::from_unix(i64::MAX) + Duration::MAX;
    assert!(!far.to_string().is_empty() && !Time::from_unix(i64::MIN).to_string().is_empty());
}

proptest! {
    #[test]
    fn no_text_panics_a_parser(text in any::<String>()) {
        let _ = (text.parse::<Digest>(), text.parse::<Name>(), text.parse::<WebUrl>(), text.parse::<DiskPin>());
        let _ = (text.parse::<StaticIp>(), text.parse::<MacAddress>(), text.parse::<ProviderId>(), text.parse::<Time>());
    }

    #[test]
    fn times_print_and_parse_back(seconds in -10_000_000_000_i64..10_000_000_000) {
        let time = Time::from_unix(seconds);
        prop_assert_eq!(time.to_string().parse::<Time>().unwrap(), time);
    }
}
