//! What an ATA disk thinks of itself: SMART RETURN STATUS, sent through SCSI, and how its answer is read.
//!
//! The command is of ACS-3 (section 7.48.8), its way through ATA PASS-THROUGH (16) and back in sense data of SAT-3
//! (sections 12.2.2 to 12.2.5).

use crate::sys::scsi;

/// ATA PASS-THROUGH (16).
const PASS_THROUGH: u8 = 0x85;
/// Protocol "non-data", in its place.
const NO_DATA: u8 = 3 << 1;
/// Asks for the registers after the command even when all went well: the answer is in them.
const CHECK: u8 = 1 << 5;
const SMART: u8 = 0xb0;
const RETURN_STATUS: u8 = 0xda;
/// LBA registers, middle and high, without which a disk takes no SMART command, and which come back when no
/// threshold is exceeded.
const GOOD: [u8; 2] = [0x4f, 0xc2];
/// The same when one is.
const FAILING: [u8; 2] = [0xf4, 0x2c];

/// Status register: error, device fault.
const FAULTS: u8 = 0x01 | 0x20;
/// Formats of sense data about the command itself rather than an earlier one.
const FIXED: u8 = 0x70;
const DESCRIPTORS: u8 = 0x72;
/// Descriptor that carries ATA registers, and how long it says it is.
const ATA_STATUS: u8 = 0x09;
const ATA_STATUS_LENGTH: u8 = 12;
/// Additional sense code "ATA pass through information available".
const ATA_INFORMATION: [u8; 2] = [0x00, 0x1d];

/// A disk's verdict on itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No threshold is exceeded.
    Good,
    /// One is: the disk expects to fail.
    Failing,
}

/// The command.
pub(super) const fn return_status() -> [u8; scsi::COMMAND] {
    let mut command = [0; scsi::COMMAND];
    command[0] = PASS_THROUGH;
    command[1] = NO_DATA;
    command[2] = CHECK;
    command[4] = RETURN_STATUS;
    command[10] = GOOD[0];
    command[12] = GOOD[1];
    command[14] = SMART;
    command
}

/// Reads the answer; [`None`] when the disk has no SMART, has it switched off, or says something else.
pub(super) fn verdict(sense: &[u8]) -> Option<Verdict> {
    let [status, middle, high] = registers(sense)?;
    match [middle, high] {
        _ if status & FAULTS != 0 => None,
        GOOD => Some(Verdict::Good),
        FAILING => Some(Verdict::Failing),
        _ => None,
    }
}

/// Status, LBA middle and LBA high.
fn registers(sense: &[u8]) -> Option<[u8; 3]> {
    match sense.first()? & 0x7f {
        DESCRIPTORS => {
            let length = usize::from(*sense.get(7)?);
            let all = sense.get(8..)?;
            let mut rest = &all[..all.len().min(length)];
            while let [kind, length, tail @ ..] = rest {
                let body = tail.get(..usize::from(*length))?;
                if (*kind, *length) == (ATA_STATUS, ATA_STATUS_LENGTH) {
                    return Some([body[11], body[7], body[9]]);
                }
                rest = &tail[body.len()..];
            }
            None
        }
        FIXED if sense.get(12..14)? == ATA_INFORMATION => Some([sense[4], sense[10], sense[11]]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Descriptor format, "recovered error, ATA pass through information available", as Linux' own translation and
    /// SAS adapters answer; registers as far as they matter.
    fn descriptor(status: u8, middle: u8, high: u8) -> Vec<u8> {
        let head = [0x72, 0x01, 0x00, 0x1d, 0, 0, 0, 14];
        let ata = [0x09, 12, 0, 0, 0, 0, 0, 0, 0, middle, 0, high, 0, status];
        [&head[..], &ata].concat()
    }

    /// Fixed format of the same.
    fn fixed(status: u8, middle: u8, high: u8) -> Vec<u8> {
        vec![0x70, 0, 0x01, 0, status, 0, 0, 10, 0, 0, middle, high, 0x00, 0x1d, 0, 0, 0, 0]
    }

    #[test]
    fn the_command_is_the_one_that_smartctl_is_seen_to_send() {
        let command = return_status();
        assert_eq!(command, [0x85, 0x06, 0x20, 0, 0xda, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0]);
    }

    #[test]
    fn a_disk_says_whether_it_expects_to_fail() {
        for format in [descriptor, fixed] {
            assert_eq!(verdict(&format(0x50, 0x4f, 0xc2)), Some(Verdict::Good));
            assert_eq!(verdict(&format(0x50, 0xf4, 0x2c)), Some(Verdict::Failing));
        }
    }

    #[test]
    fn a_disk_without_smart_says_nothing() {
        for format in [descriptor, fixed] {
            // Aborted, with the registers as they were sent; and with what a fault leaves there.
            assert_eq!(verdict(&format(0x51, 0x4f, 0xc2)), None);
            assert_eq!(verdict(&format(0x71, 0xf4, 0x2c)), None);
            assert_eq!(verdict(&format(0x50, 0, 0)), None);
            assert_eq!(verdict(&format(0x50, 0xf4, 0xc2)), None);
        }
        // Illegal request, invalid command operation code: no ATA disk after all.
        assert_eq!(verdict(&[0x70, 0, 0x05, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0]), None);
        assert_eq!(verdict(&[0x72, 0x05, 0x20, 0, 0, 0, 0, 0]), None);
        assert_eq!(verdict(&[]), None);
    }

    #[test]
    fn sense_data_of_an_earlier_command_is_not_its_answer() {
        for (format, deferred) in [(descriptor(0x50, 0xf4, 0x2c), 0x73), (fixed(0x50, 0xf4, 0x2c), 0x71)] {
            let mut sense = format;
            sense[0] = deferred;
            assert_eq!(verdict(&sense), None);
        }
    }

    #[test]
    fn the_registers_are_found_behind_other_descriptors() {
        let mut sense = vec![0x72, 0x01, 0x00, 0x1d, 0, 0, 0, 14 + 4];
        sense.extend([0x03, 2, 0, 0]);
        sense.extend(&descriptor(0x50, 0xf4, 0x2c)[8..]);
        assert_eq!(verdict(&sense), Some(Verdict::Failing));
        // Beyond what the sense data says it holds, nothing counts.
        sense[7] = 4;
        assert_eq!(verdict(&sense), None);
    }

    #[test]
    fn sense_data_cut_anywhere_is_no_verdict() {
        let whole = descriptor(0x50, 0xf4, 0x2c);
        for cut in 0..whole.len() {
            assert_eq!(verdict(&whole[..cut]), None, "{cut}");
        }
        let whole = fixed(0x50, 0xf4, 0x2c);
        for cut in 0..14 {
            assert_eq!(verdict(&whole[..cut]), None, "{cut}");
        }
    }

    proptest! {
        #[test]
        fn any_sense_data_is_read_without_a_fault(sense in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = verdict(&sense);
        }
    }
}
