//! What crosses rooms: end to end in QEMU and OVMF, simulators, faults.
