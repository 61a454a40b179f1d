//! Makes a bare kernel usable: mounts, console, drivers, watchdog, and the end.
