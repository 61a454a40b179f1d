//! Where the admin API listens, and who is let in.

use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::IntoResponse as _;
use farrier_shared::contract::Token;
use tokio::net::UnixListener;

use super::error::ApiError;

/// Why the admin API cannot be offered.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}: {source}; {hint}")]
pub struct AdminError {
    /// What was tried.
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why it failed.
    pub source: io::Error,
    /// What to do.
    pub hint: &'static str,
}

/// Binds the socket, readable and writable by its owner alone. A socket nobody listens on is replaced.
///
/// # Errors
/// When another controller listens there, or the path cannot be used.
pub fn bind_unix(path: &Path) -> Result<UnixListener, AdminError> {
    let error = |action, source, hint| AdminError { action, path: path.to_owned(), source, hint };
    let hint = "give another --admin-socket";
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(error("look at", e, hint)),
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(error("listen on", io::Error::other("it exists and is not a socket"), hint));
        }
        Ok(_) => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                let taken = io::Error::other("another controller listens there");
                return Err(error("listen on", taken, "stop it first, or give another --admin-socket"));
            }
            std::fs::remove_file(path).map_err(|e| error("replace", e, hint))?;
        }
    }
    // Bound under a name nobody knows and renamed once its mode is set: at no time can others connect.
    let hidden = path.with_extension(format!("new.{}", std::process::id()));
    let _ = std::fs::remove_file(&hidden);
    let listener = UnixListener::bind(&hidden).map_err(|e| error("listen on", e, hint))?;
    std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| std::fs::rename(&hidden, path))
        .map_err(|e| error("protect", e, hint))?;
    Ok(listener)
}

/// The token of the TCP listener: read from the file, or made and written there, mode 0600.
///
/// # Errors
/// When the file cannot be used.
pub fn token_file(path: &Path) -> Result<Token, AdminError> {
    let error = |action, source| AdminError {
        action,
        path: path.to_owned(),
        source,
        hint: "delete the file to have a new token made",
    };
    match std::fs::read_to_string(path) {
        Ok(text) => text.trim().parse().map_err(|e| error("use", io::Error::other(e))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let mut random = [0_u8; 32];
            getrandom::fill(&mut random).map_err(|e| error("fill", io::Error::other(e.to_string())))?;
            let token = Token::from_random(random);
            std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)
                .and_then(|mut file| file.write_all(token.expose().as_bytes()))
                .map_err(|e| error("write", e))?;
            Ok(token)
        }
        Err(e) => Err(error("read", e)),
    }
}

/// Asks every request for the token.
pub fn require_token(router: Router, token: Token) -> Router {
    let token = Arc::new(token);
    router.layer(axum::middleware::from_fn(move |request: Request, next: Next| {
        let token = Arc::clone(&token);
        async move {
            let given = request.headers().get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
            let given = given.and_then(farrier_shared::lifecycle::credentials::bearer);
            if given.is_some_and(|given| token.matches(given)) {
                return next.run(request).await;
            }
            let hint = "send the content of the admin token file as bearer token";
            ApiError::new(StatusCode::UNAUTHORIZED, "", "not authorised", hint).into_response()
        }
    }))
}
