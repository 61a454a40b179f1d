//! Keeps out of the log that leaves the machine what no line of it should hold in the first place.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use farrier_shared::contract::Token;

/// Shorter words of user-data are nobody's secret, or cannot be told from our own.
const LEAST: usize = 12;
/// What stands instead.
const WITHHELD: &[u8] = b"(withheld)";

/// What is secret in this run. Of user-data only keyed hashes of its words are kept.
#[derive(Default)]
pub(super) struct Redaction {
    token: Option<Token>,
    hashes: RandomState,
    words: HashSet<u64>,
}

impl Redaction {
    /// The run's token, wherever it stands.
    pub(super) fn add_token(&mut self, token: &Token) {
        self.token = Some(token.clone());
    }

    /// The words of the user-data.
    pub(super) fn add_user_data(&mut self, user_data: &[u8]) {
        let long = user_data.split(|b| is_separator(*b)).filter(|word| word.len() >= LEAST);
        self.words.extend(long.map(|word| self.hashes.hash_one(word)));
    }

    /// The text without them.
    pub(super) fn clean(&self, text: &[u8]) -> Vec<u8> {
        let mut clean = Vec::with_capacity(text.len());
        for word in text.split_inclusive(|b| is_separator(*b)) {
            let (word, separator) = match word.split_last() {
                Some((last, rest)) if is_separator(*last) => (rest, Some(*last)),
                _ => (word, None),
            };
            let is_secret = word.len() >= LEAST && self.words.contains(&self.hashes.hash_one(word));
            clean.extend_from_slice(if is_secret || self.holds_token(word) { WITHHELD } else { word });
            clean.extend(separator);
        }
        clean
    }

    fn holds_token(&self, word: &[u8]) -> bool {
        let Some(token) = &self.token else { return false };
        let token = token.expose().as_bytes();
        word.len() >= token.len() && word.windows(token.len()).any(|part| part == token)
    }
}

impl std::fmt::Debug for Redaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redaction({} words)", self.words.len())
    }
}

fn is_separator(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'`,;=()[]{}<>".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-";

    fn clean(text: &str) -> String {
        let mut redaction = Redaction::default();
        redaction.add_token(&TOKEN.parse().unwrap());
        redaction.add_user_data(
            b"#cloud-config\npassword: \"correct-horse-battery\"\njoin: token=abcdef.0123456789\n",
        );
        String::from_utf8(redaction.clean(text.as_bytes())).unwrap()
    }

    #[test]
    fn token_and_words_of_the_user_data_are_withheld_wherever_they_stand() {
        for (text, expected) in [
            ("", ""),
            ("[ 1.000] drivers are loaded nics=2\n", "[ 1.000] drivers are loaded nics=2\n"),
            (&*format!("got Bearer {TOKEN}\nnext"), "got Bearer (withheld)\nnext"),
            (&*format!("url=https://x/{TOKEN}/y done"), "url=(withheld) done"),
            ("seed: line 'correct-horse-battery' is odd", "seed: line '(withheld)' is odd"),
            ("abcdef.0123456789", "(withheld)"),
            ("password: join: token", "password: join: token"),
        ] {
            assert_eq!(clean(text), expected);
        }
    }

    #[test]
    fn what_is_kept_of_the_secrets_is_not_shown() {
        let mut redaction = Redaction::default();
        redaction.add_user_data(b"correct-horse-battery");
        assert_eq!(format!("{redaction:?}"), "Redaction(1 words)");
    }
}
