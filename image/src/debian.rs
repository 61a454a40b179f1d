//! Debian packages fetched with the machine's own apt and unpacked, never installed. Which mirror they
//! come from is apt's configuration, not ours; apt checks their signatures.

use crate::command::{Command, CommandError, DOWNLOAD, SHORT};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Why a package could not be had.
#[derive(Debug, thiserror::Error)]
pub enum DebianError {
    /// A program failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// apt knows no such package.
    #[error("apt offers no package {package}: run `apt-get update`, or check the release and its components")]
    NotOffered {
        /// Name of the package.
        package: String,
    },
    /// A metapackage depends on no package with the expected prefix.
    #[error("package {package} depends on no {prefix}* package; pass --kernel-deb PATH instead")]
    NoDependency {
        /// The metapackage.
        package: String,
        /// What its dependency's name was to start with.
        prefix: String,
    },
    /// A file could not be written or read.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The cache of downloaded and unpacked packages, and the apt behind it.
#[derive(Debug, Clone)]
pub struct Packages {
    cache: PathBuf,
}

impl Packages {
    /// Keeps packages below `cache`.
    #[must_use]
    pub fn new(cache: &Path) -> Self {
        Packages { cache: cache.to_owned() }
    }

    /// The package behind a metapackage: the first dependency whose name starts with `prefix`.
    ///
    /// # Errors
    /// When apt does not know the metapackage or it has no such dependency.
    pub fn dependency(&self, package: &str, prefix: &str) -> Result<String, DebianError> {
        let text = Command::new("apt-cache", SHORT).args(["depends", "--important", package]).output()?;
        first_dependency(&String::from_utf8_lossy(&text), prefix).ok_or_else(|| DebianError::NoDependency {
            package: package.to_owned(),
            prefix: prefix.to_owned(),
        })
    }

    /// Those of the packages that apt offers here: one question for all, since apt takes seconds to start.
    ///
    /// # Errors
    /// When `apt-cache` fails.
    pub fn offered(&self, packages: &[&str]) -> Result<BTreeSet<String>, DebianError> {
        let text = Command::new("apt-cache", SHORT).arg("policy").args(packages).output()?;
        Ok(parse_policy(&String::from_utf8_lossy(&text)))
    }

    /// Downloads the package's candidate version into the cache, or finds it there. Returns the `.deb`.
    ///
    /// # Errors
    /// When apt does not offer it, or the download fails.
    pub fn download(&self, package: &str) -> Result<PathBuf, DebianError> {
        make_directory(&self.cache)?;
        let elsewhere = self.scratch()?;
        // apt prints nothing for a file that is already in its directory, so it is asked in an empty one.
        let offer = Command::new("apt-get", SHORT)
            .args(["download", "--print-uris", package])
            .current_dir(elsewhere.path())
            .output()
            .map_err(|_| DebianError::NotOffered { package: package.to_owned() })?;
        let (name, size) = parse_offer(&String::from_utf8_lossy(&offer))
            .ok_or_else(|| DebianError::NotOffered { package: package.to_owned() })?;
        let deb = self.cache.join(name);
        if std::fs::metadata(&deb).is_ok_and(|meta| meta.len() == size) {
            return Ok(deb);
        }
        Command::new("apt-get", DOWNLOAD)
            .args(["download", "--quiet", package])
            .current_dir(&self.cache)
            .output()?;
        match std::fs::metadata(&deb) {
            Ok(_) => Ok(deb),
            Err(source) => Err(DebianError::File { what: "apt-get left no file", path: deb, source }),
        }
    }

    /// Unpacks a `.deb` into the cache, or finds it unpacked there. Returns the directory.
    ///
    /// # Errors
    /// When `dpkg-deb` fails.
    pub fn unpack(&self, deb: &Path) -> Result<PathBuf, DebianError> {
        let stem = deb.file_stem().unwrap_or(deb.as_os_str()).to_string_lossy().into_owned();
        let done = self.cache.join(&stem);
        if newer(&done, deb) {
            return Ok(done);
        }
        make_directory(&self.cache)?;
        let partial = self.scratch()?;
        Command::new("dpkg-deb", DOWNLOAD)
            .arg("--extract")
            .arg(deb)
            .arg(partial.path().join("x"))
            .output()?;
        // Renamed only when complete, so that an interrupted build is not taken for a package.
        if done.exists() {
            std::fs::remove_dir_all(&done).map_err(|source| DebianError::File {
                what: "cannot replace",
                path: done.clone(),
                source,
            })?;
        }
        std::fs::rename(partial.path().join("x"), &done).map_err(|source| DebianError::File {
            what: "cannot rename to",
            path: done.clone(),
            source,
        })?;
        // dpkg-deb gives the directory the package's date; ours tells when it was unpacked.
        std::fs::File::open(&done)
            .and_then(|directory| directory.set_modified(std::time::SystemTime::now()))
            .map_err(|source| DebianError::File { what: "cannot date", path: done.clone(), source })?;
        Ok(done)
    }

