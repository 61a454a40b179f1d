//! Each way of seeding, on a disk that holds what such an image brings.

use farrier_shared::contract::options::SeedKind;

use super::{Loop, MIB, USER_DATA, disk_image, ext4, payload};
use crate::seed::seed;

const CONFIG: &[u8] = br#"{"ignition":{"version":"3.4.0"}}"#;

/// Where partition `n` begins when each has 8 MiB.
fn at(n: u64) -> u64 {
    MIB as u64 + (n - 1) * 8 * MIB as u64
}

/// Plants on a disk with these partitions; the disk, and the error's text.
fn plant(kind: SeedKind, sector: u32, partitions: &[Vec<u8>]) -> Option<(Loop, Result<(), String>)> {
    let image = disk_image(sector, partitions);
    let disk = Loop::holding(&image, image.len() / MIB, sector)?;
    let user_data = if kind == SeedKind::Ignition { CONFIG } else { USER_DATA };
    let seed = seed(kind, payload(user_data), disk.dir.path().to_path_buf()).unwrap();
    let planted = seed.plant(&*disk.target()).map_err(|error| error.to_string());
    let left = std::fs::read_dir(disk.dir.path()).unwrap().flatten();
    let left: Vec<_> =
        left.map(|e| e.file_name()).filter(|n| n.to_string_lossy().starts_with("farrier-")).collect();
    assert!(left.is_empty(), "{left:?}");
    Some((disk, planted))
}

impl Loop {
    fn cat(&self, partition: u64, file: &str) -> Vec<u8> {
        self.debugfs(at(partition), 8 * MIB, &format!("cat {file}"))
    }

    fn stat(&self, partition: u64, file: &str) -> String {
        String::from_utf8(self.debugfs(at(partition), 8 * MIB, &format!("stat {file}"))).unwrap()
    }
}

#[test]
fn nocloud_takes_the_seed_directory_of_the_root_whatever_its_sectors() {
    for sector in [512, 4096] {
        let parts =
            [ext4("boot", &[("vmlinuz", "")]), ext4("", &[("etc/os-release", "ID=debian\n"), ("usr/x", "")])];
        let Some((disk, planted)) = plant(SeedKind::NoCloud, sector, &parts) else { return };
        planted.unwrap();
        let dir = "/var/lib/cloud/seed/nocloud";
        assert_eq!(disk.cat(2, &format!("{dir}/user-data")), USER_DATA);
        let meta_data = String::from_utf8(disk.cat(2, &format!("{dir}/meta-data"))).unwrap();
        assert!(meta_data.contains("local-hostname: \"node-1\""), "{meta_data}");
        assert!(disk.stat(2, &format!("{dir}/user-data")).contains("Mode:  0600"));
        assert!(disk.stat(2, dir).contains("Mode:  0755"));
        assert_eq!(disk.cat(1, "/user-data"), b"");
    }
}

#[test]
fn nocloud_passes_over_a_file_system_that_does_not_mount() {
    // Its superblock names a feature that no kernel has.
    let mut odd = ext4("", &[("etc/os-release", "")]);
    odd[1024 + 0x60..1024 + 0x64].fill(0xff);
    let Some((disk, planted)) =
        plant(SeedKind::NoCloud, 512, &[odd.clone(), ext4("", &[("etc/os-release", "")])])
    else {
        return;
    };
    planted.unwrap();
    assert_eq!(disk.cat(2, "/var/lib/cloud/seed/nocloud/user-data"), USER_DATA);
    let Some((_disk, planted)) = plant(SeedKind::NoCloud, 512, &[odd]) else { return };
    let error = planted.unwrap_err();
    assert!(error.contains("seed inject failed: mounting"), "{error}");
}

#[test]
fn nocloud_refuses_a_root_whose_var_is_elsewhere() {
    let fstab = "UUID=1 / ext4 defaults 0 1\nUUID=2 /var ext4 defaults 0 2\n";
    let parts = [ext4("", &[("etc/os-release", ""), ("etc/fstab", fstab)])];
    let Some((disk, planted)) = plant(SeedKind::NoCloud, 512, &parts) else { return };
    let error = planted.unwrap_err();
    assert!(error.contains("would be hidden: /etc/fstab mounts another file system on /var;"), "{error}");
    assert_eq!(disk.stat(1, "/var"), "");
}

#[test]
fn nocloud_does_not_take_an_ext4_for_the_labelled_file_system() {
    // cloud-init would not read it there.
    let Some((disk, planted)) = plant(SeedKind::NoCloud, 512, &[ext4("CIDATA", &[])]) else { return };
    let error = planted.unwrap_err();
    let expected = format!(
        "CIDATA partition not found on {} among {}p1 (ext \"CIDATA\"); the image must have a FAT so labelled, \
         or an ext4 root file system",
        disk.path.display(),
        disk.name
    );
    assert_eq!(error, expected);
}

#[test]
fn a_config_drive_is_laid_out_as_openstack_does() {
    let parts = [ext4("root", &[]), ext4("config-2", &[])];
    let Some((disk, planted)) = plant(SeedKind::ConfigDrive, 512, &parts) else { return };
    planted.unwrap();
    assert_eq!(disk.cat(2, "/openstack/latest/user_data"), USER_DATA);
    let meta_data = disk.cat(2, "/openstack/latest/meta_data.json");
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&meta_data).unwrap()["hostname"], "node-1");
}

#[test]
fn ignition_gets_its_config_on_the_boot_file_system_before_its_first_boot_only() {
    let parts = [ext4("boot", &[("ignition.firstboot", "")])];
    let Some((disk, planted)) = plant(SeedKind::Ignition, 512, &parts) else { return };
    planted.unwrap();
    assert_eq!(disk.cat(1, "/ignition/config.ign"), CONFIG);
    assert_eq!(disk.cat(1, "/beskar7/provider-id"), b"b7://default/node-1");
    assert!(disk.stat(1, "/ignition/config.ign").contains("Mode:  0600"));

    let Some((disk, planted)) = plant(SeedKind::Ignition, 512, &[ext4("boot", &[])]) else { return };
    let error = planted.unwrap_err();
    assert!(error.contains("has no ignition.firstboot"), "{error}");
    assert_eq!(disk.cat(1, "/ignition/config.ign"), b"");
}

#[test]
fn ignition_finds_its_config_on_flatcars_oem_partition() {
    let Some((disk, planted)) = plant(SeedKind::Ignition, 4096, &[ext4("OEM", &[])]) else { return };
    planted.unwrap();
    assert_eq!(disk.cat(1, "/config.ign"), CONFIG);
}

#[test]
fn a_file_system_made_for_smaller_sectors_is_told_of() {
    // The head of a FAT is enough: no driver for it is needed to see that it does not fit.
    let mut fat = vec![0; 8 * MIB];
    fat[11..17].copy_from_slice(&[0, 2, 4, 1, 0, 2]);
    fat[21] = 0xf8;
    fat[0x26] = 0x29;
    fat[0x2b..0x3b].copy_from_slice(b"CIDATA     FAT16");
    fat[510..512].copy_from_slice(&[0x55, 0xaa]);
    let Some((disk, planted)) = plant(SeedKind::NoCloud, 4096, &[fat]) else { return };
    let expected =
        format!("{}p1 holds a file system with sectors of 512 bytes, but the disk's have 4096", disk.name);
    assert!(planted.as_ref().is_err_and(|error| error.starts_with(&expected)), "{planted:?}");
}
