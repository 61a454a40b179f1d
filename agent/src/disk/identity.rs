//! identity
/// What stays the same when kernel names move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Model.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// World-wide name as the kernel gives it (`naa.…`, `eui.…`, `nvme.…`, `t10.…`).
    pub wwid: String,
    /// Names under `/dev/disk/`, such as `by-id/wwn-0x…`.
    pub links: Vec<String>,
}
