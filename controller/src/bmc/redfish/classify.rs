//! Which faults pass by themselves and which need a person (contract section 8).

use std::error::Error;
use std::io::{self, ErrorKind};

use farrier_shared::lifecycle::fault::Transient;

use super::dns::DnsFailed;

/// What a failed exchange comes down to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Passes by itself.
    Transient(Transient),
    /// The BMC's certificate or its TLS.
    Tls(String),
    /// What came back is no HTTP.
    NotHttp,
}

/// Classifies a failed exchange by everything its error chain tells. What nothing is known of is a fault of the
/// network, since it was one that failed.
pub(super) fn classify(error: &reqwest::Error) -> Class {
    if error.is_timeout() {
        return Class::Transient(Transient::TimedOut);
    }
    if error.is_dns() {
        return Class::Transient(Transient::Dns);
    }
    chain(error).unwrap_or(Class::Transient(Transient::Network))
}

/// The innermost cause that tells something, since outer layers only wrap it.
fn chain(error: &(dyn Error + 'static)) -> Option<Class> {
    // What an io error wraps is not among its sources.
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    if let Some(class) = wrapped.and_then(|inner| chain(inner)) {
        return Some(class);
    }
    if let Some(class) = error.source().and_then(chain) {
        return Some(class);
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return Some(of_io(error.kind()));
    }
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Some(Class::Tls(error.to_string()));
    }
    if error.is::<DnsFailed>() {
        return Some(Class::Transient(Transient::Dns));
    }
    let error = error.downcast_ref::<hyper::Error>()?;
    if error.is_parse() {
        Some(Class::NotHttp)
    } else if error.is_timeout() {
        Some(Class::Transient(Transient::TimedOut))
    } else if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        Some(Class::Transient(Transient::Closed))
    } else {
        None
    }
}

fn of_io(kind: ErrorKind) -> Class {
    Class::Transient(match kind {
        ErrorKind::ConnectionRefused => Transient::Refused,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => Transient::Reset,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Transient::HostUnreachable,
        ErrorKind::TimedOut => Transient::TimedOut,
        ErrorKind::UnexpectedEof => Transient::Closed,
        _ => Transient::Network,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_faults_have_their_classes() {
        for (kind, expected) in [
            (ErrorKind::ConnectionRefused, "connection refused"),
            (ErrorKind::ConnectionReset, "connection reset"),
            (ErrorKind::BrokenPipe, "connection reset"),
            (ErrorKind::HostUnreachable, "host unreachable"),
            (ErrorKind::NetworkUnreachable, "host unreachable"),
            (ErrorKind::TimedOut, "timed out"),
            (ErrorKind::UnexpectedEof, "connection closed"),
            (ErrorKind::PermissionDenied, "network error"),
        ] {
            let Class::Transient(class) = of_io(kind) else { panic!("{kind:?} is not transient") };
            assert_eq!(class.to_string(), expected);
        }
    }

    #[test]
    fn a_certificate_fault_inside_an_io_error_is_no_network_fault() {
        let inner = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let outer = io::Error::new(ErrorKind::InvalidData, inner);
        assert!(matches!(chain(&outer), Some(Class::Tls(_))));
        let plain = io::Error::new(ErrorKind::ConnectionReset, "reset");
        assert_eq!(chain(&plain), Some(Class::Transient(Transient::Reset)));
    }
}
