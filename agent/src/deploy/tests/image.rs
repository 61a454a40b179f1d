//! Disk images made and read by another implementation of GPT than ours.

use std::io::{Cursor, Write as _};
use std::sync::LazyLock;

use gpt::disk::LogicalBlockSize;
use gpt::mbr::ProtectiveMBR;
use gpt::{GptConfig, partition_types};
use liblzma::stream::{Check, MtStreamBuilder};
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};

use super::qcow2::Qcow2;

pub(super) const MIB: usize = 1 << 20;

/// A GPT image whose bytes do not compress, partitions 1 and 2 filling the middle.
pub(super) fn gpt_image(len: usize, sector: u32) -> Vec<u8> {
    let block = if sector == 512 { LogicalBlockSize::Lb512 } else { LogicalBlockSize::Lb4096 };
    let mut image = noise(len);
    image[..64 << 10].fill(0);
    let mbr = ProtectiveMBR::with_lb_size(u32::try_from(len as u64 / u64::from(sector) - 1).unwrap());
    mbr.overwrite_lba0(&mut Cursor::new(&mut image)).unwrap();
    let mut disk = GptConfig::new()
        .writable(true)
        .logical_block_size(block)
        .create_from_device(Cursor::new(image), None)
        .unwrap();
    let half = (len as u64 - 2 * MIB as u64) / 2;
    disk.add_partition("COS_GRUB", half, partition_types::EFI, 0, None).unwrap();
    disk.add_partition("COS_OEM", half, partition_types::LINUX_FS, 0, None).unwrap();
    disk.write().unwrap().into_inner()
}

/// Random-looking bytes.
pub(super) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    });
    words.flat_map(u64::to_le_bytes).take(len).collect()
}

/// Numbers of the partitions of a disk whose two tables are both sound; none otherwise.
pub(super) fn partition_numbers(disk: Vec<u8>, sector: u32) -> Vec<u64> {
    let block = if sector == 512 { LogicalBlockSize::Lb512 } else { LogicalBlockSize::Lb4096 };
    let config = GptConfig::new().logical_block_size(block).only_valid_headers(true);
    let Ok(disk) = config.open_from_device(Cursor::new(disk)) else { return Vec::new() };
    disk.partitions().keys().map(|number| u64::from(*number)).collect()
}

/// Numbers of the partitions a kernel shows.
pub(super) fn shown_numbers(disk: Vec<u8>, sector: u32) -> Vec<u64> {
    let used = |number: &u64| disk[446 + usize::try_from(number - 1).unwrap() * 16 + 4] != 0;
    let record: Vec<u64> = (1..=4).filter(used).collect();
    if disk[510..512] == [0x55, 0xaa] && disk[450] != 0xee { record } else { partition_numbers(disk, sector) }
}

/// Last sector of each partition of a disk, by its primary table.
pub(super) fn last_sectors(disk: &[u8], sector: u32) -> Vec<u64> {
    let block = if sector == 512 { LogicalBlockSize::Lb512 } else { LogicalBlockSize::Lb4096 };
    let config = GptConfig::new().logical_block_size(block);
    let disk = config.open_from_device(Cursor::new(disk.to_vec())).unwrap();
    disk.partitions().values().map(|partition| partition.last_lba).collect()
}

/// Where the backup header of a disk is, when both tables are sound and name each other.
pub(super) fn backup_sector(disk: Vec<u8>) -> Option<u64> {
    let disk = GptConfig::new().only_valid_headers(true).open_from_device(Cursor::new(disk)).ok()?;
    let (primary, backup) = (disk.primary_header().ok()?, disk.backup_header().ok()?);
    let named = primary.backup_lba == backup.current_lba && primary.last_usable == backup.last_usable;
    named.then_some(backup.current_lba)
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A frame that decoders pass over (RFC 8878, section 3.1.2).
fn skippable(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap();
    [&[0x50 | kind, 0x2a, 0x4d, 0x18][..], &length.to_le_bytes(), content].concat()
}

/// Frames of 256 KiB and a table of them in a frame to skip: zstd's format to seek in.
fn zstd_seekable(bytes: &[u8]) -> Vec<u8> {
    let (mut all, mut table) = (Vec::new(), Vec::new());
    for part in bytes.chunks(256 << 10) {
        let frame = zstd(part);
        for length in [frame.len(), part.len()] {
            table.extend(u32::try_from(length).unwrap().to_le_bytes());
        }
        all.extend(frame);
    }
    let frames = u32::try_from(table.len() / 8).unwrap();
    table.extend(frames.to_le_bytes());
    table.push(0);
    table.extend(0x8f92_eab1_u32.to_le_bytes());
    all.extend(skippable(0xe, &table));
    all
}

fn xz(bytes: &[u8], block: u64) -> Vec<u8> {
    let mut builder = MtStreamBuilder::new();
    let stream = builder.threads(1).preset(0).block_size(block).check(Check::Crc64).encoder().unwrap();
    let mut encoder = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let info = FrameInfo::new()
        .block_size(BlockSize::Max64KB)
        .content_checksum(true)
        .content_size(Some(bytes.len() as u64));
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A name for messages, and what is served.
pub(super) type Formats = Vec<(&'static str, Vec<u8>)>;

/// A 3 MiB image and all its formats, made once: compressing takes longer than installing.
pub(super) static IMAGE: LazyLock<(Vec<u8>, Formats)> = LazyLock::new(|| {
    let image = gpt_image(3 * MIB, 512);
    let formats = formats(&image);
    (image, formats)
});

/// The image in each format the pipeline knows, several streams where the format allows.
pub(super) fn formats(image: &[u8]) -> Formats {
    let (front, back) = image.split_at(image.len() / 3);
    vec![
        ("raw", image.to_vec()),
        ("gzip", gzip(image)),
        ("gzip of two members", [gzip(front), gzip(back)].concat()),
        ("zstd", zstd(image)),
        ("zstd of two frames", [zstd(front), zstd(back)].concat()),
        ("zstd to seek in", zstd_seekable(image)),
        ("zstd behind a frame to skip", [&skippable(0x5, b"anything")[..], &zstd(image)].concat()),
        ("xz", xz(image, 0)),
        ("xz of blocks", xz(image, MIB as u64)),
        ("xz of two streams", [xz(front, 0), vec![0; 8], xz(back, MIB as u64)].concat()),
        ("bzip2 of two streams", [bzip2(front), bzip2(back)].concat()),
        ("lz4", lz4(image)),
        ("lz4 of two frames", [lz4(front), lz4(back)].concat()),
        ("qcow2", Qcow2::default().make(image)),
        ("qcow2 of version 2", Qcow2 { version: 2, ..Qcow2::default() }.make(image)),
        (
            "qcow2 with deflate",
            Qcow2 { compression: Some(0), cluster_bits: 16, ..Qcow2::default() }.make(image),
        ),
        ("qcow2 with zstd", Qcow2 { compression: Some(1), cluster_bits: 16, ..Qcow2::default() }.make(image)),
    ]
}

/// The same bytes in each format that compresses.
pub(super) fn bombs(bytes: &[u8]) -> Formats {
    vec![
        ("gzip", gzip(bytes)),
        ("zstd", zstd(bytes)),
        ("xz", xz(bytes, 0)),
        ("bzip2", bzip2(bytes)),
        ("lz4", lz4(bytes)),
        ("qcow2", Qcow2 { cluster_bits: 16, ..Qcow2::default() }.make(bytes)),
    ]
}
