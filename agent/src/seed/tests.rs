//! Seeds on plain directories, and whole installations on a loop device where this machine lets us have one.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use farrier_shared::contract::Digest;
use farrier_shared::contract::options::{Grow, Verify};
use reqwest::dns::{Name, Resolve, Resolving};
use sha2::Digest as _;
use zeroize::Zeroizing;

use super::plant::{SeedFile, plant};
use super::{CosOem, ext};
use crate::deploy::{DeployError, ImageClient, Order, Outcome, Progress, Timing, install};
use crate::disk::{
    Access, BlockDevice, DiskError, KernelTarget, Partition, Roots, Target, discover, signatures,
};

const MIB: usize = 1 << 20;
const USER_DATA: &[u8] = b"#cloud-config\nkey: \xff\x00 verbatim";

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

#[test]
fn a_label_is_read_of_ext_alone() {
    let mut head = vec![0; ext::HEAD];
    head[0x478..0x478 + 7].copy_from_slice(b"COS_OEM");
    assert_eq!(ext::label(&head), None);
    head[0x438..0x43a].copy_from_slice(&[0x53, 0xef]);
    assert_eq!(ext::label(&head).as_deref(), Some("COS_OEM"));
    head[0x478..0x488].fill(b'x');
    assert_eq!(ext::label(&head), Some("x".repeat(16)));
    assert_eq!(ext::label(&head[..0x480]), None);
}

/// A loop device over a file of so many MiB.
struct Loop {
    path: PathBuf,
    name: String,
    dir: tempfile::TempDir,
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

impl Loop {
    /// [`None`], with a word, on a machine that has none for us: loop devices need root and the kernel's driver.
    /// Where CI is set, as continuous integration does, there must be one: a test skipped there is never run.
    fn attach(mebibytes: usize) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("disk");
        File::create(&file).unwrap().set_len((mebibytes * MIB) as u64).unwrap();
        let output = Command::new("losetup").args(["-P", "-f", "--show"]).arg(&file).output();
        let output = output.ok().filter(|output| output.status.success());
        let Some(output) = output.filter(|_| Command::new("mkfs.ext4").arg("-V").output().is_ok()) else {
            let why = "no loop device or no mkfs.ext4 here: only the parts without one are tested";
            assert!(std::env::var_os("CI").is_none(), "{why}");
            eprintln!("{why}");
            return None;
        };
        let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        Some(Self { path, name, dir })
    }

    fn target(&self) -> Arc<dyn Target> {
        let roots = Roots::default();
        let disk = discover(&roots).unwrap().into_iter().find(|disk| disk.name == self.name).unwrap();
        Arc::new(Partitioned { file: self.dir.path().join("disk"), kernel: KernelTarget::new(disk, roots) })
    }

    /// A file of the first partition's file system, as another implementation reads it.
    fn read(&self, at: u64, len: usize, file: &str) -> Vec<u8> {
        let copy = self.dir.path().join("partition");
        let mut bytes = vec![0; len];
        let mut disk = File::open(self.dir.path().join("disk")).unwrap();
        disk.seek(SeekFrom::Start(at)).unwrap();
        disk.read_exact(&mut bytes).unwrap();
        fs::write(&copy, bytes).unwrap();
        let output =
            Command::new("debugfs").arg("-R").arg(format!("cat {file}")).arg(&copy).output().unwrap();
        output.stdout
    }
}

/// A target on a kernel that may be built without a parser for GPT, as those of small virtual machines are: what the
/// parser would have done is then done for it.
struct Partitioned {
    file: PathBuf,
    kernel: KernelTarget,
}

impl Target for Partitioned {
    fn name(&self) -> &str {
        self.kernel.name()
    }

    fn open(&self, access: Access) -> Result<Arc<dyn BlockDevice>, DiskError> {
        self.kernel.open(access)
    }

    fn partitions(&self) -> Result<Vec<Partition>, DiskError> {
        let seen = self.kernel.partitions()?;
        let table = gpt::GptConfig::new().only_valid_headers(true).open(&self.file);
        if let (true, Ok(table)) = (seen.is_empty(), table) {
            for (number, partition) in table.partitions() {
                let (start, sectors) = (partition.first_lba, partition.last_lba + 1 - partition.first_lba);
                let words = [number.to_string(), start.to_string(), sectors.to_string()];
                Command::new("addpart").arg(self.kernel.name()).args(words).status().unwrap();
            }
        }
        self.kernel.partitions()
    }
}

/// An image with one ext4 partition of 8 MiB so labelled, at 1 MiB.
fn image(dir: &Path, label: &str) -> Vec<u8> {
    let partition = dir.join("ext4");
    File::create(&partition).unwrap().set_len(8 * MIB as u64).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", "-L", label]).arg(&partition).status().unwrap();
    assert!(made.success());
    let mut image = std::io::Cursor::new(vec![0; 10 * MIB]);
    gpt::mbr::ProtectiveMBR::with_lb_size(20479).overwrite_lba0(&mut image).unwrap();
    let mut disk = gpt::GptConfig::new().writable(true).create_from_device(image, None).unwrap();
    let kind = gpt::partition_types::LINUX_FS;
    disk.add_partition_at("oem", 1, 2048, 8 * 2048, kind, 0).unwrap();
    let mut image = disk.write().unwrap();
    image.seek(SeekFrom::Start(MIB as u64)).unwrap();
    image.write_all(&fs::read(&partition).unwrap()).unwrap();
    image.into_inner()
}

