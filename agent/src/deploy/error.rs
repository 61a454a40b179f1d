//! errors
/// Why no system was installed.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// x
    #[error("x")]
    X,
}
impl DeployError {
    /// Step and cause for the operator: at most 256 bytes, no secret, no URL path.
    pub fn reason(&self) -> String { todo!() }
}
