//! The Redfish client against `sushy-emulator`: see `farrier_tests::sushy`.

use anyhow::{Context as _, Result, ensure};
use farrier_controller::bmc::redfish::RedfishConnector;
use farrier_controller::bmc::{BootMode, Connector as _, ResetKind, Trust};
use farrier_shared::lifecycle::PowerState;
use farrier_shared::lifecycle::fault::{BmcObservation, Failure};
use farrier_tests::certificate::Authority;
use farrier_tests::sushy::{Emulator, PASSWORD, program};

#[tokio::test]
async fn the_client_drives_a_service_that_nobody_here_wrote() -> Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let Some(program) = program()? else { return Ok(()) };
    let emulator = Emulator::start(&program).await?;
    let bmc = emulator.connect().await?;

    let facts = bmc.system_info().await?;
    ensure!(facts.power == Some(PowerState::Off), "{facts:?}");
    ensure!(facts.details.is_some_and(|d| d.manufacturer == "Sushy Emulator"), "no details");

    for (mode, shown) in
        [(BootMode::Uefi, "UEFI"), (BootMode::Legacy, "Legacy"), (BootMode::AsConfigured, "Legacy")]
    {
        bmc.set_boot_pxe_once(mode).await?;
        let seen = (
            emulator.boot("BootSourceOverrideTarget").await?,
            emulator.boot("BootSourceOverrideMode").await?,
        );
        ensure!(seen == ("Pxe".to_owned(), shown.to_owned()), "{mode:?} gave {seen:?}");
    }
    bmc.clear_boot_override().await?;
    let target = emulator.boot("BootSourceOverrideTarget").await?;
    ensure!(target == "None", "the override is still {target}");

    for (action, ends) in [
        (ResetKind::ForceOff, "Off"),
        (ResetKind::On, "On"),
        (ResetKind::On, "On"),
        (ResetKind::ForceRestart, "On"),
        (ResetKind::GracefulShutdown, "Off"),
        (ResetKind::ForceRestart, "On"),
        (ResetKind::ForceOff, "Off"),
    ] {
        bmc.reset(action).await.with_context(|| format!("{action:?}"))?;
        let power = emulator.system().await?["PowerState"].clone();
        ensure!(power == ends, "{action:?} ended in {power}");
        ensure!(bmc.power_state().await?.as_str() == ends, "the client sees another power state");
    }
    Ok(())
}

#[tokio::test]
async fn a_wrong_password_or_an_unknown_ca_is_told_as_such() -> Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let Some(program) = program()? else { return Ok(()) };
    let emulator = Emulator::start(&program).await?;
    let other_ca = Authority::new("Another CA")?.pem().as_bytes().to_vec();
    for (access, said) in [
        (emulator.access("wrong", emulator.trust())?, "credentials"),
        (emulator.access(PASSWORD, Trust::Only(other_ca))?, "certificate"),
    ] {
        let error = match RedfishConnector::new(None).connect(&access).await {
            Ok(_) => anyhow::bail!("connected, expected trouble with {said}"),
            Err(error) => error,
        };
        ensure!(error.to_string().contains(said), "{error}");
        let failed = matches!(
            error.observation(),
            BmcObservation::Failed { failure: Failure::Connection | Failure::Login, .. }
        );
        ensure!(failed, "{error:?} is taken for something that passes by itself");
    }
    Ok(())
}
