//! Decoding of zstd frames that are complete in one COMPRESSED record, so that each record can be decoded alone. rperf
//! writes such records; perf writes one frame for the whole recording.

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::decompress::max_decompressed;
use crate::zstd::{FrameExtent, most_window};

/// Maximum number of blocks in a frame that is decoded as a whole: a block of a few bytes may expand to 128 KiB.
const MAX_BLOCKS: usize = 64;

/// Decodes frames, each as a whole.
pub(crate) struct CompleteFrames {
    decoder: FrameDecoder,
    /// Maximum size of a window in bytes.
    max_window: u64,
}

impl std::fmt::Debug for CompleteFrames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompleteFrames").finish_non_exhaustive()
    }
}

impl CompleteFrames {
    /// Creates a decoder for a recording of `input` bytes, 0 if unknown.
    pub(crate) fn new(input: u64) -> Self {
        Self {
            decoder: FrameDecoder::new(),
            max_window: most_window(input),
        }
    }

    /// Replaces the content of `out` with the decoded `bytes`, if these are complete, undamaged frames of at most
    /// [`MAX_BLOCKS`] blocks, with allowed windows and a plausible size. Otherwise returns `false`, and the caller must pass
    /// `bytes` to [`Zstd`](crate::zstd::Zstd), which decodes block by block and reports damage.
    pub(crate) fn decode(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        let mut rest = bytes;
        while !rest.is_empty() {
            let Some(size) = self.frame(rest, out) else {
                return false;
            };
            rest = rest.get(size..).unwrap_or_default();
            if out.len() as u64 > max_decompressed(bytes.len() as u64) {
                return false;
            }
        }
        true
    }

    /// Appends the content of the first frame of `bytes`, and returns the frame's compressed size. `None` if it can't be decoded
    /// as a whole; `out` may then have a part of the content.
    fn frame(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let extent = FrameExtent::of(bytes, MAX_BLOCKS)?;
        if extent.window > self.max_window {
            return None;
        }
        let mut frame = bytes.get(..extent.size)?;
        self.decoder.reset(&mut frame).ok()?;
        let all = BlockDecodingStrategy::All;
        self.decoder.decode_blocks(frame, all).ok()?;
        self.decoder.collect_to_writer(&mut *out).ok()?;
        self.decoder.is_finished().then_some(extent.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` frames of 64 run-length blocks; each block decodes to 128 KiB.
    fn frames(count: usize) -> Vec<u8> {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0];
        for block in 1..=64_u8 {
            frame.extend([2 | u8::from(block == 64), 0, 0x10, 0]);
        }
        frame.repeat(count)
    }

    #[test]
    fn frames_of_an_implausible_size_are_not_decoded_as_a_whole() {
        let mut decoder = CompleteFrames::new(0);
        let mut out = Vec::new();
        assert!(!decoder.decode(&frames(240), &mut out));
        // The input has 240 times 262 bytes, so that 1024 times this size and 1 MiB, 62.4 MiB in all, are plausible. A frame
        // decodes to 8 MiB: decoding stops after the eighth, at 64 MiB.
        assert!(out.len() < 80 << 20, "{}", out.len());
    }
}
