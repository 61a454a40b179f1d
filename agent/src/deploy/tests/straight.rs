//! Images that are in order, on disks that are.

use super::disk::{Faults, FileTarget, Zeros};
use super::image::{IMAGE, MIB, backup_sector, gpt_image, last_sectors, noise, partition_numbers};
use super::server::{Answer, Server};
use super::*;

const DISK: u64 = 9 * MIB as u64;

#[tokio::test]
async fn every_format_ends_up_on_the_disk_with_both_tables_completed() {
    let (image, formats) = &*IMAGE;
    for (name, served) in formats {
        let server = Server::honest(served).await;
        let target = FileTarget::new(DISK, 512);
        let outcome = run(&server, sha256(served), &target).await.expect(name);
        let expected = Outcome { served: served.len() as u64, written: image.len() as u64, read_back: true };
        assert_eq!(outcome, expected, "{name}");
        let content = target.content();
        // Between the tables nothing differs from the image.
        let middle = 34 * 512..image.len() - 512;
        assert!(content[middle.clone()] == image[middle], "{name}");
        assert_eq!(
            content[image.len() - 512..image.len()],
            [0; 512],
            "{name}: the stale backup header is gone"
        );
        assert_eq!(backup_sector(content.clone()), Some(DISK / 512 - 1), "{name}");
        assert_eq!(partition_numbers(content, 512), [1, 2], "{name}");
    }
}

#[tokio::test]
async fn the_last_partition_takes_the_rest_of_the_disk_when_asked_and_its_content_stays() {
    for sector in [512, 4096] {
        let image = gpt_image(6 * MIB, sector);
        let server = Server::honest(&image).await;
        let target = FileTarget::new(DISK, sector);
        let order = Order { grow: Grow::Last, ..order(&server, sha256(&image)) };
        run_order(&order, &target, false).await.unwrap();
        let content = target.content();
        assert_eq!(partition_numbers(content.clone(), sector), [1, 2]);
        // The ninth MiB holds the backup table, so the partition ends with the eighth.
        let end = 8 * u64::try_from(MIB).unwrap() / u64::from(sector);
        assert_eq!(last_sectors(&content, sector)[1], end - 1);
        assert_eq!(last_sectors(&content, sector)[0], last_sectors(&image, sector)[0]);
        let (first, last) = (40 * sector as usize, image.len() - 40 * sector as usize);
        assert!(content[first..last] == image[first..last]);
    }
}

#[tokio::test]
async fn what_cannot_grow_is_refused_before_anything_is_written() {
    let mut image = noise(3 * MIB);
    image[446..510].fill(0);
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    let server = Server::honest(&image).await;
    let target = FileTarget::new(DISK, 512);
    let order = Order { grow: Grow::Last, ..order(&server, sha256(&image)) };
    let reason = run_order(&order, &target, false).await.unwrap_err().reason();
    assert!(reason.starts_with("check: ") && reason.contains("needs an image with a GPT"), "{reason}");
    assert!(target.is_untouched());
}

/// Takes no user-data, and keeps the names of the partitions it is shown.
#[derive(Default)]
struct Names(std::sync::Mutex<Vec<(u64, Option<String>)>>);

impl Seed for Names {
    fn plant(&self, target: &dyn Target) -> Result<(), SeedError> {
        let seen = target.partitions()?.into_iter().map(|partition| (partition.number, partition.label));
        self.0.lock().unwrap().extend(seen);
        Ok(())
    }
}

#[tokio::test]
async fn the_seed_sees_the_partitions_by_number_and_name_before_their_table_is_written() {
    let image = gpt_image(3 * MIB, 512);
    let server = Server::honest(&image).await;
    let seed = Arc::new(Names::default());
    let (client, order, progress) = (client(), order(&server, sha256(&image)), Arc::new(Progress::new()));
    let installing = install(&client, &order, FileTarget::new(DISK, 512), Arc::clone(&seed) as _, progress);
    Box::pin(installing).await.unwrap();
    let named = |number, name: &str| (number, Some(name.to_owned()));
    assert_eq!(*seed.0.lock().unwrap(), [named(1, "COS_GRUB"), named(2, "COS_OEM")]);
}

