//! Whole installations with the contract's seed.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use farrier_shared::contract::Digest;
use farrier_shared::contract::options::{Grow, SeedKind, Verify};
use reqwest::dns::{Name, Resolve, Resolving};
use sha2::Digest as _;

use super::{Loop, MIB, USER_DATA, disk_image, ext4, payload};
use crate::deploy::{DeployError, ImageClient, Order, Outcome, Progress, Source, Timing, install};
use crate::disk::{Access, Disk, KernelTarget, Roots, Target as _, discover, signatures};
use crate::seed::seed;

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
        source: Source::new(url.parse().unwrap()),
        digest: Digest::from_bytes(sha2::Sha256::digest(image).into()),
        content_digest: None,
        verify: Verify::ReadBack,
        grow: Grow::Off,
    };
    let seed = seed(SeedKind::CosOem, payload(USER_DATA), disk.dir.path().to_path_buf()).unwrap();
    let timing = Timing { partitions: Duration::from_secs(60), ..Timing::default() };
    let client = ImageClient::with_timing(Arc::new(NoNames), timing).unwrap();
    let progress = Arc::new(Progress::new());
    let outcome = Box::pin(install(&client, &order, disk.target(), seed, progress)).await;
    server.abort();
    outcome
}

#[tokio::test]
async fn a_system_is_installed_on_a_real_block_device_with_its_seed_in_place() {
    let Some(disk) = Loop::attach(32) else { return };
    let image = disk_image(512, &[ext4("COS_OEM", &[])]);
    let outcome = install_on(&disk, &image).await.unwrap();
    assert_eq!((outcome.written, outcome.read_back), (10 * MIB as u64, true));
    let target = disk.target();
    let partitions = target.partitions().unwrap();
    assert_eq!(partitions.iter().map(|p| (p.number, p.size)).collect::<Vec<_>>(), [(1, 8 * MIB as u64)]);
    let read = |file| disk.debugfs(MIB as u64, 8 * MIB, &format!("cat {file}"));
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
    let image = disk_image(512, &[ext4("OTHER", &[])]);
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
    let image = disk_image(512, &[ext4("COS_OEM", &[])]);
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
    let open = |change: &dyn Fn(&mut Disk)| {
        let mut other = chosen.clone();
        change(&mut other);
        KernelTarget::new(other, roots.clone()).open(Access::Exclusive).map(|_| ()).unwrap_err().to_string()
    };
    assert!(open(&|d| d.dev.1 += 1).contains("its device number was"));
    assert!(open(&|d| d.size += 512).contains("its size was"));
    assert!(open(&|d| d.logical_sector = 4096).contains("its sector size was"));
    assert!(open(&|d| d.identity.serial = "OTHER".to_owned()).contains("its serial number was OTHER"));
    // Whether the kernel counts or not, one of these is another disk.
    let sequence = chosen.identity.sequence.unwrap_or_default();
    assert!(open(&|d| d.identity.sequence = Some(sequence + 1)).contains("its sequence number was"));
    assert!(open(&|d| d.path = "/dev/null".into()).contains("is not a block device"));
}
