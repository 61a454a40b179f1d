//! Golden bytes, decisions over all sorts of firmware, and a store that fails.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;

use farrier_shared::contract::options::EfiBoot;
use proptest::prelude::*;

use super::esp::{Machine, find_loader};
use super::load_option::LoadOption;
use super::plan::{Entry, State, plan};
use super::*;

const LOADER: &str = "\\EFI\\BOOT\\BOOTX64.EFI";

fn esp() -> Esp {
    Esp { number: 1, start: 2048, sectors: 0x7_f800, guid: *b"0123456789abcdef" }
}

#[test]
fn an_entry_is_encoded_byte_for_byte() {
    let path = device_path::to_file(&esp(), LOADER);
    let bytes = LoadOption { active: true, description: "Farrier".into(), path: &path }.encode();
    let golden = concat!(
        // Active; 94 bytes of path; the name.
        "01000000",
        "5e00",
        "4600610072007200690065007200",
        "0000",
        // Hard drive: 42 bytes, partition 1, start 2048, length, GUID, GPT, signature is a GUID.
        "04012a00",
        "01000000",
        "0008000000000000",
        "00f8070000000000",
        "30313233343536373839616263646566",
        "0202",
        // File: 48 bytes, UTF-16 with its final zero.
        "04043000",
        "5c004500460049005c0042004f004f0054005c0042004f004f0054005800360034002e004500460049000000",
        // End of the entire path.
        "7fff0400",
    );
    assert_eq!(hex::encode(&bytes), golden);
    let back = LoadOption::decode(&bytes).unwrap();
    assert_eq!((back.active, back.description.as_str(), back.path), (true, "Farrier", &path[..]));
    assert_eq!(
        device_path::file_on_partition(back.path),
        Some((*b"0123456789abcdef", LOADER.to_ascii_lowercase()))
    );
}

/// Variables of a firmware.
#[derive(Default)]
struct Fake {
    all: RefCell<BTreeMap<String, Vec<u8>>>,
    /// Takes writes of this variable and keeps nothing.
    forgets: Option<&'static str>,
    /// Refuses writes of this variable.
    refuses: Option<&'static str>,
}

