//! Discovery and choice on a sysfs made of files; wiping and partition tables in memory.

mod choosing;
mod discovering;
mod ends;
mod hints;
mod holding;
mod inventories;
mod paths;
mod sysfs;
mod tables;
