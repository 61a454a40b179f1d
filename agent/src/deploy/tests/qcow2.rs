//! Writes qcow2 images as `qemu-img convert` lays them out, and in ways it does not.

use std::io::Write as _;

/// How to write one.
#[derive(Clone, Copy)]
pub(super) struct Qcow2 {
    pub(super) version: u32,
    pub(super) cluster_bits: u32,
    /// Compression type: 0 deflate, 1 zstd.
    pub(super) compression: Option<u8>,
    /// All L2 tables stand before all clusters.
    pub(super) tables_first: bool,
    /// Two clusters have each other's place in the file.
    pub(super) swapped: bool,
}

impl Default for Qcow2 {
    fn default() -> Self {
        Self { version: 3, cluster_bits: 12, compression: None, tables_first: false, swapped: false }
    }
}

impl Qcow2 {
    pub(super) fn make(self, disk: &[u8]) -> Vec<u8> {
        let size = 1_usize << self.cluster_bits;
        let per_table = size / 8;
        let mut clusters: Vec<Option<Vec<u8>>> =
            disk.chunks(size).map(|bytes| self.cluster(bytes, size)).collect();
        let tables = clusters.len().div_ceil(per_table);
        // Header, a place for reference counts, L1.
        let mut file = vec![0; 3 * size];
        let mut l1 = Vec::new();
        let mut l2s = vec![vec![0_u64; per_table]; tables];
        if self.tables_first {
            for _ in 0..tables {
                l1.push(file.len() as u64);
                file.resize(file.len() + size, 0);
            }
        }
        let mut order: Vec<usize> = (0..clusters.len()).collect();
        if self.swapped {
            order.swap(100, 130);
        }
        for index in order {
            let table = index / per_table;
            if table == l1.len() {
                file.resize(file.len().next_multiple_of(size), 0);
                l1.push(file.len() as u64);
                file.resize(file.len() + size, 0);
            }
            let Some(bytes) = clusters[index].take() else { continue };
            if self.compression.is_none() {
                file.resize(file.len().next_multiple_of(size), 0);
                l2s[table][index % per_table] = file.len() as u64 | 1 << 63;
            } else {
                let at = file.len() as u64;
                let sectors = (at % 512 + bytes.len() as u64).div_ceil(512) - 1;
                l2s[table][index % per_table] = 1 << 62 | sectors << (62 - (self.cluster_bits - 8)) | at;
            }
            file.extend_from_slice(&bytes);
        }
        for (at, table) in l1.iter().zip(&l2s) {
            let bytes: Vec<u8> = table.iter().flat_map(|entry| entry.to_be_bytes()).collect();
            let at = usize::try_from(*at).unwrap();
            file[at..at + size].copy_from_slice(&bytes);
        }
        for (index, at) in l1.iter().enumerate() {
            file[2 * size + index * 8..][..8].copy_from_slice(&(at | 1 << 63).to_be_bytes());
        }
        let header = self.header(disk.len() as u64, 2 * size as u64, u32::try_from(tables).unwrap());
        file[..header.len()].copy_from_slice(&header);
        file
    }

    fn header(self, size: u64, l1_offset: u64, l1_entries: u32) -> Vec<u8> {
        let mut header = b"QFI\xfb".to_vec();
        let mut put32 = |value: u32| header.extend_from_slice(&value.to_be_bytes());
        [self.version, 0, 0, 0, self.cluster_bits].into_iter().for_each(&mut put32);
        header.extend_from_slice(&size.to_be_bytes());
        header.extend_from_slice(&[0; 4]);
        header.extend_from_slice(&l1_entries.to_be_bytes());
        header.extend_from_slice(&l1_offset.to_be_bytes());
        header.resize(72, 0);
        if self.version == 3 {
            let kind = self.compression.unwrap_or(0);
            header.extend_from_slice(&(u64::from(kind != 0) << 3).to_be_bytes());
            header.resize(104, 0);
            header.push(kind);
            header.resize(112, 0);
        }
        header
    }

    /// A cluster as it is stored; [`None`] for zeros.
    fn cluster(self, bytes: &[u8], size: usize) -> Option<Vec<u8>> {
        if *bytes == vec![0; bytes.len()] {
            return None;
        }
        let mut whole = bytes.to_vec();
        match self.compression {
            None => Some(whole),
            Some(0) => {
                whole.resize(size, 0);
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(&whole).unwrap();
                Some(encoder.finish().unwrap())
            }
            Some(_) => {
                whole.resize(size, 0);
                Some(zstd::bulk::compress(&whole, 1).unwrap())
            }
        }
    }
}
