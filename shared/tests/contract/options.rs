//! The table of agent options: what each value may be, where it belongs, and that it survives the command line.

use std::collections::BTreeSet;

use farrier_shared::contract::options::{self, AgentOption, AgentOptions, OnFailure, PREFIX, Scope, Verify};
use proptest::prelude::*;

const DOCS: &str = include_str!("../../../docs/options.md");

/// For each option some values it takes, in the form it renders them, and some it must refuse.
fn samples(option: AgentOption) -> (Vec<&'static str>, Vec<&'static str>) {
    let digest = "sha256:abababababababababababababababababababababababababababababababab";
    match option {
        AgentOption::Verify => (vec!["auto", "readback", "off"], vec!["maybe", "Auto", "off,"]),
        AgentOption::ContentDigest => (vec![digest], vec!["md5:0", "sha256:", "sha256:AB"]),
        AgentOption::Mirrors => (
            vec!["http://a/b", "http://a/b?c=d,https://[fd00::1]:8443/e"],
            vec!["a", "ftp://a/b", "http://a/,", ","],
        ),
        AgentOption::MinRate => (vec!["0", "5M", "700", "1G"], vec!["5MB", "-1", "1.5M", "fast"]),
        AgentOption::OnFailure => (vec!["poweroff", "reboot"], vec!["dance", "REBOOT"]),
        AgentOption::DiskHints => {
            (vec!["size>=400G,rotational=0", "model~=980", "hctl=0:0:0:0"], vec!["serial>1", ",", "size=big"])
        }
        AgentOption::Grow => (vec!["off", "last"], vec!["root", "first"]),
        AgentOption::EfiBoot => (vec!["network-first", "disk-first", "off"], vec!["on", "disk"]),
        AgentOption::Seed => (
            vec!["cos-oem", "nocloud", "configdrive", "ignition"],
            vec!["COS-OEM", "cloud-init", "config-drive", "talos"],
        ),
        AgentOption::Vlan => (vec!["1", "4094"], vec!["0", "4095", "1.5", "65537"]),
        AgentOption::Bond => (
            vec!["802.3ad", "active-backup:52:54:00:00:00:01,52:54:00:00:00:02"],
            vec!["lacp", "802.3ad:", "802.3ad:eth0"],
        ),
        AgentOption::Ip6 => (
            vec!["auto", "dhcp", "off", "2001:db8::5/64,fe80::1,2001:db8::53"],
            vec!["on", "::1/64", "2001:db8::5"],
        ),
        AgentOption::Mtu => (vec!["576", "1500", "9216"], vec!["575", "9217", "1e3", "+1500", "65536", "-1"]),
        AgentOption::Ntp => (vec!["192.0.2.1,ntp.example", "2001:db8::1"], vec![",", "ntp_1", "a,b,c,d,e"]),
    }
}

#[test]
fn each_value_is_taken_or_refused_and_the_refusal_says_whose_and_what_is_accepted() {
    for &option in AgentOption::ALL {
        let (good, bad) = samples(option);
        for value in good {
            let options = AgentOptions::parse([(option.key(), value)]).unwrap();
            assert_eq!(options.parameters(), [(option, value.to_owned())]);
        }
        let broken = ["a b", "\"auto\"", "${mtu}", "a\nboot", "ä"];
        for value in bad.into_iter().chain(broken) {
            let told = AgentOptions::parse([(option.key(), value)]).unwrap_err().to_string();
            assert!(told.starts_with(&format!("{PREFIX}{}: ", option.key())), "{told}");
            assert!(told.contains("expected") || told.contains("takes"), "{told}");
            assert!(!told.chars().any(char::is_control), "{told:?}");
        }
    }
}

#[test]
fn keys_are_distinct_words_and_found_again() {
    let keys: BTreeSet<_> = AgentOption::ALL.iter().map(|o| o.key()).collect();
    assert_eq!(keys.len(), AgentOption::ALL.len());
    for &option in AgentOption::ALL {
        assert!(option.key().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
        assert_eq!(AgentOption::from_key(option.key()), Some(option));
    }
    assert_eq!(AgentOption::from_key("run"), None, "the controller's alone");
}

#[test]
fn the_agent_ignores_what_it_does_not_know_and_takes_the_last_of_duplicates() {
    let line = "quiet farrier.run=r farrier.verify=off farrier.colour=blue farrier.mtu=9000 farrier.mtu= \
                farrier.verify=readback farrier.verify-more=x on-failure=reboot";
    let options = AgentOptions::parse(options::words(line)).unwrap();
    let expected = AgentOptions { verify: Some(Verify::ReadBack), ..AgentOptions::default() };
    assert_eq!(options, expected);
    assert_eq!(AgentOption::Verify.last_in(line), Some("readback"));
    assert_eq!(AgentOption::OnFailure.last_in(line), None);
    assert_eq!(AgentOption::Mtu.last_in(line), None);
    assert_eq!((Verify::default(), OnFailure::default()), (Verify::Auto, OnFailure::PowerOff));
}

#[test]
fn an_object_may_carry_what_is_its_own() {
    for &option in AgentOption::ALL {
        let value = samples(option).0[0];
        for holder in [Scope::Host, Scope::Machine] {
            let checked = options::check(holder, option.key(), value);
            assert_eq!(checked.is_ok(), option.scope().covers(holder), "{option} {holder:?}");
            if let Err(refused) = checked {
                let other = if holder == Scope::Host { "Beskar7Machine" } else { "PhysicalHost" };
                assert!(refused.to_string().contains(other), "{refused}");
            }
        }
    }
    let told = |holder, key, value| options::check(holder, key, value).unwrap_err().to_string();
    assert_eq!(
        told(Scope::Host, "mtu", "100"),
        "\"100\" is not an MTU: expected a number of bytes from 576 to 9216"
    );
    assert_eq!(told(Scope::Host, "mtu", ""), "no value; expected a number of bytes from 576 to 9216");
    assert!(told(Scope::Host, "mtv", "1500").contains("on-failure, vlan"), "the keys a host may carry");
    assert!(!told(Scope::Host, "mtv", "1500").contains("verify"));
}

#[test]
fn every_option_is_documented_with_its_place() {
    for &option in AgentOption::ALL {
        let place = match option.scope() {
            Scope::Host => "host",
            Scope::Machine => "machine",
            Scope::Both => "both",
        };
        let row = format!("| `{}` | {place} | ", option.key());
        assert!(DOCS.contains(&row), "docs/options.md lacks a row that begins {row:?}");
    }
}

fn asked() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let all: Vec<_> = AgentOption::ALL
        .iter()
        .flat_map(|&option| samples(option).0.into_iter().map(move |value| (option.key(), value)))
        .collect();
    prop::collection::vec(prop::sample::select(all), 0..8)
}

proptest! {
    #[test]
    fn what_is_rendered_is_what_is_read(asked in asked()) {
        let options = AgentOptions::parse(asked).unwrap();
        let line: String = options.parameters().iter().map(|(o, value)| format!(" {o}={value}")).collect();
        prop_assert_eq!(AgentOptions::parse(options::words(&line)).unwrap(), options);
    }

    #[test]
    fn no_text_panics_the_parser_or_gets_through_as_more_than_a_word(key in 0..AgentOption::ALL.len(), text in ".{0,40}") {
        let key = AgentOption::ALL[key].key();
        if let Ok(options) = AgentOptions::parse([(key, text.as_str())]) {
            for (_, value) in options.parameters() {
                prop_assert!(options::is_word(&value));
            }
        }
    }
}
