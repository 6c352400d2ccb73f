//! Typed events over descriptions of this machine's kernel and of made ones.

mod descriptions;
mod kernels;
mod memory;
mod names;
mod random;
mod sched;
mod work;
