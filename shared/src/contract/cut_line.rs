//! Kernel command lines that lost their end on the way: a parameter that is missing then was never left out by
//! anybody, and the pinned disk is one of them.

use super::bootarg::BootArg;
use super::options;

/// Longest kernel command line, in bytes (`COMMAND_LINE_SIZE` of x86 and arm64, less its final zero). The EFI stub
/// drops whole words from the end of a longer one, other loaders cut it anywhere; nobody is told.
pub const MAX_LINE: usize = 2047;
/// The last word of a line with `farrier.*` words, without the prefix: where it is missing, so is what stood before.
pub const END: &str = "end";

/// So near to [`MAX_LINE`] a line may have been cut within a word.
const NEAR: usize = 2040;
/// So near to [`MAX_LINE`] the word that did not fit may have been a pinned disk: they are rarely longer.
const ROOM_FOR_A_DISK: usize = MAX_LINE - 127;

/// A command line that may have lost its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the kernel command line of {len} bytes may have lost its end, the pinned disk or an option with it: {sign}; a \
     kernel takes {MAX_LINE} bytes, so shorten the CA bundle, the URLs or the options"
)]
pub struct CutLine {
    /// Its length in bytes.
    pub len: usize,
    /// What tells.
    pub sign: &'static str,
}

/// Whether a command line came whole, as far as it can tell.
///
/// Our controller ends every line that has `farrier.*` words with [`END`]. The reference's lines end with `BOOTIF`
/// wherever its first stage names the interface.
///
/// # Errors
/// When it may not have.
pub fn check_whole(cmdline: &str) -> Result<(), CutLine> {
    let line = cmdline.trim_ascii_end();
    let cut = |sign| Err(CutLine { len: line.len(), sign });
    let (mut ours, mut end) = (false, false);
    for (key, value) in options::words(line) {
        if key == END {
            end = value == "1";
        } else {
            (ours, end) = (true, false);
        }
    }
    if end {
        return Ok(());
    }
    if ours {
        return cut("it has farrier.* words and no farrier.end=1 after them");
    }
    let has = |arg: BootArg| {
        let mut words = line.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        words.any(|(key, value)| key == arg.key() && !value.is_empty())
    };
    if has(BootArg::BootIf) {
        return Ok(());
    }
    if line.len() >= NEAR {
        return cut("nothing marks its end");
    }
    if line.len() >= ROOM_FOR_A_DISK && !has(BootArg::Disk) {
        return cut("it names no disk, and one more word would not have fitted");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(len: usize, tail: &str) -> String {
        let head = "vmlinuz beskar7.ca=";
        format!("{head}{}{tail}", "A".repeat(len - head.len() - tail.len()))
    }

    #[test]
    fn a_line_of_ours_is_whole_only_with_its_last_word() {
        for whole in [
            "beskar7.ca=A farrier.run=r loglevel=5 initrd=initrd.img farrier.end=1\n",
            "beskar7.ca=A farrier.end=1",
            "beskar7.ca=A BOOTIF=01-52-54-00-12-34-56",
            "quiet",
        ] {
            assert_eq!(check_whole(whole), Ok(()), "{whole}");
        }
        for cut in [
            "beskar7.ca=A farrier.run=r",
            "beskar7.ca=A BOOTIF=01-52-54-00-12-34-56 farrier.run=r farrier.end=",
            "beskar7.ca=A BOOTIF=01-52-54-00-12-34-56 farrier.run=r farrier.en",
            "beskar7.ca=A farrier.run=r farrier.end=1 farrier.verify=off",
        ] {
            let told = check_whole(cut).unwrap_err();
            assert_eq!(
                (told.len, told.sign),
                (cut.len(), "it has farrier.* words and no farrier.end=1 after them")
            );
        }
        assert_eq!(check_whole(&padded(MAX_LINE, " farrier.verify=off farrier.end=1")), Ok(()));
    }

    #[test]
    fn a_long_line_of_the_references_is_whole_when_its_last_word_is_there() {
        assert_eq!(check_whole(&padded(MAX_LINE, " BOOTIF=01-52-54-00-12-34-56")), Ok(()));
        assert_eq!(check_whole(&padded(NEAR - 1, " beskar7.disk=/dev/sda")), Ok(()));
        assert_eq!(check_whole(&padded(ROOM_FOR_A_DISK - 1, "")), Ok(()));
        // A disk's name may itself have been cut, and name another disk.
        assert_eq!(check_whole(&padded(NEAR, " beskar7.disk=/dev/sda")).unwrap_err().len, NEAR);
        assert_eq!(check_whole(&padded(ROOM_FOR_A_DISK, "")).unwrap_err().len, ROOM_FOR_A_DISK);
    }
}
