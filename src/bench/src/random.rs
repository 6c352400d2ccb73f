//! Random numbers that are cheap and the same in each run.

/// Returns the next of a sequence of random numbers (Marsaglia's xorshift); the state must not be 0.
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
