//! A hash function for callchains and other frequent lookups.

const HASH_SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND_SEED: u64 = 0xd1b5_4a32_d192_ed03;

/// Multiplies two words and folds the product.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    (wide as u64) ^ ((wide >> 64) as u64)
}

/// Hashes `bytes` with `seed`, one multiplication per two words. Not resistant to chosen
/// collisions: lookups must compare whole keys.
#[inline]
#[must_use]
pub fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let word = |bytes: [u8; 8]| u64::from_le_bytes(bytes);
    let (words, rest) = bytes.as_chunks::<8>();
    let (pairs, unpaired) = words.as_chunks::<2>();
    let hash = pairs.iter().fold(seed ^ HASH_SEED, |hash, [one, two]| {
        mix(word(*one) ^ hash, word(*two) ^ SECOND_SEED)
    });
    let mut padded_rest = [0; 8];
    for (to, from) in padded_rest.iter_mut().zip(rest) {
        *to = *from;
    }
    let unpaired = unpaired.first().map_or(0, |bytes| word(*bytes));
    let hash = mix(unpaired ^ hash, word(padded_rest) ^ HASH_SEED);
    mix(hash ^ bytes.len() as u64, SECOND_SEED)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_byte_the_length_and_the_seed_change_the_hash() {
        let bytes: Vec<u8> = (0..64).collect();
        let mut seen = HashSet::new();
        for len in 0..bytes.len() {
            assert!(seen.insert(hash(0, &bytes[..len])));
            assert!(seen.insert(hash(1, &bytes[..len])));
            for at in 0..len {
                let mut changed = bytes[..len].to_vec();
                changed[at] ^= 0x80;
                assert!(seen.insert(hash(0, &changed)), "{len} {at}");
            }
        }
    }
}
