//! Builds the inspection image: vmlinuz and initrd.img, reproducibly.
//!
//! The image holds one program, the static agent, and the kernel modules and firmware of its profile.
//! Nothing in it comes from the build machine but by name: modules from a kernel package, firmware from
//! firmware packages, both through the machine's own apt. [`inspection`] is the order of it all.

pub mod agent_build;
pub mod cli;
pub mod command;
pub mod debian;
pub mod elf;
pub mod firmware;
pub mod initramfs;
pub mod inspection;
pub mod kernel;
pub mod manifest;
pub mod modinfo;
pub mod modules;
pub mod progress;

#[cfg(test)]
mod test_elf;
#[cfg(test)]
mod test_tree;
