//! Tests of typed events, which are read with the formats of synthetic kernels, and with those of this machine's kernel if they
//! can be read.

mod descriptions;
mod kernels;
mod memory;
mod names;
mod random;
mod sched;
mod work;
