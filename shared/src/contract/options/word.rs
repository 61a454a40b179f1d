//! What may stand as a value on the kernel command line, behind iPXE.

/// Longest value, in bytes: several fit into a script with everything else it holds.
pub const MAX_VALUE: usize = 1024;

/// Whether `text` goes through the boot script and the kernel as one word and unchanged: printable ASCII without
/// quotes and backslashes, and without `$`, since iPXE expands `${name}`.
pub fn is_word(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_graphic() && !b"\"'`\\$".contains(&b);
    (1..=MAX_VALUE).contains(&text.len()) && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_plain_word_and_nothing_that_is_expanded_on_the_way() {
        for word in ["a", "size>=100G,model=X", "sha256:00", "https://a/b?c=d&e#f", "[::1]/64"] {
            assert!(is_word(word), "{word}");
        }
        for other in ["", "a b", "a\tb", "a\nboot", "\"a", "it's", "`a`", "a\\b", "${ip}", "ä", "a\u{7f}"] {
            assert!(!is_word(other), "{other:?}");
        }
        assert!(is_word(&"x".repeat(MAX_VALUE)) && !is_word(&"x".repeat(MAX_VALUE + 1)));
    }
}
