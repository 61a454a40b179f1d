//! Nonces: wrong, foreign, expired, used up.

use anyhow::{Result, ensure};

use super::answer::{alike, get};
use super::kept::{settled, unchanged};
use super::{Room, WRONG};
use crate::lab::{BOOT_PORT, CONTROLLER, Controller, Lab};

pub(super) async fn refused(lab: &mut Lab, controller: &Controller, room: &Room) -> Result<()> {
    let (mine, foreign) = (room.credentials("mine")?, room.credentials("foreign")?);
    let late = room.credentials("late")?;
    // The rate limit counts by address: every question here comes from another one.
    let path = |host: &str, nonce: &str| {
        format!("http://{CONTROLLER}:{BOOT_PORT}/api/v1/boot/default/{host}/{nonce}?platform=efi")
    };
    let before = settled(controller).await?;
    let mut refusals = Vec::new();
    for (what, url) in [
        ("an unknown host", path("nobody", mine.nonce.expose())),
        ("a wrong nonce", path("mine", WRONG)),
        ("a foreign nonce", path("mine", foreign.nonce.expose())),
        ("an expired nonce", path("late", late.nonce.expose())),
        ("an empty nonce", path("mine", "")),
        ("a malformed host", path("Mine..", mine.nonce.expose())),
        ("a token for a nonce", path("mine", mine.token.expose())),
    ] {
        refusals.push((what, get(lab.client_address()?, &url).await?));
    }
    unchanged(controller, &before, "a refused nonce").await?;

    let url = path("mine", mine.nonce.expose());
    let firmware = lab.client_address()?;
    let first = get(firmware, &url).await?;
    ensure!(first.status == 200 && first.body.contains(mine.token.expose()), "the boot script is {first:?}");
    let consumed = settled(controller).await?;
    ensure!(get(firmware, &url).await? == first, "the same firmware gets another script");
    refusals.push(("a used nonce from elsewhere", get(lab.client_address()?, &url).await?));
    unchanged(controller, &consumed, "a used nonce").await?;
    alike(&refusals, 404)
}
