//! Lists of addresses, as annotations hold them.

use url::Host;

use super::address_list::AddressList;

/// A list, and a host that is asked for, separated by a NUL.
pub fn address_list(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (list, host) = text.split_once('\0').unwrap_or((&text, "192.0.2.1"));
    let Ok(list) = AddressList::parse(list) else { return };
    let Ok(url) = url::Url::parse(&format!("https://{host}/")) else { return };
    if let Some(host) = url.host() {
        let _ = list.allows(&host);
    }
    let _ = list.allows(&Host::Domain(""));
}
