//! System calls no crate wraps safely: the only place with `unsafe` code.
//!
//! Each function is safe to call with any arguments of its types.