#[tokio::test]
async fn an_image_exactly_as_large_as_the_disk_is_taken_byte_for_byte() {
    let (image, formats) = &*IMAGE;
    for (name, served) in formats {
        let server = Server::honest(served).await;
        let target = FileTarget::new(image.len() as u64, 512);
        run(&server, sha256(served), &target).await.expect(name);
        assert!(target.content() == *image, "{name}");
    }
}

#[tokio::test]
async fn disks_of_4096_byte_sectors_take_images_made_for_them() {
    let image = gpt_image(6 * MIB, 4096);
    let server = Server::honest(&image).await;
    let target = FileTarget::new(DISK, 4096);
    run(&server, sha256(&image), &target).await.unwrap();
    assert_eq!(partition_numbers(target.content(), 4096), [1, 2]);
}

#[tokio::test]
async fn an_image_with_an_mbr_is_written_as_it_is_and_padded_to_a_sector() {
    let mut image = noise(3 * MIB + 77);
    image[446..510].fill(0);
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    let server = Server::honest(&image).await;
    let target = FileTarget::new(DISK, 512);
    let outcome = run(&server, sha256(&image), &target).await.unwrap();
    assert_eq!(outcome.written, image.len() as u64);
    let content = target.content();
    assert!(content[..image.len()] == image);
    assert!(content[image.len()..image.len().next_multiple_of(512)].iter().all(|b| *b == 0));
}

#[tokio::test]
async fn an_image_smaller_than_what_is_withheld_is_installed_too() {
    let mut image = noise(512 * 9);
    image[446..510].fill(0);
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    let server = Server::honest(&image).await;
    let target = FileTarget::new(DISK, 512);
    run(&server, sha256(&image), &target).await.unwrap();
    let content = target.content();
    assert!(content[..image.len()] == image);
    assert!(content[image.len()..MIB].iter().all(|b| *b == 0), "the rest of the first MiB was wiped");
}

#[tokio::test]
async fn a_download_goes_on_wherever_it_was_cut() {
    let image = gpt_image(6 * MIB, 512);
    let cuts =
        [Answer::CutAfter(0), Answer::CutAfter(1), Answer::CutAfter(MIB - 1), Answer::CutAfter(2 * MIB)];
    let server = Server::start(&image, &cuts, Answer::Honest).await;
    let target = FileTarget::new(DISK, 512);
    let outcome = run(&server, sha256(&image), &target).await.unwrap();
    assert_eq!(outcome.served, image.len() as u64);
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    assert!(!requests[1].contains("range:"), "nothing had come yet");
    assert!(requests[2].contains("range: bytes=1-") && requests[2].contains("if-range: \"one\""));
    assert!(requests[4].contains(&format!("range: bytes={}-", 3 * MIB)));
}

#[tokio::test]
async fn progress_grants_new_attempts() {
    let image = gpt_image(3 * MIB, 512);
    let cuts = vec![Answer::CutAfter(100 << 10); 29];
    let server = Server::start(&image, &cuts, Answer::Honest).await;
    run(&server, sha256(&image), &FileTarget::new(DISK, 512)).await.unwrap();
}

#[tokio::test]
async fn a_server_without_ranges_is_skipped_through() {
    let image = gpt_image(6 * MIB, 512);
    let cuts = [Answer::CutAfter(2 * MIB), Answer::NoRanges(4 * MIB), Answer::NoRanges(usize::MAX)];
    let server = Server::start(&image, &cuts, Answer::Status(500)).await;
    run(&server, sha256(&image), &FileTarget::new(DISK, 512)).await.unwrap();
}

#[tokio::test]
async fn a_stall_and_a_storm_of_errors_are_sat_out() {
    let image = gpt_image(6 * MIB, 512);
    let trouble = [
        Answer::Status(503),
        Answer::Status(429),
        Answer::StallAfter(MIB),
        Answer::Status(502),
        Answer::Status(408),
        Answer::StallAfter(1000),
    ];
    let server = Server::start(&image, &trouble, Answer::Honest).await;
    run(&server, sha256(&image), &FileTarget::new(DISK, 512)).await.unwrap();
    assert_eq!(server.requests().len(), 7);
}

#[tokio::test]
async fn redirects_between_http_servers_are_followed() {
    let image = gpt_image(3 * MIB, 512);
    let store = Server::honest(&image).await;
    let front = Server::start(&[], &[], Answer::Redirect(store.url().to_string())).await;
    run(&front, sha256(&image), &FileTarget::new(DISK, 512)).await.unwrap();
}

