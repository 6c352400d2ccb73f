//! Benchmarks of the scheduler and of communication between processes.

mod messaging;
mod pipe;
mod seccomp_notify;

pub use messaging::Messaging;
pub use pipe::PingPong;
pub use seccomp_notify::SeccompNotify;
