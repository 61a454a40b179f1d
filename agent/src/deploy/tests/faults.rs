//! Disks that fail, seeds that find no place, and runs that are called off.

use proptest::prelude::*;

use super::disk::{Faults, FileTarget};
use super::image::{IMAGE, MIB, gpt_image, partition_numbers};
use super::server::{Answer, Server};
use super::*;

const DISK: u64 = 9 * MIB as u64;

#[tokio::test]
async fn a_disk_that_fails_anywhere_is_named_and_does_not_boot() {
    let image = gpt_image(6 * MIB, 512);
    let server = Server::honest(&image).await;
    let bad_places = [600, 2 * MIB as u64 + 7, 6 * MIB as u64 - 5000, DISK - 100];
    for bad in bad_places {
        let target = FileTarget::with_faults(DISK, Faults { bad_write: Some(bad), ..Faults::default() });
        let error = run(&server, sha256(&image), &target).await.unwrap_err();
        assert!(error.reason().starts_with("disk: writing /dev/vda at byte"), "{bad}: {error}");
        assert!(target.is_unbootable(), "{bad}");
    }
}

#[tokio::test]
async fn a_disk_that_lies_is_found_out_by_reading_back() {
    let image = gpt_image(6 * MIB, 512);
    let server = Server::honest(&image).await;
    for bad in [513, 3 * MIB as u64 + 1, DISK - 500] {
        let target = FileTarget::with_faults(DISK, Faults { bad_read: Some(bad), ..Faults::default() });
        let error = run(&server, sha256(&image), &target).await.expect_err("the lie is noticed");
        assert!(error.reason().starts_with("verify: /dev/vda reads back other bytes"), "{bad}: {error}");
        assert!(target.is_unbootable(), "{bad}");
    }
}

#[tokio::test]
async fn a_sector_that_is_remapped_when_it_is_written_is_no_reason_to_refuse_a_disk() {
    let image = gpt_image(6 * MIB, 512);
    let server = Server::honest(&image).await;
    for pending in [0, 5000, DISK - 100] {
        let target = FileTarget::with_faults(DISK, Faults { pending: Some(pending), ..Faults::default() });
        run(&server, sha256(&image), &target).await.unwrap();
        assert_eq!(partition_numbers(target.content(), 512), [1, 2]);
    }
}

#[tokio::test]
async fn a_disk_that_cannot_be_read_after_it_was_wiped_is_named_and_does_not_boot() {
    let image = gpt_image(6 * MIB, 512);
    let server = Server::honest(&image).await;
    let target = FileTarget::with_faults(DISK, Faults { unreadable: true, ..Faults::default() });
    let reason = run(&server, sha256(&image), &target).await.unwrap_err().reason();
    assert!(reason.starts_with("DISK /dev/vda NOT WIPED after disk: reading /dev/vda at byte 0"), "{reason}");
    assert!(target.is_unbootable());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_hangs_holds_a_run_called_off_for_a_while_only() {
    let image = gpt_image(6 * MIB, 512);
    let server = Server::honest(&image).await;
    let target = FileTarget::with_faults(DISK, Faults { hangs: true, ..Faults::default() });
    let start = std::time::Instant::now();
    let order = order(&server, sha256(&image));
    let (client, progress) = (client(), Arc::new(Progress::new()));
    let installing = install(&client, &order, target, Arc::new(TestSeed { fails: false }), progress);
    let ended = tokio::time::timeout(Duration::from_millis(500), Box::pin(installing)).await;
    assert!(ended.is_err(), "it hangs");
    assert!((2..30).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

#[tokio::test]
async fn without_a_place_for_the_seed_nothing_boots() {
    let image = gpt_image(6 * MIB, 512);
    let server = Server::honest(&image).await;
    let target = FileTarget::new(DISK, 512);
    let error = run_order(&order(&server, sha256(&image)), &target, true).await.unwrap_err();
    assert!(error.reason().starts_with("seed: "), "{error}");
    assert!(target.is_unbootable());
}

#[tokio::test]
async fn partitions_that_never_show_are_a_failure() {
    let image = gpt_image(6 * MIB, 512);
    let server = Server::honest(&image).await;
    let target = FileTarget::with_faults(DISK, Faults { busy: u64::MAX, ..Faults::default() });
    let error = run(&server, sha256(&image), &target).await.unwrap_err();
    assert!(error.reason().starts_with("partition: the kernel does not show"), "{error}");
    assert!(target.is_unbootable());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_called_off_in_the_middle_has_wiped_the_disk_by_then() {
    let image = gpt_image(6 * MIB, 512);
    let server = Server::start(&image, &[], Answer::StallAfter(4 * MIB)).await;
    let target = FileTarget::new(DISK, 512);
    let order = order(&server, sha256(&image));
    let (client, as_target): (_, Arc<dyn Target>) = (client(), Arc::clone(&target) as _);
    let seed = Arc::new(TestSeed { fails: false });
    let progress = Arc::new(Progress::new());
    {
        let install = Box::pin(install(&client, &order, as_target, seed, Arc::clone(&progress)));
        let enough = async {
            while progress.snapshot().bytes < 4 * MIB as u64 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            result = install => panic!("it cannot have ended: {result:?}"),
            () = enough => {}
        }
    }
    assert!(!target.is_untouched());
    assert!(target.is_unbootable());
}

/// Any answer a server may give.
fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let n = 0..3 * MIB;
    let answer = prop_oneof![
        4 => n.clone().prop_map(Answer::CutAfter),
        1 => Just(Answer::Status(503)),
        1 => n.prop_map(Answer::NoRanges),
        1 => Just(Answer::Replaced),
        1 => Just(Answer::WrongRange),
        1 => Just(Answer::Status(404)),
    ];
    proptest::collection::vec(answer, 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_image_is_whole_or_nothing_boots(
        answers in answers(),
        format in any::<prop::sample::Index>(),
        corrupt in proptest::option::of(any::<prop::sample::Index>()),
        bad_write in proptest::option::weighted(0.2, 0..DISK),
    ) {
        let (image, formats) = &*IMAGE;
        let good = &format.get(formats).1;
        let mut served = good.clone();
        if let Some(at) = corrupt {
            served[at.index(good.len())] ^= 1;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::start(&served, &answers, Answer::Honest).await;
            let target = FileTarget::with_faults(DISK, Faults { bad_write, ..Faults::default() });
            match run(&server, sha256(good), &target).await {
                Ok(outcome) => {
                    assert_eq!(outcome.written, image.len() as u64);
                    assert!(corrupt.is_none());
                    let content = target.content();
                    let middle = 34 * 512..image.len() - 512;
                    assert!(content[middle.clone()] == image[middle]);
                    assert_eq!(partition_numbers(content, 512), [1, 2]);
                }
                Err(error) => {
                    assert!(!error.reason().is_empty());
                    assert!(target.is_untouched() || target.is_unbootable(), "{error}");
                }
            }
        });
    }
}
