//! Describes the machine: the inspection report.
