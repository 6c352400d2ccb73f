//! Fields of samples that filters compare.

/// A field of a sample that a BPF program can compare before the kernel writes the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterField {
    /// The process.
    Process,
    /// The thread.
    Thread,
    /// The CPU.
    Cpu,
    /// The period.
    Period,
    /// The address that an instruction accessed.
    Address,
    /// The real user id of the task.
    User,
    /// The real group id of the task.
    Group,
}
