//! cloud-init's NoCloud: a FAT file system labelled CIDATA, or the seed directory of the root file system.
//!
//! cloud-init takes the label from FAT and ISO 9660 alone, in upper or lower case: an ext4 so labelled is not read.
//! The seed directory needs no label, and `ds-identify` looks for it, so that a stock cloud image will do.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::filesystem::Kind;
use super::place::{Place, not_found, survey};
use super::{Payload, Seed, SeedError, SeedFile, mount, unmount, write};
use crate::disk::Target;
use crate::mount::Access;

const LABELS: [&str; 2] = ["CIDATA", "cidata"];
/// The directories above the seed directory, outermost first: where something may be mounted.
const ABOVE: [&str; 5] =
    ["/var", "/var/lib", "/var/lib/cloud", "/var/lib/cloud/seed", "/var/lib/cloud/seed/nocloud"];
/// Most of an fstab that is read.
const FSTAB: u64 = 64 << 10;

/// `user-data` verbatim, and `meta-data` with instance id, host name and provider id.
#[derive(Debug)]
pub struct NoCloud {
    payload: Payload,
    work: PathBuf,
}

impl NoCloud {
    /// Plants these; `work` is a writable directory on a tmpfs, such as `/run`.
    pub fn new(payload: Payload, work: PathBuf) -> Self {
        Self { payload, work }
    }

    /// The first ext file system that is a root. One that does not mount is told of only where there is no other.
    fn root<'a>(&self, places: &'a [Place]) -> Result<Option<&'a Place>, SeedError> {
        let mut refused = None;
        for place in places.iter().filter(|p| p.filesystem.as_ref().is_some_and(|f| f.kind == Kind::Ext)) {
            let mounted = match mount(place, &self.work, Access::Read) {
                Ok(mounted) => mounted,
                Err(error) => {
                    tracing::warn!(%error, "not looked into for a root file system");
                    refused.get_or_insert(error);
                    continue;
                }
            };
            let (root, hidden) = (is_root(&mounted.path), hidden_by(&fstab(&mounted.path)));
            unmount(mounted, place)?;
            match (root, hidden) {
                (false, _) => {}
                (true, None) => return Ok(Some(place)),
                (true, Some(mount_point)) => {
                    return Err(SeedError::Hidden { partition: place.partition.name.clone(), mount_point });
                }
            }
        }
        refused.map_or(Ok(None), Err)
    }
}

/// Whether a root file system is mounted there.
fn is_root(path: &Path) -> bool {
    let is_dir = |name: &str| fs::symlink_metadata(path.join(name)).is_ok_and(|m| m.is_dir());
    // The file is most often a link, and one that leads nowhere from here.
    fs::symlink_metadata(path.join("etc/os-release")).is_ok() || (is_dir("etc") && is_dir("usr"))
}

/// Its table of file systems; empty when it has none.
fn fstab(path: &Path) -> String {
    let open = fs::OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC)
        .open(path.join("etc/fstab"));
    let mut bytes = Vec::new();
    match open.and_then(|file| file.take(FSTAB).read_to_end(&mut bytes)) {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

/// The mount point that would hide the seed directory.
fn hidden_by(fstab: &str) -> Option<&'static str> {
    let mut points = fstab.lines().filter(|l| !l.trim_start().starts_with('#')).filter_map(|line| {
        let point = line.split_ascii_whitespace().nth(1)?.trim_end_matches('/');
        ABOVE.into_iter().find(|above| *above == point)
    });
    points.next()
}

/// YAML; every value is of a narrow alphabet, and quoted all the same.
fn meta_data(payload: &Payload) -> String {
    let (id, name) = (payload.provider_id.to_string(), payload.hostname());
    format!("instance-id: \"{id}\"\nlocal-hostname: \"{name}\"\nprovider-id: \"{id}\"\n")
}

impl Seed for NoCloud {
    fn plant(&self, target: &dyn Target) -> Result<(), SeedError> {
        let places = survey(target, &self.work)?;
        let labelled = places.iter().find(|p| p.is(&[Kind::Fat], &LABELS));
        let (place, names) = match labelled {
            Some(place) => (Some(place), ["meta-data", "user-data"]),
            None => (
                self.root(&places)?,
                ["var/lib/cloud/seed/nocloud/meta-data", "var/lib/cloud/seed/nocloud/user-data"],
            ),
        };
        let place = place.ok_or_else(|| {
            not_found(target, &places, LABELS[0], "a FAT so labelled, or an ext4 root file system")
        })?;
        let meta_data = meta_data(&self.payload);
        let files = [
            SeedFile { path: names[0], content: meta_data.as_bytes() },
            SeedFile { path: names[1], content: &self.payload.user_data },
        ];
        write(place, &self.work, &files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callback::UserData;

    #[test]
    fn instance_and_name_are_the_hosts() {
        let provider_id = "b7://default/node-1".parse().unwrap();
        let text = meta_data(&Payload { user_data: UserData::default(), provider_id });
        assert_eq!(
            text,
            "instance-id: \"b7://default/node-1\"\nlocal-hostname: \"node-1\"\nprovider-id: \"b7://default/node-1\"\n"
        );
    }

    #[test]
    fn a_mount_above_the_seed_directory_hides_it() {
        for (fstab, hidden) in [
            ("UUID=1 / ext4 defaults 0 1\nUUID=2 /var/ ext4 defaults 0 2\n", Some("/var")),
            ("/dev/vg/lib\t/var/lib xfs", Some("/var/lib")),
            ("# UUID=2 /var ext4\n  # /dev/x /var ext4\nUUID=3 /var/log ext4\nUUID=4 /variable ext4\n", None),
            ("lonely\n\n", None),
            ("", None),
        ] {
            assert_eq!(hidden_by(fstab), hidden, "{fstab:?}");
        }
    }

    #[test]
    fn a_root_is_told_by_what_every_system_has() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_root(dir.path()));
        fs::create_dir(dir.path().join("etc")).unwrap();
        assert!(!is_root(dir.path()), "/etc alone may be anything");
        std::os::unix::fs::symlink("../usr/lib/os-release", dir.path().join("etc/os-release")).unwrap();
        assert!(is_root(dir.path()));
        fs::remove_file(dir.path().join("etc/os-release")).unwrap();
        fs::create_dir(dir.path().join("usr")).unwrap();
        assert!(is_root(dir.path()));
    }
}
