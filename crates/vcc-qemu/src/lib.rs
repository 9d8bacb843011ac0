//! Virtual machines: QEMU without KVM, with the guest of `guest/live` (a kernel and busybox).

mod image;
mod locks;
mod migration;
mod newer;
mod vm;

pub use image::{Image, Kernel};
pub use newer::with_device_state;
pub use vm::{Vm, has_qemu};