#[tokio::test]
async fn short_transfers_interruptions_and_a_busy_table_do_no_harm() {
    let image = gpt_image(6 * MIB, 512);
    let server = Server::honest(&image).await;
    let target = FileTarget::with_faults(DISK, Faults { piecemeal: true, busy: 3, ..Faults::default() });
    run(&server, sha256(&image), &target).await.unwrap();
    assert_eq!(backup_sector(target.content()), Some(DISK / 512 - 1));
}

#[tokio::test]
async fn the_head_of_an_image_tells_how_large_a_disk_it_needs() {
    let (image, formats) = &*IMAGE;
    for (name, served) in formats {
        let server = Server::honest(served).await;
        let facts = client().peek(&Source::new(server.url())).await.expect(name);
        assert_eq!(facts.served, Some(served.len() as u64), "{name}");
        assert_eq!(facts.required, image.len() as u64, "{name}");
    }
}

#[tokio::test]
async fn zeros_are_not_sent_to_a_disk_that_makes_them_and_are_to_one_that_does_not() {
    let mut image = gpt_image(12 * MIB, 512);
    image[3 * MIB..7 * MIB].fill(0);
    image[8 * MIB..10 * MIB].fill(0);
    let server = Server::honest(&image).await;
    let mut sent = Vec::new();
    for zeros in [Zeros::Makes, Zeros::Refuses, Zeros::Forgets] {
        let target = FileTarget::with_faults(14 * MIB as u64, Faults { zeros, ..Faults::default() });
        run(&server, sha256(&image), &target).await.unwrap();
        let content = target.content();
        assert!(content[34 * 512..image.len() - 512] == image[34 * 512..image.len() - 512], "{zeros:?}");
        sent.push(target.sent());
    }
    // Each writer that is the first to ask may try the disk with a few KiB.
    let difference = |a: u64, b: u64| (a.abs_diff(b) + (64 << 10)) / MIB as u64;
    assert_eq!(difference(sent[1], sent[0]), 6);
    assert_eq!(difference(sent[2], sent[1]), 0, "a disk that forgets is found out before it matters");
}

/// Nothing is read back in the end here, as with an image of many GiB.
#[tokio::test]
async fn a_disk_that_makes_zeros_only_sometimes_or_only_in_part_is_found_out() {
    let mut image = gpt_image(12 * MIB + 4096, 512);
    for zeros in [3 * MIB..5 * MIB, 6 * MIB..8 * MIB, 9 * MIB..11 * MIB] {
        image[zeros].fill(0);
    }
    // A run that ends inside of what such a disk rounds to: the image's last block is a short one.
    image[12 * MIB..].fill(0);
    let server = Server::honest(&image).await;
    for zeros in [Zeros::ForgetsLater, Zeros::Rounds] {
        let target = FileTarget::with_faults(14 * MIB as u64, Faults { zeros, ..Faults::default() });
        let order = Order { verify: Verify::Off, ..order(&server, sha256(&image)) };
        run_order(&order, &target, false).await.unwrap();
        let content = target.content();
        let same = content[34 * 512..12 * MIB - 512] == image[34 * 512..12 * MIB - 512];
        assert!(same && content[12 * MIB..image.len()] == image[12 * MIB..], "{zeros:?}");
    }
}

#[tokio::test]
async fn a_server_in_trouble_is_left_alone_for_as_long_as_it_asks_within_reason() {
    let image = gpt_image(3 * MIB, 512);
    for (asked, least) in [(0, 0), (3600, 60)] {
        let server = Server::start(&image, &[Answer::Later(asked)], Answer::Honest).await;
        let begun = std::time::Instant::now();
        run(&server, sha256(&image), &FileTarget::new(DISK, 512)).await.unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(least), "{asked}");
    }
}

#[tokio::test]
async fn an_image_of_untold_length_whose_last_chunk_is_lost_is_whole() {
    let image = gpt_image(3 * MIB, 512);
    let server = Server::start(&image, &[Answer::Endless], Answer::Honest).await;
    run(&server, sha256(&image), &FileTarget::new(DISK, 512)).await.unwrap();
    assert_eq!(server.requests().len(), 2);
}
