//! Images that are not in order: nothing boots afterwards, and the reason is told without the URL's secrets.

use liblzma::stream::{Check, Filters, LzmaOptions, Stream};

use super::disk::FileTarget;
use super::image::{IMAGE, MIB, gpt_image, gzip, noise};
use super::qcow2::Qcow2;
use super::server::{Answer, Server};
use super::*;

const DISK: u64 = 9 * MIB as u64;

/// The run fails for this reason, and the disk is as it was or does not boot.
async fn fails(server: &Server, digest: Digest, target: &Arc<FileTarget>, reason: &str) {
    let error = run(server, digest, target).await.expect_err(reason);
    let told = error.reason();
    assert!(told.contains(reason), "expected {reason:?}, got {told:?}");
    assert!(!told.contains("secret"), "{told:?}");
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(told.len() <= 256, "{told:?}");
    assert!(target.is_untouched() || target.is_unbootable(), "{told}");
}

#[tokio::test]
async fn a_missing_image_is_one_request_and_touches_nothing() {
    let server = Server::start(&[], &[], Answer::Status(404)).await;
    let target = FileTarget::new(DISK, 512);
    fails(&server, sha256(&[]), &target, "fetch: HTTP 404 from 127.0.0.1").await;
    assert_eq!(server.requests().len(), 1);
    assert!(target.is_untouched());
}

#[tokio::test]
async fn errors_without_end_end() {
    let server = Server::start(&[], &[], Answer::Status(503)).await;
    let target = FileTarget::new(DISK, 512);
    let begin = std::time::Instant::now();
    fails(&server, sha256(&[]), &target, "fetch: HTTP 503 from 127.0.0.1").await;
    assert!(begin.elapsed() >= client().timing.give_up, "time counts, not attempts");
    assert!(server.requests().len() > 1);
    assert!(target.is_untouched());
}

#[tokio::test]
async fn a_server_that_always_cuts_at_one_place_is_not_waited_for() {
    let image = gpt_image(6 * MIB, 512);
    let server = Server::start(&image, &[Answer::CutAfter(4 * MIB)], Answer::CutAfter(0)).await;
    let target = FileTarget::new(DISK, 512);
    fails(&server, sha256(&image), &target, "truncated: 4194304 of 6291456 bytes").await;
    assert!(server.requests().len() <= 1 + 4, "{}", server.requests().len());
}

#[tokio::test]
async fn a_server_that_stalls_for_ever_is_left() {
    let image = gpt_image(6 * MIB, 512);
    let server = Server::start(&image, &[Answer::CutAfter(4 * MIB)], Answer::StallAfter(0)).await;
    let target = FileTarget::new(DISK, 512);
    fails(&server, sha256(&image), &target, "truncated: 4194304 of 6291456 bytes").await;
    let server = Server::start(&image, &[], Answer::StallAfter(0)).await;
    fails(&server, sha256(&image), &target, "no byte for 0 s").await;
}

#[tokio::test]
async fn a_body_shorter_than_announced_is_truncation_and_not_a_wrong_digest() {
    let image = gpt_image(6 * MIB, 512);
    let server = Server::honest(&image).await;
    server.announce(image.len() + 1);
    let target = FileTarget::new(DISK, 512);
    fails(&server, sha256(&image), &target, "truncated: 6291456 of 6291457 bytes").await;
}

#[tokio::test]
async fn an_image_replaced_during_the_download_is_noticed() {
    let image = gpt_image(6 * MIB, 512);
    let cut = Answer::CutAfter(3 * MIB);
    for second in [Answer::Replaced, Answer::WrongRange] {
        let server = Server::start(&image, &[cut.clone(), second], Answer::Honest).await;
        let target = FileTarget::new(DISK, 512);
        fails(&server, sha256(&image), &target, "changed during the download").await;
        assert!(target.is_unbootable());
    }
}

