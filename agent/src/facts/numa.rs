//! NUMA nodes: which processors are near which memory.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// Most nodes told of; the kernel knows at most 1024.
const MOST: usize = 256;

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    /// Its number.
    pub(super) node: u32,
    /// Its hardware threads as the kernel lists them, such as `0-15,32-47`.
    pub(super) cpus: String,
    /// Its memory in bytes; 0 when it has none or does not say.
    pub(super) memory_bytes: u64,
}

/// Every node in order of number.
pub(super) fn nodes(root: &Path) -> Vec<Node> {
    let Ok(entries) = fs::read_dir(root.join("sys/devices/system/node")) else { return Vec::new() };
    let mut nodes: Vec<_> = entries
        .filter_map(|entry| {
            let dir = entry.ok()?.path();
            let node = dir.file_name()?.to_str()?.strip_prefix("node")?.parse().ok()?;
            let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap_or_default();
            let cpus = read("cpulist").trim().chars().take(256).collect();
            Some(Node { node, cpus, memory_bytes: memory(&read("meminfo")).unwrap_or(0) })
        })
        .collect();
    nodes.sort_by_key(|n| n.node);
    nodes.truncate(MOST);
    nodes
}

/// From lines such as `Node 0 MemTotal:  2027796 kB`.
fn memory(meminfo: &str) -> Option<u64> {
    let (_, rest) = meminfo.split_once("MemTotal:")?;
    rest.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_by_number_with_their_processors_and_memory() {
        let root = tempfile::tempdir().unwrap();
        for (n, cpus, meminfo) in [
            (10, "4-7\n", "Node 10 MemTotal:       2027796 kB\nNode 10 MemFree: 1 kB\n"),
            (2, "0-3,8\n", "Node 2 MemTotal: 99999999999999999999 kB\n"),
        ] {
            let dir = root.path().join(format!("sys/devices/system/node/node{n}"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("cpulist"), cpus).unwrap();
            fs::write(dir.join("meminfo"), meminfo).unwrap();
        }
        fs::create_dir_all(root.path().join("sys/devices/system/node/power")).unwrap();
        let expected = [
            Node { node: 2, cpus: "0-3,8".into(), memory_bytes: 0 },
            Node { node: 10, cpus: "4-7".into(), memory_bytes: 2_027_796 * 1024 },
        ];
        assert_eq!(nodes(root.path()), expected);
        assert!(nodes(Path::new("/nonesuch")).is_empty());
    }
}
