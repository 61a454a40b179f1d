//! errors
/// A disk that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Nothing to write to.
    #[error("no eligible target disk")]
    None,
}
