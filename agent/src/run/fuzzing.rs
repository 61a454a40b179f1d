//! Kernel command lines.

use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::cut_line;
use farrier_shared::contract::options::{AgentOptions, words};

use super::options;

/// A command line: its run, its options, and that an option rendered is the option read.
pub fn cmdline(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = cut_line::check_whole(&text);
    if let Ok(params) = BootParams::parse(&text) {
        let _ = options::read(&params.extra).map(|given| options::order(&given, &params));
        assert!(params.extra.len() <= text.len() && !params.host.to_string().is_empty());
    }
    let Ok(options) = AgentOptions::parse(words(&text)) else { return };
    let rendered = options.parameters();
    let again = AgentOptions::parse(rendered.iter().map(|(option, value)| (option.key(), value.as_str())));
    assert_eq!(again.as_ref(), Ok(&options), "{rendered:?}");
}
