//! Files of a seed on plain directories.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::USER_DATA;
use crate::seed::plant::{SeedFile, plant};

fn files() -> [SeedFile<'static>; 2] {
    [
        SeedFile { path: "99_beskar7.yaml", content: USER_DATA },
        SeedFile { path: "beskar7/provider-id", content: b"b7://default/node-1" },
    ]
}

#[test]
fn files_are_written_verbatim_for_root_alone_and_replaced_whole() {
    let root = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        plant(root.path(), &files()).unwrap();
        for file in files() {
            let path = root.path().join(file.path);
            assert_eq!(fs::read(&path).unwrap(), file.content);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        }
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2, "no temporary file is left");
        assert_eq!(fs::read_dir(root.path().join("beskar7")).unwrap().count(), 1);
    }
}

#[test]
fn one_file_that_cannot_be_written_takes_the_others_with_it() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("beskar7"), "in the way").unwrap();
    let error = plant(root.path(), &files()).unwrap_err();
    assert_eq!(error.path, "beskar7/provider-id");
    assert!(!root.path().join("99_beskar7.yaml").exists());
}

#[test]
fn links_out_of_the_file_system_are_not_followed() {
    let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink(outside.path(), root.path().join("beskar7")).unwrap();
    plant(root.path(), &files()).unwrap_err();
    let victim = outside.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    fs::remove_file(root.path().join("beskar7")).unwrap();
    symlink(&victim, root.path().join("99_beskar7.yaml")).unwrap();
    plant(root.path(), &files()).unwrap();
    assert_eq!(fs::read(victim).unwrap(), b"untouched");
    assert_eq!(fs::read(root.path().join("99_beskar7.yaml")).unwrap(), USER_DATA);
}
