//! Long texts on a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::table::WIDTH;

/// Columns of a heading before its value.
pub(crate) const HEADING: usize = 14;

/// A text in lines of at most `width` columns, broken between words where that is possible.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
        while let Some(rest) = lines.last_mut().and_then(|line| split_off(line, width)) {
            lines.push(rest);
        }
    }
    lines
}

/// What of a line does not fit; at least one character stays.
fn split_off(line: &mut String, width: usize) -> Option<String> {
    let mut used = 0;
    let over = line.char_indices().find(|(at, c)| {
        used += c.width().unwrap_or(0);
        used > width && *at > 0
    });
    over.map(|(at, _)| line.split_off(at))
}

/// A heading and its value; on a terminal the value goes on below itself.
pub(crate) fn field(heading: &str, value: &str, terminal: bool) -> Vec<String> {
    if !terminal {
        return vec![format!("{heading:<HEADING$}{value}")];
    }
    let lines = wrap(value, WIDTH - HEADING).into_iter().enumerate();
    lines.map(|(n, line)| format!("{:<HEADING$}{line}", if n == 0 { heading } else { "" })).collect()
}

/// A line of columns and a text that may be long; on a terminal the text goes below when it does not fit.
pub(crate) fn columns(start: &str, text: &str, terminal: bool) -> Vec<String> {
    let whole = format!("{start} {text}");
    if !terminal || whole.trim_end().width() <= WIDTH {
        return vec![whole.trim_end().to_owned()];
    }
    let indent = HEADING + 2;
    let below = wrap(text, WIDTH - indent).into_iter().map(|line| format!("{:indent$}{line}", ""));
    std::iter::once(start.to_owned()).chain(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_wider_than_a_terminal_and_nothing_is_lost() {
        let texts =
            ["", "one", &"words of a sentence ".repeat(20), &"x".repeat(500), &"漢字".repeat(60), "a\n\tb"];
        for text in texts {
            for width in [1, 2, 10, 66] {
                let lines = wrap(text, width);
                assert!(lines.iter().all(|l| l.width() <= width.max(2) && !l.is_empty()), "{lines:?}");
                let letters = |t: &str| t.chars().filter(|c| !c.is_whitespace()).collect::<String>();
                assert_eq!(letters(&lines.concat()), letters(text));
            }
        }
        let long = "word ".repeat(40);
        for line in field("Message", &long, true).iter().chain(&columns("a  b", &long, true)) {
            assert!(line.width() <= WIDTH, "{line:?}");
        }
        assert_eq!(field("Message", &long, false), [format!("Message       {long}")]);
        assert_eq!(columns("a", "b", true), ["a b"]);
        assert_eq!(columns("a", &long, false), [format!("a {}", long.trim_end())]);
    }
}
