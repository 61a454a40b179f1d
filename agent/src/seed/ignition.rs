//! Ignition: its config where the installed system looks for it on first boot.
//!
//! Fedora CoreOS and its kin read `ignition/config.ign` of the file system labelled `boot`, which is where
//! coreos-installer puts it; openSUSE MicroOS the same file of one labelled `ignition`; Flatcar `config.ign` of its
//! OEM partition.

use std::path::PathBuf;

use serde::Deserialize;

use super::filesystem::Kind;
use super::place::{Place, not_found, survey};
use super::{PROVIDER_ID, Payload, Seed, SeedError, SeedFile, mount, unmount, write};
use crate::disk::Target;
use crate::mount::Access;

/// A place Ignition looks at.
#[derive(Debug)]
struct Reader {
    label: &'static str,
    kinds: &'static [Kind],
    config: &'static str,
    /// A file without which it is not the system's first boot.
    first_boot: Option<&'static str>,
}

/// In the order they are tried.
const READERS: [Reader; 3] = [
    Reader {
        label: "ignition",
        kinds: &[Kind::Ext, Kind::Fat, Kind::Btrfs],
        config: "ignition/config.ign",
        first_boot: None,
    },
    Reader {
        label: "boot",
        kinds: &[Kind::Ext],
        config: "ignition/config.ign",
        first_boot: Some("ignition.firstboot"),
    },
    Reader { label: "OEM", kinds: &[Kind::Ext, Kind::Btrfs], config: "config.ign", first_boot: None },
];

/// The config verbatim, and the provider id beside it.
#[derive(Debug)]
pub struct Ignition {
    payload: Payload,
    work: PathBuf,
}

/// What every version of the config has; the rest, secrets among it, is not taken out of the text.
#[derive(Deserialize)]
struct Config {
    ignition: Head,
}

#[derive(Deserialize)]
struct Head {
    version: String,
}

impl Ignition {
    /// Plants these; `work` is a writable directory on a tmpfs, such as `/run`.
    ///
    /// # Errors
    /// When the user-data is no Ignition config: known before anything is written.
    pub fn new(payload: Payload, work: PathBuf) -> Result<Self, SeedError> {
        check(&payload.user_data).map_err(|reason| SeedError::NotIgnition { reason })?;
        Ok(Self { payload, work })
    }
}

fn check(user_data: &[u8]) -> Result<(), String> {
    // The decoder's own message may quote the text.
    let config: Config = serde_json::from_slice(user_data).map_err(|e| {
        let what = if e.is_data() { "ignition.version is missing or no string" } else { "it is no JSON" };
        format!("{what} (line {}, column {})", e.line(), e.column())
    })?;
    if is_version(&config.ignition.version) {
        Ok(())
    } else {
        Err("ignition.version is not like 3.4.0".to_owned())
    }
}

/// Three numbers, the last of which may be followed by a word, as in `3.6.0-experimental`.
fn is_version(text: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<&str> = text.splitn(3, '.').collect();
    matches!(parts[..], [major, minor, patch]
        if number(major) && number(minor) && number(patch.split('-').next().unwrap_or_default()))
}

fn choose(places: &[Place]) -> Option<(&Place, &'static Reader)> {
    READERS
        .iter()
        .find_map(|reader| Some((places.iter().find(|p| p.is(reader.kinds, &[reader.label]))?, reader)))
}

impl Seed for Ignition {
    fn plant(&self, target: &dyn Target) -> Result<(), SeedError> {
        let places = survey(target, &self.work)?;
        let (place, reader) = choose(&places).ok_or_else(|| {
            not_found(target, &places, "boot", "an ext4 so labelled, or one labelled OEM or ignition")
        })?;
        if let Some(first_boot) = reader.first_boot {
            let mounted = mount(place, &self.work, Access::Read)?;
            let is_first = mounted.path.join(first_boot).symlink_metadata().is_ok();
            unmount(mounted, place)?;
            if !is_first {
                return Err(SeedError::NotFirstBoot { partition: place.partition.name.clone() });
            }
        }
        let provider_id = self.payload.provider_id.to_string();
        let files = [
            SeedFile { path: PROVIDER_ID, content: provider_id.as_bytes() },
            SeedFile { path: reader.config, content: &self.payload.user_data },
        ];
        write(place, &self.work, &files)
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::places;
    use super::*;

    #[test]
    fn only_an_ignition_config_is_taken() {
        for (text, reason) in [
            (r#"{"ignition": {"version": "3.4.0"}, "passwd": {"users": [{"name": "core"}]}}"#, None),
            (r#"{"ignition":{"version":"3.6.0-experimental","config":{}}}"#, None),
            (r#"{"ignition":{"version":"3.4"}}"#, Some("ignition.version is not like 3.4.0")),
            (r#"{"ignition":{"version":"3..0"}}"#, Some("ignition.version is not like 3.4.0")),
            (
                r#"{"ignition":{"version":3}}"#,
                Some("ignition.version is missing or no string (line 1, column 24)"),
            ),
            (r#"{"ignition":{}}"#, Some("ignition.version is missing or no string (line 1, column 14)")),
            (r#"{"ignition":{"version":"3.4.0"}} trailing"#, Some("it is no JSON (line 1, column 34)")),
            ("#cloud-config\npassword: hunter2", Some("it is no JSON (line 1, column 1)")),
            ("variant: fcos", Some("it is no JSON (line 1, column 1)")),
            ("", Some("it is no JSON (line 1, column 0)")),
        ] {
            assert_eq!(check(text.as_bytes()).err().as_deref(), reason, "{text}");
        }
        check(b"\x1f\x8b\xff").unwrap_err();
    }

    #[test]
    fn each_system_finds_it_where_it_looks() {
        for (found, chosen) in [
            (
                &[("", Some((Kind::Fat, "EFI-SYSTEM"))), ("", Some((Kind::Ext, "boot")))][..],
                Some((2, "ignition/config.ign")),
            ),
            (
                &[("", Some((Kind::Btrfs, "OEM"))), ("", Some((Kind::Ext, "ROOT")))][..],
                Some((1, "config.ign")),
            ),
            (
                &[("", Some((Kind::Ext, "boot"))), ("", Some((Kind::Fat, "ignition")))][..],
                Some((2, "ignition/config.ign")),
            ),
            (&[("boot", Some((Kind::Ext, "other"))), ("", Some((Kind::Fat, "boot")))][..], None),
        ] {
            let places = places(found);
            let got = choose(&places).map(|(p, r)| (p.partition.number, r.config));
            assert_eq!(got, chosen, "{found:?}");
        }
    }
}
