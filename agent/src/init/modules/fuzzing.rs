//! What a device calls itself, against the patterns of drivers.

use super::pattern::matches;

/// A pattern and a name, separated by a line break.
pub fn modalias(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (pattern, alias) = text.split_once('\n').unwrap_or((&text, ""));
    let _ = matches(pattern, alias);
    if !alias.contains(['*', '?', '[']) {
        assert!(matches(alias, alias) && matches("*", alias));
        assert!(matches(&format!("{alias}*"), alias) && matches(&format!("*{alias}"), alias));
    }
}
