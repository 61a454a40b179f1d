//! errors
/// Why the seed was not planted.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// x
    #[error("x")]
    X,
}
