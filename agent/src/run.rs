//! The order of a run.
