//! Incremental decoding of the zstd stream in COMPRESSED records.
//!
//! perf flushes the stream at the end of each chunk but never ends it, and a block may span
//! two records, so blocks are decoded as they become complete. Until the frame ends, ruzstd's decoder keeps as much of the
//! last output as the window holds. It reports only how much output it has beyond a full window, which is 0 until the window is
//! full. To know the exact amount decoded, the window is first filled with zeros, which are removed from the output.

use rperf_memory::{OutOfMemory, reserve};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// First bytes of a frame (RFC 8878).
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The last three bytes of the magic number of skippable frames; the first byte is 0x50 to 0x5f.
const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];
/// Size of a frame's checksum in bytes.
const CHECKSUM_SIZE: usize = 4;
/// Type of a run-length block, which has one byte of content.
const RUN_LENGTH: u8 = 1;
/// Maximum decompressed size of a block.
const MAX_BLOCK: u64 = 128 << 10;
/// Window size that is always allowed: that of level 20.
const ALWAYS_ALLOWED: u64 = 32 << 20;
/// Binary logarithm of the largest window (that of level 22), allowed for inputs of at least an eighth of its size.
const MAX_WINDOW_LOG: u32 = 27;
/// Window bytes allowed per byte of input.
const WINDOW_PER_INPUT_BYTE: u64 = 8;
/// An empty block marked as the last one.
const END: [u8; 3] = [1, 0, 0];

/// Why a stream cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ZstdError {
    /// The input doesn't begin with a zstd frame.
    #[error("the compressed bytes do not begin as a zstd frame")]
    Magic,
    /// The frame refers further back than the allowed window.
    #[error("the zstd frame needs a window of up to {window} bytes; {most} are allowed")]
    Window {
        /// Window size in the frame header.
        window: u64,
        /// Allowed window size.
        most: u64,
    },
    /// Out of memory for the window.
    #[error("the zstd frame needs a window of {window} bytes: {source}")]
    OutOfMemory {
        /// Size of the window that cannot be allocated.
        window: u64,
        /// The failed allocation.
        source: OutOfMemory,
    },
    /// An error of the decoder.
    #[error("zstd: {0}")]
    Damaged(String),
}

/// A frame being decoded.
struct Frame {
    /// Window size in the frame header.
    window: u64,
    /// Number of zeros inserted at the start.
    filled: u64,
    /// Number of bytes read from the decoder, including those zeros.
    taken: u64,
    has_checksum: bool,
}

/// Decodes a stream incrementally.
pub(crate) struct Zstd {
    /// Binary logarithm of the largest allowed window.
    most_log: u32,
    decoder: FrameDecoder,
    frame: Option<Frame>,
    /// Compressed bytes of an incomplete block, frame header or skippable frame.
    waiting: Vec<u8>,
    /// Number of bytes decoded from previous frames.
    finished: u64,
}

impl std::fmt::Debug for Zstd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Zstd")
            .field("produced", &self.produced())
            .finish_non_exhaustive()
    }
}

impl Zstd {
    /// Creates a decoder for a recording of `input` bytes (0: unknown size). The size limits the window: see [`most_window`].
    pub(crate) fn new(input: u64) -> Self {
        Self {
            most_log: most_window(input).ilog2(),
            decoder: FrameDecoder::new(),
            frame: None,
            waiting: Vec::new(),
            finished: 0,
        }
    }

    /// Number of bytes decoded so far, including those still in the decoder.
    pub(crate) fn produced(&self) -> u64 {
        // `taken` also counts the zeros, and `can_collect` does not count the window, which has the same size: they cancel out.
        let of_frame = self
            .frame
            .as_ref()
            .map_or(0, |frame| frame.taken + self.decoder.can_collect() as u64);
        self.finished + of_frame
    }

    /// Whether all frames so far are complete.
    pub(crate) fn is_between_frames(&self) -> bool {
        self.frame.is_none() && self.waiting.is_empty()
    }

    /// Adds complete frames that were decoded elsewhere to [`Self::produced`]; `size` is their decompressed size in bytes.
    pub(crate) fn add_produced(&mut self, size: usize) {
        self.finished += size as u64;
    }

