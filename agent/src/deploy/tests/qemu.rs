//! qcow2 images that `qemu-img` made, kept in `agent/tests/qcow2`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use super::super::decode::{Limits, declared_size, decoder};
use super::super::format::Format;
use super::disk::FileTarget;
use super::server::Server;
use super::*;

/// The images by name, the disk they are of, and the disk that those are of whose names say that it is long.
fn images() -> (BTreeMap<String, Vec<u8>>, [Vec<u8>; 2]) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/qcow2");
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "gz") {
            let mut bytes = Vec::new();
            flate2::read::GzDecoder::new(fs::File::open(&path).unwrap()).read_to_end(&mut bytes).unwrap();
            all.insert(path.file_stem().unwrap().to_str().unwrap().to_owned(), bytes);
        }
    }
    let disks = ["disk", "long"].map(|name| all.remove(name).unwrap());
    assert_eq!(all.len(), 27, "{:?}", all.keys());
    (all, disks)
}

/// What it decodes to when it comes in pieces of so many bytes.
fn decoded(image: &[u8], pieces: usize) -> std::io::Result<Vec<u8>> {
    let served = BufReader::with_capacity(pieces, image);
    let mut disk = Vec::new();
    decoder(Format::Qcow2, served, Limits::SINGLE)?.read_to_end(&mut disk)?;
    Ok(disk)
}

#[test]
fn what_qemu_img_writes_is_read_whatever_its_version_clusters_and_compression() {
    let (images, [disk, long]) = images();
    for (name, image) in images.iter().filter(|(name, _)| !name.starts_with("refused")) {
        let disk = if name.starts_with("long") { &long } else { &disk };
        assert_eq!(Format::of(image).ok(), Some(Format::Qcow2), "{name}");
        let size = declared_size(Format::Qcow2, image).unwrap().unwrap();
        for pieces in [1 << 20, 1021] {
            let got = decoded(image, pieces).expect(name);
            assert_eq!(got.len() as u64, size, "{name}");
            assert!(got[..disk.len()] == *disk, "{name}");
            assert!(got[disk.len()..] == vec![0; got.len() - disk.len()], "{name}");
        }
        // Cut in the middle of what it holds, or of its tables, it is not taken for a shorter one.
        for cut in [600, image.len() / 3, image.len() / 2] {
            if let Ok(short) = decoded(&image[..cut], 1 << 20) {
                assert!(short[..disk.len()] == *disk, "{name} cut to {cut}");
            }
        }
    }
}

#[test]
fn what_cannot_be_streamed_is_refused_with_what_to_do() {
    let (images, _) = images();
    let expected = [
        ("backing", "needs a backing file"),
        ("data-file", "has its data in another file"),
        ("encrypted", "is encrypted"),
        ("extended", "has extended L2 entries"),
        ("rewritten", "clusters are out of order"),
    ];
    let refused = images.iter().filter_map(|(name, image)| Some((name.strip_prefix("refused-")?, image)));
    for ((name, image), (kind, reason)) in refused.zip(expected) {
        assert_eq!(name, kind);
        let error = decoded(image, 1 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}");
        let text = error.to_string();
        assert!(text.contains(reason) && text.contains("qemu-img convert -O qcow2"), "{name}: {text}");
    }
}

#[tokio::test]
async fn what_qemu_img_compressed_is_installed() {
    let (images, [disk, _]) = images();
    for name in ["v2-65536-deflate", "v3-65536-zstd"] {
        let image = &images[name];
        let server = Server::honest(image).await;
        let target = FileTarget::new(disk.len() as u64 + 8192, 512);
        run(&server, sha256(image), &target).await.expect(name);
        assert!(target.content()[..disk.len()] == disk, "{name}");
    }
}