#[tokio::test]
async fn one_wrong_byte_anywhere_in_any_format_is_a_digest_mismatch() {
    for (name, good) in &IMAGE.1 {
        // The header bytes that tell the format aside, a flipped bit shows as a broken stream or not at all.
        for at in [20, 515, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let server = Server::honest(&bad).await;
            let target = FileTarget::new(4 * MIB as u64, 512);
            let error = run(&server, sha256(good), &target).await.expect_err(name);
            let sector_or_format = matches!(
                error,
                DeployError::Table { .. } | DeployError::NotAnImage { .. } | DeployError::TooLarge { .. }
            );
            assert!(
                matches!(error, DeployError::DigestMismatch { .. }) || sector_or_format,
                "{name} at {at}: {error}"
            );
            assert!(target.is_untouched() || target.is_unbootable(), "{name} at {at}");
        }
    }
}

#[tokio::test]
async fn every_format_cut_short_leaves_nothing_that_boots_even_if_the_digest_is_of_the_cut() {
    for (name, whole) in &IMAGE.1 {
        let places = (0..20).map(|n| whole.len() * n / 20 + n);
        for len in places.chain([1, 17, 600, whole.len() - 9, whole.len() - 1]) {
            let cut = &whole[..len];
            let server = Server::honest(cut).await;
            let target = FileTarget::new(4 * MIB as u64, 512);
            match run(&server, sha256(cut), &target).await {
                // Nothing of its partitions is missing, and the backup table is made anew.
                Ok(_) => assert!(*name == "raw" && len > MIB, "{name} cut to {len} was taken"),
                Err(error) => {
                    assert!(!error.reason().is_empty());
                    assert!(target.is_untouched() || target.is_unbootable(), "{name} cut to {len}: {error}");
                }
            }
        }
    }
}

#[tokio::test]
async fn garbage_after_a_stream_is_refused() {
    // qcow2 has no end, and raw bytes are all content.
    let compressed = IMAGE.1.iter().filter(|(name, _)| *name != "raw" && !name.starts_with("qcow2"));
    for (name, stream) in compressed {
        let served = [&stream[..], &noise(100)].concat();
        let server = Server::honest(&served).await;
        let target = FileTarget::new(DISK, 512);
        let format = name.split(' ').next().unwrap();
        fails(&server, sha256(&served), &target, &format!("decode: {format} stream is broken after")).await;
        assert!(target.is_unbootable());
    }
}

#[tokio::test]
async fn garbage_of_any_length_after_a_stream_is_refused() {
    let streams = IMAGE
        .1
        .iter()
        .filter(|(name, _)| ["gzip", "zstd", "xz", "bzip2 of two streams", "lz4"].contains(name));
    for (name, stream) in streams {
        for garbage in [&b"x"[..], b"xy", b"\x1f", b"BZ", b"\0\0\0", b"\x04\x22\x4d", &[0xff; 12]] {
            let served = [&stream[..], garbage].concat();
            let server = Server::honest(&served).await;
            let target = FileTarget::new(4 * MIB as u64, 512);
            let error = run(&server, sha256(&served), &target).await.expect_err(name);
            assert!(matches!(error, DeployError::Decode { .. }), "{name} and {garbage:?}: {error}");
            assert!(target.is_unbootable());
        }
    }
}

