//! Why no boot entry was made. None of it keeps the installed system from booting through the fallback path.

use std::io;

use crate::disk::DiskError;
use crate::disk::table::TableError;

/// Why no boot entry was made.
#[derive(Debug, thiserror::Error)]
pub enum EfiError {
    /// The disk cannot be read.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Its table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Nothing to boot from.
    #[error("{disk} has no EFI system partition")]
    NoEsp {
        /// The disk.
        disk: String,
    },
    /// The partition does not mount.
    #[error("cannot look into the EFI system partition {partition}: {source}")]
    Esp {
        /// Its kernel name.
        partition: String,
        /// Why.
        source: io::Error,
    },
    /// Nothing in it to boot.
    #[error("the EFI system partition {partition} holds no boot loader: no {fallback}, and no system's own")]
    NoLoader {
        /// Its kernel name.
        partition: String,
        /// Where the fallback would be.
        fallback: &'static str,
    },
    /// A variable cannot be used.
    #[error("cannot {action} the firmware variable {name}: {source}")]
    Variable {
        /// What was tried.
        action: &'static str,
        /// Its name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A variable is not what was written.
    #[error("the firmware did not keep the variable {name}; its store may be full or locked")]
    NotKept {
        /// Its name.
        name: String,
    },
    /// Every number is taken.
    #[error("the firmware has no number left for a boot entry")]
    Full,
}
