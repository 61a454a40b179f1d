//! Everything the controller keeps, to see whether a call changed any of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::HOSTS;
use crate::lab::{Controller, until};

/// Objects with their histories, what agents told of their progress, and the logs they sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Kept {
    objects: Vec<Value>,
    logs: BTreeMap<PathBuf, Vec<u8>>,
}

/// What is kept once nothing the controller does by itself changes it any more.
pub(super) async fn settled(controller: &Controller) -> Result<Kept> {
    let mut last = Kept::default();
    let still = async || {
        let now = kept(controller).await?;
        let same = now == last;
        last.clone_from(&now);
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok((same, now))
    };
    let (_, now) =
        until(Duration::from_secs(60), "the controller to settle", still, |(same, _)| *same).await?;
    Ok(now)
}

/// Checks that everything is as it was.
pub(super) async fn unchanged(controller: &Controller, before: &Kept, by: &str) -> Result<()> {
    let now = kept(controller).await?;
    let changed = before.objects.iter().zip(&now.objects).find(|(before, now)| before != now);
    ensure!(changed.is_none(), "{by} changed something: {changed:#?}");
    ensure!(before.objects.len() == now.objects.len(), "{by} made or removed an object");
    let logs = |kept: &Kept| kept.logs.keys().cloned().collect::<Vec<_>>();
    ensure!(
        before.logs == now.logs,
        "{by} changed the agents' logs: {:?} are there, {:?} were",
        logs(&now),
        logs(before)
    );
    Ok(())
}

/// Everything, except what the passage of time changes.
async fn kept(controller: &Controller) -> Result<Kept> {
    let admin = controller.admin()?;
    let mut objects = vec![admin.list("secrets").await?];
    for collection in ["hosts", "machines"] {
        let list = admin.list(collection).await?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        objects.extend(items.into_iter().map(|mut item| {
            // A look at the BMC may touch it at any time.
            if let Some(metadata) = item["metadata"].as_object_mut() {
                metadata.remove("resourceVersion");
            }
            item
        }));
    }
    for host in HOSTS {
        objects.push(admin.history(host).await?.into());
        objects.push(admin.progress(host).await?);
    }
    let mut logs = BTreeMap::new();
    read_all(&controller.data_dir().join("logs"), &mut logs)?;
    Ok(Kept { objects, logs })
}

/// The files below a directory, which there need not be.
fn read_all(dir: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            read_all(&path, files)?;
        } else {
            let bytes = fs::read(&path)?;
            files.insert(path, bytes);
        }
    }
    Ok(())
}
