//! Builds the inspection image: vmlinuz and initrd.img, reproducibly.
