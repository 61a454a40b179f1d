//! Memory capacities (contract section 5).

use farrier_shared::contract::capacity::gigabytes;
use proptest::prelude::*;

#[test]
fn capacities_that_count() {
    let table = [
        ("32GiB", 34),
        ("16384MiB", 17),
        ("16384 MiB", 17),
        (" 64 GiB ", 68),
        ("32Gi", 34),
        ("32G", 32),
        ("32GB", 32),
        ("1T", 1000),
        ("1TiB", 1099),
        ("512M", 0),
        ("1.5Gi", 1),
        ("0.5T", 500),
        (".5T", 500),
        ("1.T", 1000),
        ("999999999M", 999_999),
    ];
    for (text, expected) in table {
        assert_eq!(gigabytes(text), Ok(expected), "{text:?}");
    }
}

#[test]
fn capacities_that_do_not() {
    let long = format!("{}G", "9".repeat(60));
    for text in [
        "",
        "32",
        "32P",
        "32PB",
        "32B",
        "-32G",
        "-1GiB",
        "NoCapacity",
        "0G",
        "0.0G",
        "G",
        "GiB",
        ".",
        ".G",
        "32gib",
        "32GIB",
        "32Kib",
        "32KiB",
        "1e3G",
        "1,5G",
        "0x10G",
        "32GiBB",
        "32G iB x",
        "٣G",
        "32 B",
        long.as_str(),
    ] {
        assert!(gigabytes(text).is_err(), "{text:?}");
    }
}

proptest! {
    #[test]
    fn whole_gibibytes_are_floored_per_module(n in 1..100_000_i64) {
        prop_assert_eq!(gigabytes(&format!("{n}GiB")).unwrap(), n * 1_073_741_824 / 1_000_000_000);
        prop_assert_eq!(gigabytes(&format!("{n}G")).unwrap(), n);
    }

    #[test]
    fn no_text_panics(text in ".{0,80}") {
        let _ = gigabytes(&text);
    }
}
