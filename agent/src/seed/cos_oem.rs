//! COS_OEM
use farrier_shared::contract::ProviderId;
use std::path::PathBuf;
use crate::callback::UserData;
use crate::disk::{Roots, Target};
use super::{Seed, SeedError};
/// The contract's way: two files in the partition labelled COS_OEM.
pub struct CosOem { }
impl CosOem {
    /// Plants these; `work` is a writable directory on a tmpfs, such as `/run`.
    pub fn new(user_data: UserData, provider_id: ProviderId, roots: Roots, work: PathBuf) -> Self { Self {} }
}
impl Seed for CosOem {
    fn plant(&self, target: &dyn Target) -> Result<(), SeedError> { todo!() }
}
