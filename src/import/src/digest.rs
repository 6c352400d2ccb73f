//! Hashes in place of build-ids, which the imported formats lack.

/// Returns a hash of 20 bytes, the usual size of a build-id: the beginning of three concatenated 64-bit FNV-1a
/// hashes, which have different offset bases.
pub(crate) fn digest(content: &[u8]) -> [u8; 20] {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let offsets: [u64; 3] = [
        0xcbf2_9ce4_8422_2325,
        0x8422_2325_cbf2_9ce4,
        0x9ce4_8422_2325_cbf2,
    ];
    let hashes = offsets.map(|offset| {
        let bytes = content.iter();
        bytes.fold(offset, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
        })
    });
    let bytes = hashes.iter().flat_map(|hash| hash.to_le_bytes());
    let mut digest = [0; 20];
    for (to, from) in digest.iter_mut().zip(bytes) {
        *to = from;
    }
    digest
}
