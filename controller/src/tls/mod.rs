//! The installation's own CA and serving certificate.
//!
//! Agents trust the CA given on their command line and nothing else, so the chain must be one that strict
//! verifiers accept: a `CA:FALSE` certificate issued by a separate `CA:TRUE` one. Both are made on the first
//! start, in `DATA_DIR/tls/{ca.crt,ca.key,tls.crt,tls.key}`. An operator may put their own `tls.crt`,
//! `tls.key` and `ca.crt` there instead (without `ca.key`); they are then served as they are and picked up when
//! they change.
//!
//! Keys are EC P-256. Firmware with an iPXE older than ECDHE support cannot speak to any current TLS server at
//! all; serve its first stage with `--boot-http`.

pub mod authority;
pub mod files;
pub mod names;
pub mod serving;

pub use files::{TlsError, TlsFiles};
pub use names::ServingNames;
pub use serving::ServingIdentity;