struct NoNames;

impl Resolve for NoNames {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(async { Err("no look-ups in tests".into()) })
    }
}

async fn install_on(disk: &Loop, image: &[u8]) -> Result<Outcome, DeployError> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let body = image.to_vec();
    let app = Router::new().route("/image", get(|| async move { body }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/image", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let order = Order {
        image: url.parse().unwrap(),
        digest: Digest::from_bytes(sha2::Sha256::digest(image).into()),
        content_digest: None,
        verify: Verify::ReadBack,
        grow: Grow::Off,
    };
    let provider_id = "b7://default/node-1".parse().unwrap();
    let seed = CosOem::new(Zeroizing::new(USER_DATA.to_vec()), provider_id, disk.dir.path().to_path_buf());
    let timing = Timing { partitions: Duration::from_secs(60), ..Timing::default() };
    let client = ImageClient::with_timing(Arc::new(NoNames), timing).unwrap();
    let progress = Arc::new(Progress::new());
    let outcome = Box::pin(install(&client, &order, disk.target(), Arc::new(seed), progress)).await;
    server.abort();
    outcome
}

#[tokio::test]
async fn a_system_is_installed_on_a_real_block_device_with_its_seed_in_place() {
    let Some(disk) = Loop::attach(32) else { return };
    let image = image(disk.dir.path(), "COS_OEM");
    let outcome = install_on(&disk, &image).await.unwrap();
    assert_eq!((outcome.written, outcome.read_back), (10 * MIB as u64, true));
    let target = disk.target();
    let partitions = target.partitions().unwrap();
    assert_eq!(partitions.iter().map(|p| (p.number, p.size)).collect::<Vec<_>>(), [(1, 8 * MIB as u64)]);
    let read = |file| disk.read(MIB as u64, 8 * MIB, file);
    assert_eq!(read("/99_beskar7.yaml"), USER_DATA);
    assert_eq!(read("/beskar7/provider-id"), b"b7://default/node-1");
    let found = signatures(&*target.open(Access::Exclusive).unwrap()).unwrap();
    assert_eq!(found, ["MBR", "GPT", "GPT backup"]);
    let leftovers = fs::read_dir(disk.dir.path()).unwrap().flatten();
    assert!(leftovers.into_iter().all(|e| !e.file_name().to_string_lossy().starts_with("farrier-")));
}

#[tokio::test]
async fn an_image_without_the_partition_for_the_seed_leaves_a_disk_that_does_not_boot() {
    let Some(disk) = Loop::attach(32) else { return };
    let image = image(disk.dir.path(), "OTHER");
    let error = install_on(&disk, &image).await.unwrap_err();
    let reason = error.reason();
    let expected = format!("seed: COS_OEM partition not found on {}", disk.path.display());
    assert!(reason.starts_with(&expected) && reason.contains("(ext \"OTHER\")"), "{reason}");
    let target = disk.target();
    assert_eq!(signatures(&*target.open(Access::Exclusive).unwrap()).unwrap(), [""; 0]);
    assert_eq!(target.partitions().unwrap(), []);
}

#[tokio::test]
async fn a_disk_somebody_holds_is_not_touched() {
    let Some(disk) = Loop::attach(32) else { return };
    let image = image(disk.dir.path(), "COS_OEM");
    let target = disk.target();
    let held = target.open(Access::Exclusive).unwrap();
    let error = install_on(&disk, &image).await.unwrap_err();
    assert!(error.reason().contains("is in use by another holder"), "{error}");
    assert_eq!(signatures(&*held).unwrap(), [""; 0]);
}

#[test]
fn a_name_that_another_disk_has_taken_over_is_noticed_on_the_open_descriptor() {
    let Some(disk) = Loop::attach(32) else { return };
    let roots = Roots::default();
    let chosen = discover(&roots).unwrap().into_iter().find(|d| d.name == disk.name).unwrap();
    let open = |change: &dyn Fn(&mut crate::disk::Disk)| {
        let mut other = chosen.clone();
        change(&mut other);
        KernelTarget::new(other, roots.clone()).open(Access::Exclusive).map(|_| ()).unwrap_err().to_string()
    };
    assert!(open(&|d| d.dev.1 += 1).contains("its device number was"));
    assert!(open(&|d| d.size += 512).contains("its size was"));
    assert!(open(&|d| d.logical_sector = 4096).contains("its sector size was"));
    assert!(open(&|d| d.identity.serial = "OTHER".to_owned()).contains("its serial number was OTHER"));
    assert!(open(&|d| d.path = "/dev/null".into()).contains("is not a block device"));
}
