//! `farrier.disk-hints`, `farrier.grow` and `farrier.efi-boot`: what is taken, what is refused, and that text
//! survives.

use farrier_shared::contract::DiskPin;
use farrier_shared::contract::options::disk_hints::{DiskHint, Transport};
use farrier_shared::contract::options::{DiskHints, EfiBoot, Grow};
use proptest::prelude::*;

fn only(text: &str) -> DiskHint {
    let hints: DiskHints = text.parse().expect(text);
    let mut all = hints.iter();
    let first = all.next().unwrap().clone();
    assert!(all.next().is_none());
    first
}

#[test]
fn hints_that_read_back_as_written() {
    for text in [
        "size>=400G",
        "size<=2T",
        "size>=512",
        "size>=0",
        "size<=1Gi",
        "model=ACME_SSD_980",
        "model~=980",
        "vendor~=acme",
        "serial=S64DNX0",
        "wwn=0x5000c50015ea71aa",
        "rotational=0",
        "rotational=1",
        "transport=nvme",
        "transport=iscsi",
        "hctl=0:0:1:18446744073709551615",
        "by-path=pci-0000:00:1f.2-ata-1",
        "model==x~=y",
        "size>=400G,rotational=0,model~=980",
    ] {
        let hints: DiskHints = text.parse().expect(text);
        assert_eq!(hints.to_string(), text);
    }
}

#[test]
fn sizes_are_counted_as_disks_are_sold_or_in_powers_of_two() {
    for (text, bytes) in [
        ("1", 1),
        ("1K", 1000),
        ("1Ki", 1024),
        ("480G", 480_000_000_000),
        ("3Gi", 3 << 30),
        ("2T", 2_000_000_000_000),
        ("2Ti", 2 << 40),
        ("7M", 7_000_000),
        ("7Mi", 7 << 20),
    ] {
        assert_eq!(only(&format!("size>={text}")), DiskHint::SizeAtLeast(bytes), "{text}");
    }
}

#[test]
fn what_is_no_hint_is_refused_and_says_what_would_be() {
    for (text, expected) in [
        ("", "1 to 16 hints"),
        (",", "is not a disk hint"),
        ("size>=1,", "is not a disk hint"),
        ("colour=blue", "expected size, model"),
        ("model", "expected size, model"),
        ("=x", "expected size, model"),
        ("Model=x", "expected size, model"),
        ("model>x", "expected size, model"),
        ("model=", "printable ASCII"),
        ("model=a b", "printable ASCII"),
        ("model=\"a\"", "printable ASCII"),
        ("model=ü", "printable ASCII"),
        ("model>=a", "takes = or ~="),
        ("size=1", "takes >= or <="),
        ("size>=", "whole bytes"),
        ("size>=+1", "whole bytes"),
        ("size>=1.5G", "whole bytes"),
        ("size>=1GB", "whole bytes"),
        ("size>=18446744073709551615T", "whole bytes"),
        ("rotational=yes", "0 or 1"),
        ("rotational~=1", "takes = alone"),
        ("transport=NVMe", "transport is nvme"),
        ("transport=scsi2", "transport is nvme"),
        ("hctl=0:0:0", "four numbers"),
        ("hctl=0:0:0:0:0", "four numbers"),
        ("hctl=0:0:0:-1", "four numbers"),
    ] {
        let error = text.parse::<DiskHints>().expect_err(text).to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    assert!("size>=1,".repeat(17).trim_end_matches(',').parse::<DiskHints>().is_err(), "too many");
    assert!(format!("model={}", "x".repeat(600)).parse::<DiskHints>().is_err(), "too long");
}

#[test]
fn an_error_never_repeats_more_than_a_line_of_what_was_given() {
    let error = format!("{}=1", "k".repeat(500)).parse::<DiskHints>().unwrap_err().to_string();
    assert!(error.len() < 400, "{error}");
}

#[test]
fn grow_and_boot_order_know_their_words_alone() {
    for word in ["off", "last"] {
        assert_eq!(word.parse::<Grow>().unwrap().to_string(), word);
    }
    for word in ["network-first", "disk-first", "off"] {
        assert_eq!(word.parse::<EfiBoot>().unwrap().to_string(), word);
    }
    assert!("".parse::<Grow>().is_err() && "Last".parse::<Grow>().is_err());
    assert!("".parse::<EfiBoot>().is_err() && "network".parse::<EfiBoot>().is_err());
    assert_eq!((Grow::default(), EfiBoot::default()), (Grow::Off, EfiBoot::NetworkFirst));
}

fn one() -> impl Strategy<Value = String> {
    let text = "[!#-&(-+\\--\\[\\]-_a-~]{1,20}";
    let transports: Vec<&str> = Transport::ALL.into_iter().map(Transport::as_str).collect();
    prop_oneof![
        any::<u64>().prop_map(|n| format!("size>={n}")),
        (0..9999_u64, prop::sample::select(vec!["", "K", "Ki", "M", "Gi", "T"]))
            .prop_map(|(n, unit)| format!("size<={n}{unit}")),
        (prop::sample::select(vec!["model", "vendor", "serial", "wwn", "by-path"]), any::<bool>(), text)
            .prop_map(|(key, exact, text)| format!("{key}{}={text}", if exact { "" } else { "~" })),
        any::<bool>().prop_map(|b| format!("rotational={}", u8::from(b))),
        prop::sample::select(transports).prop_map(|t| format!("transport={t}")),
        any::<[u64; 4]>().prop_map(|[h, c, t, l]| format!("hctl={h}:{c}:{t}:{l}")),
    ]
}

proptest! {
    #[test]
    fn hints_survive_being_written_and_read(list in proptest::collection::vec(one(), 1..8)) {
        let list = list.join(",");
        // Eight long ones are more than a list may hold.
        prop_assume!(list.len() <= 512);
        let hints: DiskHints = list.parse().unwrap();
        let text = hints.to_string();
        prop_assert_eq!(&text.parse::<DiskHints>().unwrap(), &hints);
        // One plain word, whatever it says: it travels on a kernel command line.
        prop_assert!(!text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"'));
    }

    #[test]
    fn any_text_is_judged_without_a_panic(text in "\\PC{0,80}") {
        let _ = text.parse::<DiskHints>();
        let _ = text.parse::<DiskPin>();
    }
}
