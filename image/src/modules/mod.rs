//! Which kernel modules go into the image, and the text indexes the agent finds them by.

pub mod index;
pub mod list;
pub mod resolve;
pub mod strip;
pub mod tree;

pub use list::{ListError, ModuleList, Profile};
pub use resolve::{ResolveError, Selection};
pub use tree::{KernelTree, Module, TreeError};