    fn scratch(&self) -> Result<tempfile::TempDir, DebianError> {
        tempfile::Builder::new().prefix(".scratch-").tempdir_in(&self.cache).map_err(|source| {
            DebianError::File { what: "cannot make a directory in", path: self.cache.clone(), source }
        })
    }
}

fn make_directory(path: &Path) -> Result<(), DebianError> {
    std::fs::create_dir_all(path).map_err(|source| DebianError::File {
        what: "cannot make directory",
        path: path.to_owned(),
        source,
    })
}

/// Whether `made` exists and is at least as new as `source`.
fn newer(made: &Path, source: &Path) -> bool {
    let time = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    matches!((time(made), time(source)), (Some(made), Some(source)) if made >= source)
}

/// Reads `apt-cache depends`: lines such as `  Depends: linux-image-6.1.0-57-amd64`.
fn first_dependency(text: &str, prefix: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|name| name.starts_with(prefix))
        .map(str::to_owned)
}

/// Reads `apt-cache policy`: blocks of `name:` with a `  Candidate: version` line, `(none)` where there is none.
fn parse_policy(text: &str) -> BTreeSet<String> {
    let mut offered = BTreeSet::new();
    let mut package = "";
    for line in text.lines() {
        if let (false, Some(name)) = (line.starts_with(' '), line.strip_suffix(':')) {
            package = name;
        } else if line.trim().strip_prefix("Candidate: ").is_some_and(|version| version != "(none)") {
            offered.insert(package.to_owned());
        }
    }
    offered
}

/// Reads `apt-get download --print-uris`: `'address' file-name size hash`. Returns name and size.
fn parse_offer(text: &str) -> Option<(String, u64)> {
    text.lines().filter(|line| line.starts_with('\'')).find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let name = words.next().filter(|name| name.ends_with(".deb") && !name.contains('/'))?;
        Some((name.to_owned(), words.next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_behind_the_metapackage_is_found() {
        let text = "linux-image-amd64\n  Depends: linux-base\n  Depends: linux-image-6.1.0-57-amd64\n";
        assert_eq!(first_dependency(text, "linux-image-").as_deref(), Some("linux-image-6.1.0-57-amd64"));
        assert_eq!(first_dependency("linux-image-amd64\n", "linux-image-"), None);
    }

    #[test]
    fn only_packages_with_a_candidate_are_offered() {
        let text = "firmware-a:\n  Installed: (none)\n  Candidate: 1:2-3\n  Version table:\n     1:2-3 500\n\
                    firmware-b:\n  Installed: (none)\n  Candidate: (none)\n";
        assert_eq!(parse_policy(text), BTreeSet::from(["firmware-a".to_owned()]));
        assert_eq!(parse_policy(""), BTreeSet::new());
    }

    #[test]
    fn an_offer_gives_file_name_and_size() {
        let cases = [
            (
                "'http://m/p/a_1%3a2_amd64.deb' a_1%3a2_amd64.deb 70591024 SHA256:ab\n",
                Some(("a_1%3a2_amd64.deb", 70_591_024)),
            ),
            ("W: a warning\n'http://m/x.deb' x.deb 5 SHA256:ab", Some(("x.deb", 5))),
            ("'http://m/x.deb' ../x.deb 5 SHA256:ab", None),
            ("'http://m/x.deb' x.deb many", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let got = parse_offer(text);
            assert_eq!(got.as_ref().map(|(name, size)| (name.as_str(), *size)), expected, "{text}");
        }
    }

    #[test]
    fn an_unpacked_package_is_kept_until_its_file_changes() {
        let scratch = tempfile::tempdir().expect("scratch");
        let tree = scratch.path().join("p");
        std::fs::create_dir_all(tree.join("DEBIAN")).expect("dir");
        let control =
            "Package: p\nVersion: 1\nArchitecture: all\nMaintainer: t <t@example.org>\nDescription: t\n";
        std::fs::write(tree.join("DEBIAN/control"), control).expect("control");
        std::fs::write(tree.join("file"), "one").expect("file");
        let deb = scratch.path().join("p_1_all.deb");
        let build = || {
            Command::new("dpkg-deb", SHORT)
                .args(["-Znone", "--root-owner-group", "-b"])
                .arg(&tree)
                .arg(&deb)
                .output()
        };
        build().expect("dpkg-deb");
        let packages = Packages::new(&scratch.path().join("cache"));
        let read =
            || std::fs::read_to_string(packages.unpack(&deb).expect("unpack").join("file")).expect("file");
        assert_eq!(read(), "one");
        let mark = scratch.path().join("cache/p_1_all/mark");
        std::fs::write(&mark, "").expect("mark");
        assert_eq!(read(), "one");
        assert!(mark.exists(), "unpacked again without need");
        std::fs::write(tree.join("file"), "two").expect("file");
        build().expect("dpkg-deb");
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        std::fs::File::open(&deb).and_then(|file| file.set_modified(later)).expect("date");
        assert_eq!(read(), "two");
    }
}
