//! Typed events with formats of this machine's kernel and of synthetic ones.

mod descriptions;
mod kernels;
mod memory;
mod names;
mod random;
mod sched;
mod work;
