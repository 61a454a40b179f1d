//! `farrier serve`: logs, signals, and the controller in between.

use std::io::IsTerminal as _;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use super::failure::Failure;
use crate::serve::{LogFormat, Settings, run};

pub(super) async fn serve(settings: Settings) -> Result<(), Failure> {
    start_logging(settings.log_format);
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    run(settings, stop, |_| ())
        .await
        .map_err(|error| Failure::failed(error.to_string(), "correct this, then start the controller again"))
}

fn start_logging(format: LogFormat) {
    let filter = EnvFilter::try_from_env("FARRIER_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    // A log that cannot be written, on a full disk or a closed pipe, is lost. Complaining about that on the same
    // standard error would panic, and take the controller along.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    // A second subscriber can only be there in tests, where the first one is as good.
    let _ = match format {
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
        LogFormat::Text => {
            let colour =
                std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
            builder.with_ansi(colour).with_target(false).try_init()
        }
    };
}

/// The first signal stops in order; a second one at once.
async fn stop_on_signal(stop: CancellationToken) {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("signals cannot be caught; stop the controller with SIGKILL");
        return;
    };
    for again in [false, true] {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if again {
            std::process::exit(130);
        }
        tracing::info!("stopping; once more to stop at once");
        stop.cancel();
    }
}
