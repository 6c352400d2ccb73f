//! Random numbers that are cheap and the same in each run.

/// Returns the first state of a sequence; different numbers give sequences that do not resemble each other (the final steps of
/// SplitMix64).
pub(crate) fn first_state(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    // Only the number 0 gives 0, which is no state.
    (mixed ^ mixed >> 31).max(1)
}

/// Returns the next of a sequence of random numbers (Marsaglia's xorshift); the state must not be 0.
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
