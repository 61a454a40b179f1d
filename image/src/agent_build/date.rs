//! The date of the source, which the agent takes for the earliest its clock can show.
//!
//! It is the source's own, so that two builds of one source are the same byte for byte, and a whole day, which is exact
//! enough, leaves room for the clock of whoever committed, and spares a build of the agent for every commit.

use crate::command::{Command, SHORT};
use std::path::Path;

/// In the source; `git archive` writes the date of the commit into it (`.gitattributes`).
const STAMP: &str = ".source-date";
const DAY: u32 = 24 * 60 * 60;

/// The day of the last commit, in seconds since 1970; of an archive, the one it was made of. [`None`] for a copy
/// without either.
#[must_use]
pub fn of_source(workspace: &Path) -> Option<u32> {
    of(workspace, last_commit)
}

fn of(workspace: &Path, last_commit: impl FnOnce(&Path) -> Option<String>) -> Option<u32> {
    // Not of a repository around it: an archive may be unpacked anywhere.
    let from_git = || workspace.join(".git").exists().then(|| last_commit(workspace)).flatten();
    let from_archive = || std::fs::read_to_string(workspace.join(STAMP)).ok();
    let day = |text: String| Some(text.trim().parse::<u32>().ok()? / DAY * DAY);
    from_git().and_then(day).or_else(|| from_archive().and_then(day))
}

fn last_commit(workspace: &Path) -> Option<String> {
    let git = Command::new("git", SHORT).arg("-C").arg(workspace);
    let out = git.args(["log", "-1", "--format=%ct"]).output().ok()?;
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_the_commits_else_the_archives_else_none() {
        let scratch = tempfile::tempdir().expect("scratch");
        let root = scratch.path();
        let commit = |text: &'static str| move |_: &Path| Some(text.to_owned());
        assert_eq!(of(root, commit("1793491201\n")), None, "of a repository around it");
        std::fs::create_dir(root.join(".git")).expect("dir");
        std::fs::write(root.join(STAMP), "$Format:%ct$\n").expect("file");
        assert_eq!(of(root, commit("1793577599\n")), Some(1_793_491_200), "the day");
        assert_eq!(of(root, |_| None), None, "no git, and no archive");
        std::fs::write(root.join(STAMP), "1793491201\n").expect("file");
        assert_eq!(of(root, commit("not a date")), Some(1_793_491_200), "an archive");
        assert_eq!(of(root, commit("1793600000")), Some(1_793_577_600), "a repository comes first");
    }

    #[test]
    fn the_stamp_of_this_source_is_for_git_to_fill_in() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |name: &str| std::fs::read_to_string(root.join(name)).expect(name);
        let stamp = read(STAMP);
        assert!(stamp == "$Format:%ct$\n" || stamp.trim().parse::<u32>().is_ok(), "{stamp}");
        assert!(read(".gitattributes").lines().any(|line| line == format!("/{STAMP} export-subst")));
    }
}
