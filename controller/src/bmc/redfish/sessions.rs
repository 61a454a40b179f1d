//! TLS sessions kept from one look at a BMC to the next: taking one up again spares both sides the certificates, and
//! BMCs, whose processors are small, most of the handshake.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

/// Most BMCs whose sessions are kept; each takes about 2 KiB.
const MOST: usize = 16 << 10;

/// One session of each BMC: what rustls keeps by itself is eight for each of 32.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<ServerName<'static>, Session>>);

#[derive(Debug, Default)]
struct Session {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: Option<Tls13ClientSessionValue>,
}

impl Sessions {
    fn change(&self, server: ServerName<'static>, change: impl FnOnce(&mut Session)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST && !all.contains_key(&server) {
            all.clear();
        }
        change(all.entry(server).or_default());
    }

    fn read<T>(&self, server: &ServerName<'_>, read: impl FnOnce(&Session) -> Option<T>) -> Option<T> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(server).and_then(read)
    }

    fn take<T>(
        &self,
        server: &ServerName<'static>,
        take: impl FnOnce(&mut Session) -> Option<T>,
    ) -> Option<T> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_mut(server).and_then(take)
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, server: ServerName<'static>, group: NamedGroup) {
        self.change(server, |s| s.group = Some(group));
    }

    fn kx_hint(&self, server: &ServerName<'_>) -> Option<NamedGroup> {
        self.read(server, |s| s.group)
    }

    fn set_tls12_session(&self, server: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.change(server, |s| s.tls12 = Some(value));
    }

    fn tls12_session(&self, server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.read(server, |s| s.tls12.clone())
    }

    fn remove_tls12_session(&self, server: &ServerName<'static>) {
        self.take(server, |s| s.tls12.take());
    }

    fn insert_tls13_ticket(&self, server: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.change(server, |s| s.tls13 = Some(value));
    }

    fn take_tls13_ticket(&self, server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.take(server, |s| s.tls13.take())
    }
}
