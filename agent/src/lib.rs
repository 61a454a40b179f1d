//! PID 1 of the inspection image: inspects, writes and verifies an operating system, reports.
