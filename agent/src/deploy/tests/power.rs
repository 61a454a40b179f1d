//! The power fails, or whoever waits gives up, at any moment.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::disk::{FileTarget, Op};
use super::image::{MIB, gpt_image, partition_numbers};
use super::server::Server;
use super::*;
use crate::disk::{Access, AlignedBuffer, write_all};

const DISK: u64 = 6 * MIB as u64;
/// Where the two files of the seed are, inside the second partition.
const FILES: [u64; 2] = [3 << 20, (3 << 20) + 8192];
const FILE: u8 = 0x5e;

/// Writes two files, each durable before the next.
struct TwoFiles;

impl Seed for TwoFiles {
    fn plant(&self, target: &dyn Target) -> Result<(), SeedError> {
        let device = target.open(Access::Exclusive)?;
        let mut file = AlignedBuffer::zeroed(512);
        file.fill(FILE);
        for place in FILES {
            write_all(&*device, &file, place)?;
            device.flush().unwrap();
        }
        Ok(())
    }
}

fn apply<'a>(disk: &mut [u8], writes: impl IntoIterator<Item = &'a (u64, Vec<u8>)>) {
    for (at, bytes) in writes {
        let at = usize::try_from(*at).unwrap();
        disk[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// The disk that a power cut may leave: what was flushed, and any of what was not, in any order, or in part.
fn leftovers(medium: &[u8], pending: &[(u64, Vec<u8>)]) -> Vec<Vec<u8>> {
    let with = |writes: &[&(u64, Vec<u8>)]| {
        let mut disk = medium.to_vec();
        apply(&mut disk, writes.iter().copied());
        disk
    };
    let mut all: Vec<Vec<u8>> = pending.iter().map(|write| with(&[write])).collect();
    all.extend((0..=pending.len()).map(|n| with(&pending[..n].iter().collect::<Vec<_>>())));
    for (at, bytes) in pending {
        // Sectors are whole; a write of several need not be.
        for torn in [&bytes[..512], &bytes[bytes.len() / 1024 * 512..], &bytes[bytes.len() - 512..]] {
            let place = at + (bytes.len() - torn.len()) as u64;
            let place = if torn.as_ptr() == bytes.as_ptr() { *at } else { place };
            all.push(with(&[&(place, torn.to_vec())]));
        }
    }
    all
}

/// What an earlier system left, as far as it is not cleared: nothing of the image.
fn is_old(disk: &[u8]) -> bool {
    let old = |sector: &[u8]| sector == [0; 512] || sector == [0x11; 512];
    disk[510..512] == [0x55, 0xaa]
        && disk[..510].iter().all(|b| *b == 0x11)
        && disk[512..].chunks(512).all(old)
}

fn boots(disk: &[u8]) -> bool {
    let at = |place: usize, mark: &[u8]| disk[place..place + mark.len()] == *mark;
    at(510, &[0x55, 0xaa]) || at(512, b"EFI PART") || at(disk.len() - 512, b"EFI PART")
}

fn is_whole(disk: &[u8], image: &[u8]) -> bool {
    let mut expected = image[34 * 512..image.len() - 34 * 512].to_vec();
    for place in FILES {
        let at = usize::try_from(place).unwrap() - 34 * 512;
        expected[at..at + 512].fill(FILE);
    }
    disk[34 * 512..image.len() - 34 * 512] == expected
}

#[tokio::test]
async fn a_power_cut_leaves_what_was_there_or_nothing_that_boots_or_the_whole_with_its_seed() {
    // Smaller than the disk, and as large as it.
    for len in [5 * MIB, 6 * MIB] {
        let image = gpt_image(len, 512);
        let server = Server::honest(&image).await;
        let target = FileTarget::logging(DISK);
        let before = target.content();
        let as_target: Arc<dyn Target> = Arc::clone(&target) as _;
        let order = order(&server, sha256(&image));
        let (client, progress) = (client(), Arc::new(Progress::new()));
        Box::pin(install(&client, &order, as_target, Arc::new(TwoFiles), progress)).await.unwrap();

        let (mut medium, mut pending, mut states) = (before, Vec::new(), [0, 0, 0]);
        for op in target.log() {
            match op {
                Op::Write(at, bytes) => pending.push((at, bytes)),
                Op::Flush => {
                    for disk in leftovers(&medium, &pending) {
                        let kind = match boots(&disk) {
                            false => 0,
                            true if is_old(&disk) => 1,
                            true => 2,
                        };
                        assert!(kind < 2 || is_whole(&disk, &image), "something else boots");
                        states[kind] += 1;
                    }
                    apply(&mut medium, &pending);
                    pending.clear();
                }
            }
        }
        assert!(pending.is_empty(), "the last writes are flushed");
        assert!(medium == target.content() && is_whole(&medium, &image));
        assert_eq!(partition_numbers(medium, 512), [1, 2]);
        assert!(states.iter().all(|seen| *seen > 0), "each of the three is seen: {states:?}");
    }
}

/// Says when it is asked, and plants when it is let.
struct Waiting {
    asked: Mutex<Option<tokio::sync::oneshot::Sender<()>>>,
    go: Mutex<Receiver<()>>,
}

impl Waiting {
    fn new() -> (Arc<Self>, tokio::sync::oneshot::Receiver<()>, Sender<()>) {
        let (asked, when_asked) = tokio::sync::oneshot::channel();
        let (go, gone) = channel();
        let seed = Self { asked: Mutex::new(Some(asked)), go: Mutex::new(gone) };
        (Arc::new(seed), when_asked, go)
    }
}

impl Seed for Waiting {
    fn plant(&self, _: &dyn Target) -> Result<(), SeedError> {
        let asked = self.asked.lock().unwrap().take().expect("asked once");
        asked.send(()).unwrap();
        self.go.lock().unwrap().recv().unwrap();
        Ok(())
    }
}

/// Installs up to the seed, gives up, and has the seed planted: before that is noticed, or long after.
async fn given_up(late: bool) -> Arc<FileTarget> {
    let image = gpt_image(4 * MIB, 512);
    let server = Server::honest(&image).await;
    let target = FileTarget::new(DISK, 512);
    let order = order(&server, sha256(&image));
    let mut client = client();
    if late {
        client.timing.stop = Duration::from_millis(10);
    }
    let (seed, asked, go) = Waiting::new();
    let (as_target, as_seed): (Arc<dyn Target>, Arc<dyn Seed>) =
        (Arc::clone(&target) as _, Arc::clone(&seed) as _);
    {
        let installing = install(&client, &order, as_target, as_seed, Arc::new(Progress::new()));
        let mut installing = Box::pin(installing);
        tokio::select! {
            result = &mut installing => panic!("it cannot have ended: {result:?}"),
            asked = asked => asked.unwrap(),
        }
        if !late {
            go.send(()).unwrap();
        }
    }
    if late {
        go.send(()).unwrap();
    }
    // The thread holds the seed for as long as it runs.
    while Arc::strong_count(&seed) > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    target
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_nobody_waits_for_any_more_does_not_come_to_boot() {
    for late in [false, true] {
        let target = given_up(late).await;
        assert!(!target.is_untouched() && target.is_unbootable(), "late: {late}");
    }
}
