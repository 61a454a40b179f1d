//! What the run needs of the network, and which ways of getting it are tried.

use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use farrier_shared::contract::cmdline::BootParams;
use farrier_shared::contract::options::{Bond, Ip6, Mtu, StaticIp6, VlanId};
use farrier_shared::contract::{MacAddress, StaticIp, WebUrl};

use super::family::Family;

/// Spanning tree takes up to 50 s to open a port, LACP up to 90 s to fall back.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// What the run needs of the network.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The interface the firmware booted from.
    pub boot: Option<MacAddress>,
    /// A static IPv4 address.
    pub static_ip: Option<StaticIp>,
    /// How to come by an IPv6 address; none given is [`Ip6::Auto`] where it may be needed.
    pub ip6: Option<Ip6>,
    /// The VLAN to be in.
    pub vlan: Option<VlanId>,
    /// Links to bind together.
    pub bond: Option<Bond>,
    /// MTU, whatever the network says.
    pub mtu: Option<Mtu>,
    /// How long addresses are looked for, and once more from when the link comes.
    pub patience: Duration,
    /// What is to be reached.
    pub api: WebUrl,
    /// What will be fetched.
    pub image: WebUrl,
}

/// How IPv4 is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Method4 {
    Dhcp,
    Static(StaticIp),
}

/// How IPv6 is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method6 {
    /// As routers say.
    Auto,
    /// By DHCPv6 without waiting for a router to say so.
    Dhcp,
    Static(StaticIp6),
}

/// What is tried at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Methods {
    pub(super) v4: Option<Method4>,
    pub(super) v6: Option<Method6>,
    /// Whether the kernel is to run no IPv6 at all.
    pub(super) v6_off: bool,
    /// As in [`Wanted`].
    pub(super) patience: Duration,
}

impl Methods {
    /// The families that are tried.
    pub(super) fn families(&self) -> impl Iterator<Item = Family> + use<> {
        let (v4, v6) = (self.v4.as_ref().map(|_| Family::V4), self.v6.map(|_| Family::V6));
        v4.into_iter().chain(v6)
    }
}

impl Wanted {
    /// As the command line says. A `farrier.*` value that does not parse is left out: the run fails for it once the
    /// network is up, since only then can the controller be told.
    pub fn from_params(params: &BootParams) -> Self {
        Self {
            boot: params.bootif,
            static_ip: params.static_ip.clone(),
            ip6: given(params, "ip6"),
            vlan: given(params, "vlan"),
            bond: given(params, "bond"),
            mtu: given(params, "mtu"),
            patience: PATIENCE,
            api: params.api.clone(),
            image: params.target.clone(),
        }
    }

    /// Whether an address is given by hand, which has to go onto one interface.
    pub(super) fn is_static(&self) -> bool {
        self.static_ip.is_some() || matches!(self.ip6, Some(Ip6::Static(_)))
    }

    /// The ways to try. An address in a URL says which family is needed; a name may turn out to be either. A family
    /// that was set up by hand is what the operator wants, so the other is tried only where a URL needs it.
    pub(super) fn methods(&self) -> Methods {
        let hosts = [literal(&self.api), literal(&self.image)];
        let needs4 = hosts.iter().any(|h| matches!(h, Some(IpAddr::V4(_))));
        let needs6 = hosts.iter().any(|h| matches!(h, Some(IpAddr::V6(_))));
        let named = hosts.iter().any(Option::is_none);
        let given6 = match self.ip6 {
            Some(Ip6::Static(ip)) => Some(Method6::Static(ip)),
            Some(Ip6::Dhcp) => Some(Method6::Dhcp),
            Some(Ip6::Auto) => Some(Method6::Auto),
            Some(Ip6::Off) | None => None,
        };
        let by_hand6 = matches!(given6, Some(Method6::Static(_)));
        let v4 = match &self.static_ip {
            Some(ip) => Some(Method4::Static(ip.clone())),
            None => (needs4 || named && !by_hand6).then_some(Method4::Dhcp),
        };
        let v6_off = self.ip6 == Some(Ip6::Off);
        let unasked6 = !v6_off && (needs6 || named && self.static_ip.is_none());
        let v6 = given6.or(unasked6.then_some(Method6::Auto));
        if v4.is_none() && v6.is_none() {
            // IPv6 is off and every URL needs it: IPv4 will not help, but its errors will tell.
            return Methods { v4: Some(Method4::Dhcp), v6, v6_off, patience: self.patience };
        }
        Methods { v4, v6, v6_off, patience: self.patience }
    }
}

/// The value of `farrier.KEY`. One that does not parse is said here already: without it there may be no network to tell
/// the controller by.
fn given<T: FromStr<Err: Display>>(params: &BootParams, key: &str) -> Option<T> {
    let text = params.extra.get(key).filter(|text| !text.is_empty())?;
    match text.parse() {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::error!("farrier.{key}: {error}; the network is looked for without it");
            None
        }
    }
}

/// The address that is a URL's host.
fn literal(url: &WebUrl) -> Option<IpAddr> {
    url.to_url().host_str()?.trim_matches(['[', ']']).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "https://10.0.0.1:8082";
    const V6: &str = "https://[fd00::1]:8082";
    const NAME: &str = "https://controller.example:8082";

    fn methods(api: &str, image: &str, ip: Option<&str>, ip6: Option<&str>) -> Methods {
        let wanted = Wanted {
            boot: None,
            static_ip: ip.map(|t| t.parse().unwrap()),
            ip6: ip6.map(|t| t.parse().unwrap()),
            vlan: None,
            bond: None,
            mtu: None,
            patience: PATIENCE,
            api: api.parse().unwrap(),
            image: image.parse().unwrap(),
        };
        wanted.methods()
    }

    #[test]
    fn urls_say_which_families_are_tried() {
        let by_hand = "fd00::5/64";
        for (api, image, ip, ip6, v4, v6) in [
            (V4, V4, None, None, "dhcp", ""),
            (V6, V6, None, None, "", "auto"),
            (V4, V6, None, None, "dhcp", "auto"),
            (NAME, V4, None, None, "dhcp", "auto"),
            (NAME, NAME, None, Some("off"), "dhcp", ""),
            (NAME, NAME, None, Some("dhcp"), "dhcp", "dhcp"),
            (V4, V4, None, Some("auto"), "dhcp", "auto"),
            (NAME, NAME, Some("10.0.0.5:::24"), None, "static", ""),
            (V6, NAME, Some("10.0.0.5:::24"), None, "static", "auto"),
            (NAME, NAME, None, Some(by_hand), "", "static"),
            (NAME, V4, None, Some(by_hand), "dhcp", "static"),
            (V6, V6, None, Some("off"), "dhcp", ""),
        ] {
            let methods = methods(api, image, ip, ip6);
            let text4 = match methods.v4 {
                None => "",
                Some(Method4::Dhcp) => "dhcp",
                Some(Method4::Static(_)) => "static",
            };
            let text6 = match methods.v6 {
                None => "",
                Some(Method6::Auto) => "auto",
                Some(Method6::Dhcp) => "dhcp",
                Some(Method6::Static(_)) => "static",
            };
            assert_eq!((text4, text6), (v4, v6), "{api} {image} {ip:?} {ip6:?}");
            assert_eq!(methods.v6_off, ip6 == Some("off"));
        }
    }
}