    /// Decodes the complete blocks of `bytes` and earlier input, and appends the output that leaves
    /// the decoder's window to `out`. Stops once [`Self::produced`] exceeds `most_output`: the caller then reports an error.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        most_output: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), ZstdError> {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.extend_from_slice(bytes);
        let mut rest = waiting.as_slice();
        while self.produced() <= most_output {
            let used = match &self.frame {
                None => self.begin(rest)?,
                Some(frame) => match block_size(rest, frame.has_checksum) {
                    Some(size) => self.block(rest.get(..size).unwrap_or_default(), out)?,
                    None => 0,
                },
            };
            if used == 0 {
                break;
            }
            rest = rest.get(used..).unwrap_or_default();
        }
        self.waiting = rest.to_vec();
        Ok(())
    }

    /// At the end of the stream: appends the remaining output of the decoder to `out`.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ZstdError> {
        if let Some(frame) = &self.frame {
            // An empty last block ends the frame, so that the decoder releases its window.
            let mut end = END.to_vec();
            if frame.has_checksum {
                // Any checksum will do: the decoder reads it, but does not compare it.
                end.resize(END.len() + CHECKSUM_SIZE, 0);
            }
            self.block(&end, out)?;
        }
        Ok(())
    }

    /// Parses a frame header, or skips a skippable frame; returns its size, 0 if it is incomplete.
    fn begin(&mut self, bytes: &[u8]) -> Result<usize, ZstdError> {
        let Some(magic) = bytes.first_chunk::<4>() else {
            return Ok(0);
        };
        if magic[1..] == SKIPPABLE && magic[0] & 0xf0 == 0x50 {
            let size = bytes.get(4..).and_then(<[u8]>::first_chunk);
            // The magic number and the size field take eight bytes.
            let size = size.map_or(0, |size| 8 + u32::from_le_bytes(*size) as usize);
            return Ok(if size <= bytes.len() { size } else { 0 });
        }
        if *magic != MAGIC {
            return Err(ZstdError::Magic);
        }
        let Some(header) = Header::decode(bytes) else {
            return Ok(0);
        };
        let most = 1 << self.most_log;
        // The window of the decoder, which may be smaller than that of the frame.
        let window = header.window.min(most);
        // Only a check whether there is memory: if the decoder itself failed to allocate the window, the process would end.
        let size = usize::try_from(window).unwrap_or(usize::MAX);
        reserve(&mut Vec::<u8>::new(), size)
            .map_err(|source| ZstdError::OutOfMemory { window, source })?;
        let reset = if header.window > most {
            // A smaller window gives the same result unless a block refers further back.
            self.decoder.reset(&header.with_window(self.most_log)[..])
        } else {
            self.decoder
                .reset(bytes.get(..header.size).unwrap_or_default())
        };
        reset.map_err(damaged)?;
        self.fill(window)?;
        self.frame = Some(Frame {
            window: header.window,
            filled: window,
            taken: 0,
            has_checksum: header.has_checksum,
        });
        Ok(header.size)
    }

    /// Fills the window with zeros, using run-length blocks.
    fn fill(&mut self, window: u64) -> Result<(), ZstdError> {
        let mut left = window;
        while left > 0 {
            let size = left.min(MAX_BLOCK);
            let header = u32::try_from(size << 3 | u64::from(RUN_LENGTH) << 1).unwrap_or_default();
            let [low, middle, high, _] = header.to_le_bytes();
            self.decode(&[low, middle, high, 0])?;
            left -= size;
        }
        Ok(())
    }

    /// Passes a block to the decoder.
    fn decode(&mut self, block: &[u8]) -> Result<(), ZstdError> {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        let decoded = self.decoder.decode_blocks(block, one);
        decoded.map(drop).map_err(damaged)
    }

    /// Decodes one block, appends the output that leaves the window to `out`, and returns the size of the block.
    fn block(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<usize, ZstdError> {
        let (most, frame) = (1 << self.most_log, self.frame.as_ref());
        let window = frame.map_or(0, |frame| frame.window);
        // If the decoder has a smaller window than the frame needs, the likely cause of an error is a reference beyond it.
        self.decode(block).map_err(|error| {
            if window > most {
                ZstdError::Window { window, most }
            } else {
                error
            }
        })?;
        let ended = self.decoder.is_finished();
        let Some(frame) = &mut self.frame else {
            return Ok(block.len());
        };
        let zeros_left = frame.filled.saturating_sub(frame.taken);
        let start = out.len();
        let collected = self.decoder.collect_to_writer(&mut *out);
        let collected = collected.map_err(|error| ZstdError::Damaged(error.to_string()))? as u64;
        let zeros = usize::try_from(zeros_left.min(collected)).unwrap_or(usize::MAX);
        out.drain(start..start + zeros);
        frame.taken += collected;
        if ended {
            self.finished += frame.taken.saturating_sub(frame.filled);
            self.frame = None;
        }
        Ok(block.len())
    }
}

