//! The layout of the values of the map `CALLS`, which sum up system calls, and the indices of the counts of losses.

/// Offsets in a value of the map `CALLS`, in bytes. Times are in ns.
pub(super) mod call {
    pub(in super::super) const COUNT: i16 = 0;
    pub(in super::super) const ERRORS: i16 = 8;
    pub(in super::super) const TOTAL: i16 = 16;
    pub(in super::super) const MIN: i16 = 24;
    pub(in super::super) const MAX: i16 = 32;
    /// The sum of the squares of the durations: 128 bits, the lower half first.
    pub(in super::super) const SQUARES: i16 = 40;
    /// The id of the process that made the last call.
    pub(in super::super) const PROCESS: i16 = 56;
    /// The time at which the last call returned.
    pub(in super::super) const LAST_END: i16 = 64;
    /// The name of the thread that made the last call (16 bytes).
    pub(in super::super) const COMM: i16 = 72;
    /// The first bucket.
    pub(in super::super) const BUCKETS: i16 = 88;
}

/// The number of buckets of durations: each duration below 16 ns has one, from 16 ns on each power of two has 8, up to
/// `LAST_BUCKET_END`.
pub(super) const BUCKET_COUNT: i32 = 336;
/// Binary logarithm of the number of buckets of each power of two.
pub(super) const SUB_BITS: u32 = 3;
/// The longest duration of the last bucket, in ns (about 5 hours). Longer ones are counted in the last bucket, too.
pub(super) const LAST_BUCKET_END: u64 = (1 << 44) - 1;
/// The size of a value of the map `CALLS`, in bytes: 4 for each bucket, from `call::BUCKETS` on.
pub(super) const CALL_SIZE: usize = 88 + 4 * BUCKET_COUNT as usize;

/// Index in [`crate::tasks::LOSSES`] of calls without room in `CALLS`; index 0 is [`crate::tasks::LOST_TASKS`].
pub(super) const LOST_CALLS: i32 = 1;
/// Index in [`crate::tasks::LOSSES`] of failed calls whose errno has no room in `ERRNOS`.
pub(super) const LOST_ERRNOS: i32 = 2;
