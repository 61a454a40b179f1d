//! Disk images made and read by another implementation of GPT than ours.

use std::io::{Cursor, Write as _};

use gpt::disk::LogicalBlockSize;
use gpt::mbr::ProtectiveMBR;
use gpt::{GptConfig, partition_types};

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

/// The image in each format the pipeline knows, several streams where the format allows.
pub(super) fn formats(image: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let (front, back) = image.split_at(image.len() / 3);
    vec![
        ("raw", image.to_vec()),
        ("gzip", gzip(image)),
        ("gzip of two members", [gzip(front), gzip(back)].concat()),
        ("zstd", zstd(image)),
        ("zstd of two frames", [zstd(front), zstd(back)].concat()),
    ]
}
