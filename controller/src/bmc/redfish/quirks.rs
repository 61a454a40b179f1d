//! What is known of vendors, as data.

use std::time::Duration;

/// How one vendor's BMCs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quirks {
    /// What the manufacturer's name holds, lower case.
    vendor: &'static str,
    /// How long a power change may take to show.
    pub(super) power_settles: Duration,
    /// How long an operating system may take to shut down.
    pub(super) shutdown_settles: Duration,
    /// Reset types that do a restart, best first.
    pub(super) restart: &'static [&'static str],
    /// Reset types that switch off with the operating system's part in it, best first; the last does it without.
    pub(super) shutdown: &'static [&'static str],
    /// Say the boot mode again along with a boot target: left out, it falls back to BIOS. What such a BMC shows
    /// while no override is set is that fallback, not what its firmware boots, which is UEFI.
    pub(super) repeat_boot_mode: bool,
    /// Send weak entity tags as strong ones: compared as they are, they never match.
    pub(super) strong_etag: bool,
}

const GENERIC: Quirks = Quirks {
    vendor: "",
    power_settles: Duration::from_secs(60),
    shutdown_settles: Duration::from_secs(120),
    restart: &["ForceRestart", "PowerCycle"],
    shutdown: &["GracefulShutdown", "ForceOff"],
    repeat_boot_mode: false,
    strong_etag: false,
};

/// Has no graceful shutdown; a press of the power button is one. Elsewhere that may also be a long press, or switch on
/// what has just gone off.
const HPE: Quirks = Quirks {
    vendor: "hpe",
    power_settles: Duration::from_secs(90),
    shutdown: &["GracefulShutdown", "PushPowerButton", "ForceOff"],
    ..GENERIC
};

const VENDORS: [Quirks; 5] = [
    // The power state is cached and lags, here and at HPE.
    Quirks { vendor: "dell", power_settles: Duration::from_secs(90), ..GENERIC },
    HPE,
    Quirks { vendor: "hewlett", ..HPE },
    Quirks { vendor: "lenovo", strong_etag: true, ..GENERIC },
    Quirks { vendor: "supermicro", repeat_boot_mode: true, ..GENERIC },
];

/// What is known of this manufacturer.
pub(super) fn of(manufacturer: &str) -> Quirks {
    let name = manufacturer.to_ascii_lowercase();
    // Written as "Super Micro" by some boards.
    let name = name.replace("super micro", "supermicro");
    VENDORS.iter().find(|q| name.contains(q.vendor)).copied().unwrap_or(GENERIC)
}

impl Quirks {
    /// What is known of the BMC's own `vendor`, where nothing is known of the server's maker: boards are sold under many
    /// names.
    pub(super) fn or(self, vendor: Self) -> Self {
        if self.vendor.is_empty() { vendor } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_are_found_by_the_names_they_use() {
        for (name, vendor) in [
            ("Dell Inc.", "dell"),
            ("HPE", "hpe"),
            ("Hewlett Packard Enterprise", "hewlett"),
            ("Lenovo", "lenovo"),
            ("Super Micro Computer", "supermicro"),
            ("Supermicro", "supermicro"),
            ("QEMU", ""),
            ("", ""),
        ] {
            assert_eq!(of(name).vendor, vendor, "{name}");
        }
    }

    #[test]
    fn a_server_of_an_unknown_maker_is_what_its_bmc_is() {
        for (maker, vendor, expected) in [
            ("Thomas-Krenn.AG", "Supermicro", "supermicro"),
            ("Dell Inc.", "AMI", "dell"),
            ("Dell Inc.", "Supermicro", "dell"),
            ("Thomas-Krenn.AG", "AMI", ""),
        ] {
            assert_eq!(of(maker).or(of(vendor)).vendor, expected, "{maker} {vendor}");
        }
    }
}
