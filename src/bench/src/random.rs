//! Random numbers that are cheap and the same in each run.

/// Returns the first state, for [`next_random`], of sequence number `sequence`. Mixes the number with the final steps of
/// SplitMix64, so that sequences with different numbers do not resemble each other.
pub(crate) fn first_state(sequence: u64) -> u64 {
    let mixed = (sequence ^ sequence >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    // Only sequence 0 gives 0 here, which is no valid state.
    (mixed ^ mixed >> 31).max(1)
}

/// Returns the next of a sequence of random numbers (Marsaglia's xorshift); the state must not be 0.
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