/// Returns the largest allowed window in bytes, a power of two. `input` is the size of the recording in bytes, 0 if unknown.
pub(crate) fn most_window(input: u64) -> u64 {
    let granted = input
        .saturating_mul(WINDOW_PER_INPUT_BYTE)
        .max(ALWAYS_ALLOWED);
    1 << granted.ilog2().min(MAX_WINDOW_LOG)
}

/// Size and window of a complete frame.
pub(crate) struct FrameExtent {
    /// Bytes of header, blocks and checksum.
    pub(crate) size: usize,
    /// Window size in bytes.
    pub(crate) window: u64,
}

impl FrameExtent {
    /// The first frame of `bytes`; `None` if it is incomplete, has more than `max_blocks` blocks or does not begin as a
    /// frame.
    pub(crate) fn of(bytes: &[u8], max_blocks: usize) -> Option<Self> {
        let header = Header::decode(bytes).filter(|_| bytes.starts_with(&MAGIC))?;
        let mut size = header.size;
        for _ in 0..max_blocks {
            let rest = bytes.get(size..)?;
            let is_last = rest.first()? & 1 == 1;
            size += block_size(rest, header.has_checksum)?;
            if is_last {
                let window = header.window;
                return Some(Self { size, window });
            }
        }
        None
    }
}

fn damaged(error: impl std::fmt::Display) -> ZstdError {
    ZstdError::Damaged(error.to_string())
}

/// Size of the first block with its header, and of the checksum if it is the last block of a frame that has one;
/// `None` if they are incomplete.
fn block_size(bytes: &[u8], has_checksum: bool) -> Option<usize> {
    const HEADER: usize = 3;
    let [low, middle, high] = *bytes.first_chunk::<HEADER>()?;
    let header = u32::from_le_bytes([low, middle, high, 0]);
    let (is_last, kind, size) = (header & 1 == 1, header >> 1 & 3, header >> 3);
    let content = if kind == u32::from(RUN_LENGTH) {
        1
    } else {
        size as usize
    };
    let checksum = if is_last && has_checksum {
        CHECKSUM_SIZE
    } else {
        0
    };
    let size = HEADER + content + checksum;
    (size <= bytes.len()).then_some(size)
}

/// A frame header: the fields that decoding needs.
struct Header {
    /// Size of the header in bytes.
    size: usize,
    /// Window size in bytes.
    window: u64,
    has_checksum: bool,
}

impl Header {
    /// Encodes this header with a window of 2 to the power of `log` instead of its own, and without content size and dictionary
    /// id; the checksum flag is kept.
    fn with_window(&self, log: u32) -> [u8; 6] {
        let [a, b, c, d] = MAGIC;
        let window = u8::try_from(log.saturating_sub(10) << 3).unwrap_or(u8::MAX);
        [a, b, c, d, u8::from(self.has_checksum) << 2, window]
    }

    /// Decodes a header that starts with the magic number; `None` if it is incomplete.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let descriptor = *bytes.get(4)?;
        let is_single_segment = descriptor >> 5 & 1 == 1;
        // Sizes of the optional fields: dictionary id and content size.
        let id_bytes = [0, 1, 2, 4].get(usize::from(descriptor & 3))?;
        let content_bytes = match descriptor >> 6 {
            0 => usize::from(is_single_segment),
            log => 1 << log,
        };
        // The magic number, the descriptor, and the window field if there is one.
        let fixed_bytes = if is_single_segment { 5 } else { 6 };
        let size = fixed_bytes + id_bytes + content_bytes;
        let header = bytes.get(..size)?;
        let window = if is_single_segment {
            // Such a frame has no window field: its window has the size of its content.
            let field = header.get(fixed_bytes + id_bytes..)?;
            let number = field.iter().rev();
            let number = number.fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
            // The two-byte form starts where the one-byte form ends.
            if content_bytes == 2 {
                number + 256
            } else {
                number
            }
        } else {
            let field = *header.get(5)?;
            let base = 1_u64 << (10 + (field >> 3));
            base + base / 8 * u64::from(field & 7)
        };
        Some(Self {
            size,
            window,
            has_checksum: descriptor >> 2 & 1 == 1,
        })
    }
}