impl Variables for Fake {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.all.borrow().keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.all.borrow().get(name).cloned())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        if self.refuses == Some(name) {
            return Err(io::Error::from_raw_os_error(nix::libc::ENOSPC));
        }
        if self.forgets != Some(name) {
            self.all.borrow_mut().insert(name.to_owned(), bytes.to_vec());
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.all.borrow_mut().remove(name).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn node(kind: u8, subtype: u8, data: &[u8]) -> Vec<u8> {
    let len = u16::try_from(data.len() + 4).unwrap().to_le_bytes();
    [&[kind, subtype, len[0], len[1]], data].concat()
}

fn option(description: &str, nodes: &[Vec<u8>]) -> Vec<u8> {
    let path = [nodes.concat(), node(0x7f, 0xff, &[])].concat();
    LoadOption { active: true, description: description.into(), path: &path }.encode()
}

/// As on a server: setup, an old system's disk, two network cards, a vendor's own path.
fn server() -> Fake {
    let fake = Fake::default();
    let pci = node(1, 1, &[0, 3]);
    let mac = node(3, 11, &[0; 33]);
    let drive = node(4, 1, &[7; 38]);
    let vendor = node(1, 4, &[9; 16]);
    for (number, entry) in [
        (0, option("Setup", &[node(4, 7, &[1; 16])])),
        (1, option("debian", &[drive, node(4, 4, b"\\\0E\0\0\0")])),
        (2, option("UEFI: NIC 1", &[pci.clone(), mac.clone(), node(3, 12, &[0; 23])])),
        (3, option("UEFI: NIC 2", &[pci, mac, node(3, 13, &[0; 56])])),
        (4, option("PXE Device 1: Integrated NIC 1 Port 1", &[vendor])),
    ] {
        fake.all.borrow_mut().insert(entry_name(number), entry);
    }
    set_order(&fake, &[0, 1, 2, 4]);
    fake
}

fn set_order(fake: &Fake, order: &[u16]) {
    let bytes = order.iter().flat_map(|n| n.to_le_bytes()).collect();
    fake.all.borrow_mut().insert("BootOrder".into(), bytes);
}

fn order(fake: &Fake) -> Vec<u16> {
    let bytes = fake.all.borrow()["BootOrder"].clone();
    bytes.chunks_exact(2).map(|p| u16::from_le_bytes([p[0], p[1]])).collect()
}

#[test]
fn network_entries_stay_ahead_by_default_and_everything_else_keeps_its_order() {
    let fake = server();
    let outcome = make_entry(&fake, &esp(), LOADER, EfiBoot::NetworkFirst).unwrap();
    assert_eq!(outcome, Outcome::Changed { number: 5, removed: 0, order: vec![2, 4, 5, 0, 1] });
    assert_eq!(order(&fake), [2, 4, 5, 0, 1]);
    assert_eq!(fake.all.borrow().len(), 7, "the others are still there");
}

#[test]
fn the_disk_goes_first_when_that_is_asked_for() {
    let fake = server();
    make_entry(&fake, &esp(), LOADER, EfiBoot::DiskFirst).unwrap();
    assert_eq!(order(&fake), [5, 0, 1, 2, 4]);
}

#[test]
fn doing_it_again_changes_nothing() {
    for policy in [EfiBoot::NetworkFirst, EfiBoot::DiskFirst] {
        let fake = server();
        make_entry(&fake, &esp(), LOADER, policy).unwrap();
        let before = fake.all.borrow().clone();
        assert_eq!(
            make_entry(&fake, &esp(), LOADER, policy).unwrap(),
            Outcome::AsWanted { number: 5 },
            "{policy}"
        );
        assert_eq!(*fake.all.borrow(), before);
    }
}

#[test]
fn another_installation_takes_the_place_of_the_one_before() {
    let fake = server();
    make_entry(&fake, &esp(), LOADER, EfiBoot::NetworkFirst).unwrap();
    let other = Esp { guid: *b"another-disk-now", ..esp() };
    let outcome = make_entry(&fake, &other, LOADER, EfiBoot::NetworkFirst).unwrap();
    assert_eq!(outcome, Outcome::Changed { number: 5, removed: 1, order: vec![2, 4, 5, 0, 1] });
    assert_eq!(fake.all.borrow().len(), 7, "entries do not pile up");
}

#[test]
fn an_entry_that_leads_to_the_same_file_is_replaced_whatever_it_is_called() {
    let fake = server();
    // As firmware makes it by itself: another case, the same file.
    let path = device_path::to_file(&esp(), "\\efi\\boot\\bootx64.efi");
    let twin = LoadOption { active: true, description: "UEFI OS".into(), path: &path }.encode();
    fake.all.borrow_mut().insert("Boot0001".into(), twin);
    let outcome = make_entry(&fake, &esp(), LOADER, EfiBoot::NetworkFirst).unwrap();
    assert_eq!(outcome, Outcome::Changed { number: 1, removed: 1, order: vec![2, 4, 1, 0] });
}

#[test]
fn what_booted_this_system_counts_as_network_unless_it_is_a_medium() {
    let odd = option("Whatever", &[node(1, 4, &[1; 16])]);
    let stick = option("Stick", &[node(4, 1, &[1; 38])]);
    let wanted = option("Farrier", &[node(4, 1, &[2; 38])]);
    for (entry, expected) in [(odd, vec![7, 0]), (stick, vec![0, 7])] {
        let entries = vec![Entry { number: 7, bytes: entry }];
        let state = State { entries, order: vec![7], current: Some(7) };
        let order = plan(&state, &wanted, EfiBoot::NetworkFirst).unwrap().order;
        assert_eq!(order.unwrap(), expected);
    }
}

#[test]
fn a_machine_without_any_entry_gets_one() {
    let fake = Fake::default();
    make_entry(&fake, &esp(), LOADER, EfiBoot::NetworkFirst).unwrap();
    assert_eq!(order(&fake), [0]);
}

#[test]
fn numbers_the_order_names_are_not_taken_even_when_their_entries_are_gone() {
    let fake = Fake::default();
    set_order(&fake, &[0, 1, 1]);
    make_entry(&fake, &esp(), LOADER, EfiBoot::DiskFirst).unwrap();
    assert_eq!(order(&fake), [2, 0, 1]);
}

#[test]
fn firmware_that_keeps_nothing_is_found_out_and_its_order_left_alone() {
    for (fake, expected) in [
        (Fake { forgets: Some("Boot0005"), ..server() }, "did not keep the variable Boot0005"),
        (Fake { refuses: Some("Boot0005"), ..server() }, "cannot write the firmware variable Boot0005"),
    ] {
        let error = make_entry(&fake, &esp(), LOADER, EfiBoot::NetworkFirst).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(order(&fake), [0, 1, 2, 4]);
    }
}

#[test]
fn variables_are_files_with_attributes_before_their_content() {
    let dir = tempfile::tempdir().unwrap();
    let vars = Efivarfs::at(dir.path().into());
    fs::write(dir.path().join("Other-00000000-0000-0000-0000-000000000000"), "x").unwrap();
    vars.write("Boot0001", b"content").unwrap();
    assert_eq!(vars.names().unwrap(), ["Boot0001"]);
    let file = dir.path().join("Boot0001-8be4df61-93ca-11d2-aa0d-00e098032b8c");
    assert_eq!(fs::read(&file).unwrap(), b"\x07\0\0\0content");
    assert_eq!(vars.read("Boot0001").unwrap().as_deref(), Some(&b"content"[..]));
    assert_eq!(vars.read("Boot0002").unwrap(), None);
    vars.remove("Boot0001").unwrap();
    assert!(vars.remove("Boot0001").is_err() && vars.names().unwrap().is_empty());
}

#[test]
fn the_systems_own_shim_comes_before_the_fallback_path_and_that_before_any_other_loader() {
    let find = |files: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        find_loader(dir.path(), Machine::X64)
    };
    let fallback = "EFI/BOOT/BOOTX64.EFI";
    assert_eq!(find(&[fallback]).as_deref(), Some(LOADER));
    assert_eq!(find(&[fallback, "EFI/debian/shimx64.efi"]).as_deref(), Some("\\EFI\\debian\\shimx64.efi"));
    assert_eq!(
        find(&[fallback, "EFI/debian/shimx64.efi", "EFI/fedora/shimx64.efi"]).as_deref(),
        Some(LOADER),
        "which of the two is not for us to say"
    );
    assert_eq!(find(&[fallback, "EFI/debian/grubx64.efi"]).as_deref(), Some(LOADER));
    assert_eq!(find(&["EFI/debian/grubx64.efi"]).as_deref(), Some("\\EFI\\debian\\grubx64.efi"));
    assert_eq!(find(&["EFI/BOOT/BOOTIA32.EFI", "EFI/debian/grubaa64.efi"]), None);
    assert_eq!(find(&[]), None);
}

