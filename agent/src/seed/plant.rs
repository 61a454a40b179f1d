//! Writes the files of a seed so that a power cut leaves each whole or absent.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

/// One file of a seed.
#[derive(Debug)]
pub(super) struct SeedFile<'a> {
    /// Below the root of the file system.
    pub(super) path: &'a str,
    pub(super) content: &'a [u8],
}

/// A file that was not planted, by its name below the root.
#[derive(Debug)]
pub(super) struct PlantError {
    pub(super) path: String,
    pub(super) source: io::Error,
}

/// Writes every file, mode 0600 where the file system knows modes, in directories of mode 0755, through a temporary
/// file and a rename. On failure removes what it wrote.
pub(super) fn plant(root: &Path, files: &[SeedFile<'_>]) -> Result<(), PlantError> {
    let mut written: Vec<PathBuf> = Vec::new();
    let planted = files.iter().try_for_each(|file| {
        let path = root.join(file.path);
        let write = directory(root, file.path).and_then(|parent| {
            // Only now is it known that these names are within the file system.
            written.push(path.clone());
            written.push(temporary(&path));
            write(&parent, &path, file.content)
        });
        write.map_err(|source| PlantError { path: file.path.to_owned(), source })
    });
    if planted.is_err() {
        for path in written {
            // Most were never made; the first error is the one to tell.
            let _ = fs::remove_file(path);
        }
    }
    planted
}

/// Makes the directories of a file, each durable in its parent; the innermost.
fn directory(root: &Path, file: &str) -> io::Result<PathBuf> {
    let mut dir = root.to_owned();
    for component in Path::new(file).parent().into_iter().flat_map(Path::components) {
        let Component::Normal(name) = component else {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        };
        let next = dir.join(name);
        match DirBuilder::new().mode(0o755).create(&next) {
            // A symbolic link could lead out of the file system.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !fs::symlink_metadata(&next)?.is_dir() {
                    return Err(io::Error::from(io::ErrorKind::NotADirectory));
                }
            }
            made => {
                made?;
                File::open(&dir)?.sync_all()?;
            }
        }
        dir = next;
    }
    Ok(dir)
}

fn write(parent: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = temporary(path);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed?,
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(parent)?.sync_all()
}

/// Beside the file, so that the rename stays within one directory.
fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".farrier-new");
    path.with_file_name(name)
}
