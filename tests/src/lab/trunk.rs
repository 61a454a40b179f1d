//! A switch port with a VLAN on it: frames without a tag belong to one network, frames with the tag to another.
//!
//! The kernel around the lab may know no VLANs, so the port is a relay of frames between sockets. On its far side
//! two QEMU processes without a machine plug it into the networks, since that takes no privileged call of ours.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::net::UnixDatagram;

/// The VLAN of the port; any but the one untagged frames are in.
pub const VLAN: u16 = 77;

/// Destination and source address, after which a tag stands (IEEE 802.1Q 9.3).
const ADDRESSES: usize = 12;
/// Protocol number of a tag.
const TAG: [u8; 2] = [0x81, 0x00];
/// Bits of a tag that name the VLAN; the others are a priority.
const VLAN_BITS: u16 = 0x0fff;
/// Longest frame, with room.
const LONGEST: usize = 16 << 10;

/// Two sockets that frames are exchanged by, one in a datagram.
#[derive(Clone, Debug)]
pub struct Sockets {
    /// Where frames for QEMU arrive; QEMU makes it.
    pub qemu: PathBuf,
    /// Where QEMU sends its frames.
    pub port: PathBuf,
}

/// A port; gone when dropped.
#[derive(Debug)]
pub(super) struct Trunk {
    adapters: [Child; 2],
}

impl Trunk {
    /// A port whose untagged frames go to the tap device `untagged` and whose tagged ones to `tagged`; with the
    /// sockets a machine is plugged in by.
    ///
    /// # Errors
    /// When a socket cannot be made or QEMU is not installed.
    pub(super) fn open(dir: &Path, untagged: &str, tagged: &str) -> Result<(Self, Sockets)> {
        let sockets = |name: &str| Sockets {
            qemu: dir.join(format!("{name}.qemu")),
            port: dir.join(format!("{name}.port")),
        };
        let [machine, plain, vlan] = ["machine", untagged, tagged].map(sockets);
        let adapters = [adapter(untagged, &plain)?, adapter(tagged, &vlan)?];
        let bind = |ends: &Sockets| -> Result<Arc<UnixDatagram>> {
            let path = &ends.port;
            Ok(Arc::new(UnixDatagram::bind(path).with_context(|| format!("bind {}", path.display()))?))
        };
        let [from_machine, from_plain, from_vlan] = [bind(&machine)?, bind(&plain)?, bind(&vlan)?];
        tokio::spawn(relay(Arc::clone(&from_plain), machine.qemu.clone(), from_machine.clone(), |frame| {
            Some(frame.to_vec())
        }));
        tokio::spawn(relay(from_vlan.clone(), machine.qemu.clone(), from_machine.clone(), with_tag));
        tokio::spawn(async move {
            let mut frame = vec![0; LONGEST];
            while let Ok(n) = from_machine.recv(&mut frame).await {
                let frame = frame.get(..n).unwrap_or_default();
                // A frame that nobody takes is lost, as on a wire.
                match without_tag(frame) {
                    Tagged::No => from_plain.send_to(frame, &plain.qemu).await.ok(),
                    Tagged::Ours(inner) => from_vlan.send_to(&inner, &vlan.qemu).await.ok(),
                    Tagged::Foreign => None,
                };
            }
        });
        Ok((Self { adapters }, machine))
    }
}

impl Drop for Trunk {
    fn drop(&mut self) {
        for adapter in &mut self.adapters {
            adapter.kill().ok();
            adapter.wait().ok();
        }
    }
}

/// A QEMU without a machine, between a tap device and two sockets.
fn adapter(tap: &str, sockets: &Sockets) -> Result<Child> {
    Command::new("qemu-system-x86_64")
        .args(["-machine", "none", "-nodefaults", "-display", "none"])
        .args(["-netdev", &format!("tap,id=tap,ifname={tap},script=no,downscript=no")])
        .args(["-netdev", &format!("{},id=port", sockets.netdev())])
        .args(["-netdev", "hubport,id=a,hubid=0,netdev=tap", "-netdev", "hubport,id=b,hubid=0,netdev=port"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("start qemu-system-x86_64 as an adapter; `make deps` installs it")
}

impl Sockets {
    /// QEMU's argument for this side of them, without an id.
    pub fn netdev(&self) -> String {
        let (local, remote) = (self.qemu.display(), self.port.display());
        format!("dgram,local.type=unix,local.path={local},remote.type=unix,remote.path={remote}")
    }
}

async fn relay(
    from: Arc<UnixDatagram>,
    to: PathBuf,
    by: Arc<UnixDatagram>,
    change: fn(&[u8]) -> Option<Vec<u8>>,
) {
    let mut frame = vec![0; LONGEST];
    while let Ok(n) = from.recv(&mut frame).await {
        if let Some(changed) = frame.get(..n).and_then(change) {
            by.send_to(&changed, &to).await.ok();
        }
    }
}

/// The frame with the port's tag; none when it is too short to be one.
fn with_tag(frame: &[u8]) -> Option<Vec<u8>> {
    let (addresses, rest) = frame.split_at_checked(ADDRESSES)?;
    Some([addresses, &TAG, &VLAN.to_be_bytes(), rest].concat())
}

/// What a frame says of its VLAN.
#[derive(Debug, PartialEq, Eq)]
enum Tagged {
    /// Nothing.
    No,
    /// The port's, and this is the frame without it.
    Ours(Vec<u8>),
    /// Another.
    Foreign,
}

fn without_tag(frame: &[u8]) -> Tagged {
    let Some((addresses, rest)) = frame.split_at_checked(ADDRESSES) else { return Tagged::No };
    match rest {
        [a, b, high, low, inner @ ..] if [*a, *b] == TAG => {
            match u16::from_be_bytes([*high, *low]) & VLAN_BITS {
                VLAN => Tagged::Ours([addresses, inner].concat()),
                _ => Tagged::Foreign,
            }
        }
        _ => Tagged::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: [u8; 16] = [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0x08, 0x00, 7, 7];

    #[test]
    fn a_tag_that_was_put_on_comes_off() {
        let tagged = with_tag(&PLAIN).unwrap();
        assert_eq!(tagged[12..16], [0x81, 0x00, 0, 77]);
        assert_eq!(without_tag(&tagged), Tagged::Ours(PLAIN.to_vec()));
    }

    #[test]
    fn frames_of_other_networks_are_told_apart() {
        assert_eq!(without_tag(&PLAIN), Tagged::No);
        let mut other = with_tag(&PLAIN).unwrap();
        other[15] = 78;
        assert_eq!(without_tag(&other), Tagged::Foreign);
        let mut urgent = with_tag(&PLAIN).unwrap();
        urgent[14] = 0xe0;
        assert_eq!(without_tag(&urgent), Tagged::Ours(PLAIN.to_vec()));
        assert_eq!((with_tag(&[1; 5]), without_tag(&[1; 5])), (None, Tagged::No));
    }
}
