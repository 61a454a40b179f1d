//! Which devices are made on top of the machine's links: a bond over members, a VLAN over either.

use std::path::Path;

use farrier_shared::contract::MacAddress;
use farrier_shared::contract::options::{Bond, BondMode, Mtu, VlanId};
use tokio::time::{Instant, sleep};

use super::NetError;
use super::carrier::{CARRIER_WAIT, PAUSE};
use super::ipv6;
use super::links::{self, Choice, Link, LinkError};
use super::netlink::{Netlink, NetlinkError};
use super::wanted::Wanted;

/// Not `bond0`, which the driver makes by itself when it is loaded.
const BOND: &str = "bond-farrier";

/// An interface that may lead to the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The interface that gets an address.
    pub(super) link: Link,
    /// The one below it, when it is a VLAN.
    pub(super) base: Option<u32>,
}

/// One change to the kernel's devices. Steps work on the device at hand: the link they start from, then what the
/// last step made.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Sets a link down: it joins a bond only so.
    Down(u32),
    MakeBond {
        mac: MacAddress,
        mode: BondMode,
    },
    /// Has a link join the device at hand.
    Join(u32),
    Mtu(Mtu),
    Up,
    MakeVlan(VlanId),
}

/// The steps from `members` to the interface that gets an address. The MTU is set below before a VLAN is made, which
/// takes it over and may not have more; a bond hands it to its members.
fn steps(members: &[Link], bond: Option<&Bond>, vlan: Option<VlanId>, mtu: Option<Mtu>) -> Vec<Step> {
    let mut steps = Vec::new();
    if let (Some(bond), Some(first)) = (bond, members.first()) {
        steps.extend(members.iter().map(|m| Step::Down(m.index)));
        steps.push(Step::MakeBond { mac: first.mac, mode: bond.mode });
        steps.extend(members.iter().map(|m| Step::Join(m.index)));
    }
    steps.extend(mtu.map(Step::Mtu));
    if bond.is_some() || vlan.is_some() {
        steps.push(Step::Up);
    }
    steps.extend(vlan.map(Step::MakeVlan));
    steps
}

/// Makes what is wanted, for each link that may be the one.
///
/// # Errors
/// When a link that was named is not there, or the kernel cannot make a device.
pub(super) async fn build(
    netlink: &Netlink,
    root: &Path,
    wanted: &Wanted,
) -> Result<Vec<Candidate>, NetError> {
    let physical = links::physical(root);
    let members: Vec<Vec<Link>> = match &wanted.bond {
        Some(bond) => {
            let alive = if bond.members.is_empty() { alive(netlink, &physical).await } else { Vec::new() };
            vec![links::bond_members(&physical, &alive, wanted.boot, &bond.members)?]
        }
        None => match links::choose(&physical, wanted.boot, wanted.is_static())? {
            Choice::One(link) => vec![vec![link]],
            Choice::Race(links) => links.into_iter().map(|link| vec![link]).collect(),
        },
    };
    if wanted.bond.is_some() {
        set_down_others(netlink, &physical, members.first().map_or(&[], Vec::as_slice)).await;
    }
    let mut candidates = Vec::new();
    let mut refused = None;
    for members in members {
        let name = members.first().map(|link| link.name.clone()).unwrap_or_default();
        match candidate(netlink, root, wanted, members).await {
            Ok(candidate) => candidates.push(candidate),
            Err(error) => {
                // One adapter's fault says nothing of the others.
                tracing::warn!(interface = name, %error, "left out");
                refused = Some(error);
            }
        }
    }
    match refused {
        Some(error) if candidates.is_empty() => Err(error),
        _ => Ok(candidates),
    }
}

/// Makes what is wanted on top of these links.
async fn candidate(
    netlink: &Netlink,
    root: &Path,
    wanted: &Wanted,
    members: Vec<Link>,
) -> Result<Candidate, NetError> {
    let first = members.first().cloned().ok_or(LinkError::None)?;
    if wanted.bond.is_some() || wanted.vlan.is_some() {
        for member in &members {
            // Addresses belong on the device above; routers heard untagged would put some here.
            ipv6::disable(root, &member.name);
        }
    }
    let mut at_hand = Candidate { link: first, base: None };
    let mut joins = Joins::default();
    for step in steps(&members, wanted.bond.as_ref(), wanted.vlan, wanted.mtu) {
        let done = perform(netlink, root, &step, &mut at_hand).await;
        joins.judge(&step, done)?;
    }
    joins.end()?;
    Ok(at_hand)
}

/// A bond is as good as its members: one that cannot join is left out, as long as another could.
#[derive(Debug, Default)]
struct Joins {
    joined: bool,
    refused: Option<NetlinkError>,
}

impl Joins {
    fn judge(&mut self, step: &Step, done: Result<(), NetlinkError>) -> Result<(), NetlinkError> {
        match (step, done) {
            (Step::Join(_), Ok(())) => self.joined = true,
            (Step::Join(_) | Step::Down(_), Err(error)) => {
                tracing::warn!(%error, "left out of the bond");
                self.refused = Some(error);
            }
            (_, done) => return done,
        }
        Ok(())
    }

