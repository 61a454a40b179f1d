//! PID 1 of the inspection image: inspects, writes and verifies an operating system, reports.
//!
//! [`run`] is the order of it all. Each other module is one room: [`init`] makes a bare kernel usable, [`net`]
//! reaches the controller, [`time`] sees to the clock, [`facts`] describes the machine, [`disk`] finds and guards the target, [`deploy`]
//! writes the image, [`seed`] plants the user-data, [`efi`] has the firmware boot it, `mount` is what both look into partitions with, [`callback`] speaks to the
//! controller. [`sys`] alone holds `unsafe` code.

pub mod callback;
pub mod deploy;
pub mod disk;
pub mod efi;
pub mod facts;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod init;
mod mount;
pub mod net;
pub mod run;
pub mod seed;
pub mod sys;
pub mod time;