#[tokio::test]
async fn an_image_with_a_boot_record_that_ends_inside_a_partition_is_truncated() {
    let mut image = noise(3 * MIB);
    image[446..510].fill(0);
    image[446 + 4] = 0x83;
    image[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    image[446 + 12..446 + 16].copy_from_slice(&4096_u32.to_le_bytes());
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    for cut in [1, 512, MIB] {
        let served = &image[..image.len() - cut];
        let server = Server::honest(served).await;
        let target = FileTarget::new(DISK, 512);
        fails(&server, sha256(served), &target, "unsound: the image ends inside a partition").await;
        assert!(target.is_unbootable());
    }
    // Its partition ends beyond this disk, and would end beyond the image if sectors had 4096 bytes.
    let server = Server::honest(&image).await;
    let target = FileTarget::new(DISK, 4096);
    fails(&server, sha256(&image), &target, "check: /dev/vda: the image is made for 512-byte sectors").await;
    assert!(target.is_untouched());
}

#[tokio::test]
async fn a_qcow2_image_that_needs_more_than_a_stream_is_refused_with_what_to_do() {
    let (image, _) = &*IMAGE;
    let plain = Qcow2::default().make(image);
    let patched = |at: usize, byte: u8| {
        let mut bytes = plain.clone();
        bytes[at] = byte;
        bytes
    };
    let cases = [
        (Qcow2 { swapped: true, ..Qcow2::default() }.make(image), "its clusters are out of order"),
        (patched(7, 4), "it is of another version"),
        (patched(15, 200), "it needs a backing file"),
        (patched(35, 1), "it is encrypted"),
        (patched(79, 1), "it was not closed"),
        (patched(79, 4), "it has its data in another file"),
        (patched(79, 16), "it has extended L2 entries"),
    ];
    for (served, reason) in cases {
        let server = Server::honest(&served).await;
        let target = FileTarget::new(DISK, 512);
        fails(&server, sha256(&served), &target, reason).await;
        fails(&server, sha256(&served), &target, "qemu-img convert -O qcow2").await;
    }
}

#[tokio::test]
async fn tables_of_a_qcow2_image_may_all_come_first() {
    let (image, _) = &*IMAGE;
    let served = Qcow2 { tables_first: true, ..Qcow2::default() }.make(image);
    let server = Server::honest(&served).await;
    let target = FileTarget::new(DISK, 512);
    run(&server, sha256(&served), &target).await.unwrap();
    assert!(target.content()[34 * 512..image.len() - 512] == image[34 * 512..image.len() - 512]);
}

#[tokio::test]
async fn an_image_known_to_be_too_large_touches_nothing() {
    let image = gpt_image(9 * MIB + 512, 512);
    let declared = zstd::bulk::compress(&image, 1).unwrap();
    for served in [image.clone(), gzip(&image), declared] {
        let server = Server::honest(&served).await;
        let target = FileTarget::new(6 * MIB as u64, 512);
        fails(&server, sha256(&served), &target, "check: ").await;
        assert!(target.is_untouched());
    }
}

#[tokio::test]
async fn an_image_that_turns_out_too_large_stops_at_the_end_of_the_disk() {
    let mut image = noise(9 * MIB + 512);
    image[446..510].fill(0);
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    let served = gzip(&image);
    let server = Server::honest(&served).await;
    let target = FileTarget::new(DISK, 512);
    fails(&server, sha256(&served), &target, "write: image is larger than /dev/vda of 9437184 bytes").await;
    assert!(target.is_unbootable());
}

#[tokio::test]
async fn an_image_for_another_sector_size_touches_nothing() {
    for (image, disk) in [(512, 4096), (4096, 512)] {
        let bytes = gpt_image(6 * MIB, image);
        let server = Server::honest(&bytes).await;
        let target = FileTarget::new(DISK, disk);
        fails(&server, sha256(&bytes), &target, &format!("made for {image}-byte sectors")).await;
        assert!(target.is_untouched());
    }
}

#[tokio::test]
async fn what_is_no_image_is_refused_by_name_and_touches_nothing() {
    let padded = |magic: &[u8]| [magic, &noise(2 * MIB)[..]].concat();
    let cases: [(Vec<u8>, &str); 7] = [
        (padded(b"KDMV"), "vmdk"),
        (padded(b"vhdxfile"), "vhdx"),
        (padded(b"conectix"), "vhd"),
        (padded(b"PK\x03\x04"), "zip"),
        (padded(b"<html>"), "web page"),
        (gzip(&padded(b"text")), "not a disk image"),
        (Vec::new(), "nothing was served"),
    ];
    for (served, reason) in cases {
        let server = Server::honest(&served).await;
        let target = FileTarget::new(DISK, 512);
        fails(&server, sha256(&served), &target, reason).await;
        assert!(target.is_untouched());
        if !served.is_empty() {
            assert!(client().peek(&Source::new(server.url())).await.is_err() || reason == "not a disk image");
        }
    }
}

#[tokio::test]
async fn a_zstd_frame_cannot_demand_memory() {
    let image = gpt_image(3 * MIB, 512);
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    std::io::Write::write_all(&mut encoder, &image).unwrap();
    let served = encoder.finish().unwrap();
    let server = Server::honest(&served).await;
    let target = FileTarget::new(DISK, 512);
    fails(&server, sha256(&served), &target, "compress without --long").await;
    assert!(target.is_untouched());
}

#[tokio::test]
async fn redirects_elsewhere_or_without_end_are_not_followed() {
    let target = FileTarget::new(DISK, 512);
    let server = Server::start(&[], &[], Answer::Redirect("ftp://127.0.0.1/secret".to_owned())).await;
    fails(&server, sha256(&[]), &target, "redirects to something else than http or https").await;
    let server = Server::start(&[], &[], Answer::Redirect("/secret".to_owned())).await;
    fails(&server, sha256(&[]), &target, "redirects more than 5 times").await;
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn decoded_bytes_other_than_ordered_are_refused() {
    let image = gpt_image(3 * MIB, 512);
    let served = gzip(&image);
    let server = Server::honest(&served).await;
    let target = FileTarget::new(DISK, 512);
    let right = Order { content_digest: Some(sha256(&image)), ..order(&server, sha256(&served)) };
    run_order(&right, &target, false).await.unwrap();
    let wrong = Order { content_digest: Some(sha256(&served)), ..right };
    let error = run_order(&wrong, &target, false).await.unwrap_err();
    assert!(error.reason().contains("decoded image digest mismatch"), "{error}");
    assert!(target.is_unbootable());
}

#[tokio::test]
async fn a_download_cut_at_every_percent_is_whole_in_the_end() {
    let (image, formats) = &*IMAGE;
    for (name, served) in formats.iter().filter(|(name, _)| ["raw", "zstd", "xz of blocks"].contains(name)) {
        let cuts = vec![Answer::CutAfter(served.len() / 100 + 1); 99];
        let server = Server::start(served, &cuts, Answer::Honest).await;
        let target = FileTarget::new(4 * MIB as u64, 512);
        let outcome = run(&server, sha256(served), &target).await.expect(name);
        assert_eq!((outcome.written, server.requests().len()), (image.len() as u64, 100), "{name}");
    }
}

#[tokio::test]
async fn a_server_that_dies_at_any_percent_leaves_nothing_that_boots() {
    let dies_at = async |percent: usize| {
        let (image, _) = &*IMAGE;
        let cut = Answer::CutAfter(image.len() * percent / 100);
        let server = Server::start(image, &[cut], Answer::Status(503)).await;
        let target = FileTarget::new(4 * MIB as u64, 512);
        fails(&server, sha256(image), &target, "fetch: HTTP 503 from 127.0.0.1").await;
    };
    // Each waits for its server for a while, so ten at once.
    for ten in 0..10 {
        futures_util::future::join_all((0..10).map(|one| Box::pin(dies_at(ten * 10 + one)))).await;
    }
}

#[tokio::test]
async fn a_storm_between_all_bytes_is_sat_out_as_long_as_some_come() {
    let (image, _) = &*IMAGE;
    let storm = [503, 429].map(Answer::Status);
    let answers: Vec<_> =
        (0..20).flat_map(|_| storm.iter().cloned().chain([Answer::CutAfter(image.len() / 20)])).collect();
    let server = Server::start(image, &answers, Answer::Honest).await;
    run(&server, sha256(image), &FileTarget::new(4 * MIB as u64, 512)).await.unwrap();
}

#[tokio::test]
async fn a_bomb_of_any_kind_ends_at_the_end_of_the_disk() {
    let mut bomb = vec![0; 64 * MIB];
    bomb[510..512].copy_from_slice(&[0x55, 0xaa]);
    for (name, served) in super::image::bombs(&bomb) {
        assert!(served.len() < MIB, "{name} is no bomb: {} bytes", served.len());
        let server = Server::honest(&served).await;
        let target = FileTarget::new(32 * MIB as u64, 512);
        fails(&server, sha256(&served), &target, "image is ").await;
        assert!(target.sent() < 16 * MIB as u64, "{name}: {} bytes sent", target.sent());
    }
}

#[tokio::test]
async fn an_xz_dictionary_cannot_demand_memory() {
    let (image, _) = &*IMAGE;
    let mut options = LzmaOptions::new_preset(0).unwrap();
    // No larger than shows it: the encoder takes several times as much.
    options.dict_size(129 << 20);
    let stream = Stream::new_stream_encoder(Filters::new().lzma2(&options), Check::Crc64).unwrap();
    let mut encoder = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
    std::io::Write::write_all(&mut encoder, image).unwrap();
    let served = encoder.finish().unwrap();
    let server = Server::honest(&served).await;
    let target = FileTarget::new(DISK, 512);
    fails(&server, sha256(&served), &target, "compress with xz -9 or less").await;
    assert!(target.is_untouched());
}