    fn end(self) -> Result<(), NetlinkError> {
        match self.refused {
            Some(error) if !self.joined => Err(error),
            _ => Ok(()),
        }
    }
}

/// Links that were set up only to see whether they have a carrier go down again: the kernel would go on to make
/// addresses and routes on them.
async fn set_down_others(netlink: &Netlink, physical: &[Link], members: &[Link]) {
    for link in physical.iter().filter(|link| !members.contains(link)) {
        if let Err(error) = netlink.down(link.index).await {
            tracing::debug!(interface = %link.name, %error, "interface not set down");
        }
    }
}

async fn perform(
    netlink: &Netlink,
    root: &Path,
    step: &Step,
    at_hand: &mut Candidate,
) -> Result<(), NetlinkError> {
    match step {
        Step::Down(index) => netlink.down(*index).await,
        Step::MakeBond { mac, mode } => {
            let index = netlink.add_bond(BOND, *mac, *mode).await?;
            *at_hand =
                Candidate { link: Link { name: BOND.to_owned(), index, mac: *mac, usb: false }, base: None };
            Ok(())
        }
        Step::Join(member) => netlink.join(*member, at_hand.link.index).await,
        Step::Mtu(mtu) => {
            netlink.set_mtu(at_hand.link.index, at_hand.base, mtu.get()).await;
            Ok(())
        }
        Step::Up => netlink.up(at_hand.link.index).await,
        Step::MakeVlan(id) => {
            ipv6::disable(root, &at_hand.link.name);
            let base = at_hand.link.index;
            let name = vlan_name(base, *id);
            let index = netlink.add_vlan(&name, base, *id).await?;
            *at_hand =
                Candidate { link: Link { name, index, mac: at_hand.link.mac, usb: false }, base: Some(base) };
            Ok(())
        }
    }
}

/// Within the fifteen bytes of an interface's name, whatever the name of the base; one for each base of a race.
fn vlan_name(base: u32, id: VlanId) -> String {
    format!("vlan{base}.{id}")
}

/// The links that have a carrier once all had time to get one.
async fn alive(netlink: &Netlink, links: &[Link]) -> Vec<u32> {
    for link in links {
        if let Err(error) = netlink.up(link.index).await {
            tracing::warn!(interface = %link.name, %error, "left out of the bond");
        }
    }
    let deadline = Instant::now() + CARRIER_WAIT;
    loop {
        let mut alive = Vec::new();
        for link in links {
            if netlink.has_carrier(link.index).await {
                alive.push(link.index);
            }
        }
        if alive.len() == links.len() || Instant::now() >= deadline {
            return alive;
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::links::link;
    use super::*;

    #[test]
    fn each_device_is_made_in_the_order_the_kernel_wants() {
        let (two, one) = ([link(2), link(1)], [link(1)]);
        let bond: Bond = "802.3ad".parse().unwrap();
        let (vlan, mtu): (VlanId, Mtu) = ("7".parse().unwrap(), "9000".parse().unwrap());
        let make = Step::MakeBond { mac: link(2).mac, mode: BondMode::Lacp };
        let bonded = [Step::Down(2), Step::Down(1), make, Step::Join(2), Step::Join(1)];
        for (members, bond, vlan, mtu, expected) in [
            (&one[..], None, None, None, vec![]),
            (&one, None, None, Some(mtu), vec![Step::Mtu(mtu)]),
            (&one, None, Some(vlan), None, vec![Step::Up, Step::MakeVlan(vlan)]),
            (&one, None, Some(vlan), Some(mtu), vec![Step::Mtu(mtu), Step::Up, Step::MakeVlan(vlan)]),
            (&two, Some(&bond), None, None, [bonded.as_slice(), &[Step::Up]].concat()),
            (
                &two,
                Some(&bond),
                Some(vlan),
                Some(mtu),
                [bonded.as_slice(), &[Step::Mtu(mtu), Step::Up, Step::MakeVlan(vlan)]].concat(),
            ),
        ] {
            assert_eq!(steps(members, bond, vlan, mtu), expected);
        }
    }

    #[test]
    fn a_member_that_cannot_join_fails_the_bond_only_when_none_can() {
        let refused = || Err(NetlinkError::new("joining the bond", 2, "Operation not supported"));
        for (results, expected) in [
            (vec![Ok(()), refused()], true),
            (vec![refused(), Ok(())], true),
            (vec![refused(), refused()], false),
            (vec![], true),
        ] {
            let mut joins = Joins::default();
            for result in results {
                joins.judge(&Step::Join(2), result).unwrap();
            }
            assert_eq!(joins.end().is_ok(), expected);
        }
        assert!(Joins::default().judge(&Step::Up, refused()).is_err(), "all else is needed");
    }

    #[test]
    fn names_fit_an_interface() {
        assert!(BOND.len() <= 15);
        let name = vlan_name(99_999, "4094".parse().unwrap());
        assert!(name.len() <= 15, "{name}");
        assert_ne!(vlan_name(2, "100".parse().unwrap()), vlan_name(3, "100".parse().unwrap()));
    }
}