#[test]
fn thirty_two_bit_firmware_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Machine::of(dir.path()), Machine::X64);
    fs::write(dir.path().join("fw_platform_size"), "32\n").unwrap();
    assert_eq!(Machine::of(dir.path()), Machine::Ia32);
}

proptest! {
    #[test]
    fn any_bytes_are_judged_without_a_panic(
        entries in proptest::collection::vec((any::<u16>(), proptest::collection::vec(any::<u8>(), 0..80)), 0..6),
        order in proptest::collection::vec(any::<u16>(), 0..8),
        current in any::<Option<u16>>(),
        disk_first in any::<bool>(),
    ) {
        let path = device_path::to_file(&esp(), LOADER);
        let wanted = LoadOption { active: true, description: LABEL.to_owned(), path: &path }.encode();
        let entries = entries.into_iter().map(|(number, bytes)| Entry { number, bytes }).collect();
        let state = State { entries, order, current };
        let policy = if disk_first { EfiBoot::DiskFirst } else { EfiBoot::NetworkFirst };
        let plan = plan(&state, &wanted, policy).unwrap();
        let order = plan.order.unwrap_or_else(|| state.order.clone());
        prop_assert_eq!(order.iter().filter(|n| **n == plan.number).count(), 1);
        // Nobody else's entry is lost from the order.
        let lost = state.order.iter().any(|n| !order.contains(n) && !plan.remove.contains(n));
        prop_assert!(!lost);
    }
}
