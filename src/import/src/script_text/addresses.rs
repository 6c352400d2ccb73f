//! The addresses that frames get in the recording, and the mappings by which readers find the functions.

use std::collections::{BTreeMap, HashMap, HashSet};

use rperf_wire::Mmap;

use super::frame::TextFrame;
use super::kernel::INLINED_DISTANCE;
use super::objects::{CodeOwner, LOW_END, Objects};

/// Mappings of one process.
#[derive(Debug, Default)]
struct ProcessMappings {
    /// Indices in `Objects::user` of the objects whose low addresses are mapped, as one range. Low addresses are below
    /// [`LOW_END`]: offsets in the object, or addresses in a program that is not position-independent.
    low: HashSet<usize>,
    /// The other mappings by start address: end address, the object's index, and the offset in the object.
    pieces: BTreeMap<u64, (u64, usize, u64)>,
}

/// The first address given to inlined functions of user space: each needs a separate mapping and thus a separate address.
const INLINED_BASE: u64 = 0x0f00_0000_0000;

/// The mappings of all processes so far.
#[derive(Debug)]
pub(super) struct Mappings<'o, 't> {
    objects: &'o Objects<'t>,
    processes: HashMap<u32, ProcessMappings>,
    /// The address of each inlined function, by the object's index and the function's name.
    inlined: HashMap<(usize, &'t str), u64>,
}

impl<'o, 't> Mappings<'o, 't> {
    pub(super) fn new(objects: &'o Objects<'t>) -> Self {
        Self {
            objects,
            processes: HashMap::new(),
            inlined: HashMap::new(),
        }
    }

    /// Returns the addresses of a sample's frames. Calls `map` for each mapping that they need and that does not exist yet.
    pub(super) fn addresses(
        &mut self,
        pid: u32,
        tid: u32,
        frames: &[TextFrame<'t>],
        map: &mut dyn FnMut(&Mmap<'_>),
    ) -> Vec<u64> {
        let mut addresses = Vec::with_capacity(frames.len());
        for (number, frame) in frames.iter().enumerate() {
            let address = match self.objects.owner(frames, number) {
                CodeOwner::Kernel if frame.is_inlined => {
                    let kernel = &self.objects.kernel;
                    let inlined = frame
                        .symbol
                        .and_then(|symbol| kernel.inlined_address(symbol));
                    inlined.unwrap_or(frame.address)
                }
                CodeOwner::Kernel | CodeOwner::Unknown => frame.address,
                CodeOwner::User(index) => {
                    let piece = self.piece(index, frame);
                    if let Some(object) = self.objects.user.get(index)
                        && self.add_mapping(pid, index, piece)
                    {
                        map(&Mmap {
                            pid: pid.cast_signed(),
                            tid,
                            start: piece.start,
                            len: piece.len,
                            pgoff: piece.pgoff,
                            filename: object.recorded_name().as_bytes(),
                        });
                    }
                    piece.address
                }
            };
            addresses.push(address);
        }
        addresses
    }

    /// Returns the part of the object with this index that contains a frame, and the frame's address.
    fn piece(&mut self, index: usize, frame: &TextFrame<'t>) -> Piece {
        let Some(object) = self.objects.user.get(index) else {
            return Piece::at(frame.address);
        };
        if frame.address < LOW_END && !frame.is_inlined {
            return Piece {
                start: object.base + object.low.start,
                len: object.low.end - object.low.start,
                pgoff: object.low.start,
                address: object.base + frame.address,
                is_low: true,
            };
        }
        let function_offset = frame
            .symbol
            .and_then(|symbol| object.function_offset(symbol));
        let (Some(symbol), Some(function_offset)) = (frame.symbol, function_offset) else {
            // At this offset, readers find no function: those of the object are normally at lower offsets.
            return Piece {
                pgoff: frame.address,
                ..Piece::at(frame.address)
            };
        };
        if frame.is_inlined {
            let next = INLINED_BASE + INLINED_DISTANCE * self.inlined.len() as u64;
            let start = *self.inlined.entry((index, symbol)).or_insert(next);
            return Piece {
                pgoff: function_offset,
                ..Piece::at(start)
            };
        }
        match frame.offset {
            Some(offset) => Piece {
                start: frame.address - offset,
                len: object.function_size(symbol),
                pgoff: function_offset,
                address: frame.address,
                is_low: false,
            },
            None => Piece {
                pgoff: function_offset,
                ..Piece::at(frame.address)
            },
        }
    }

    /// Adds the mapping of a piece of the object with this index. Returns false if it needs none: the object's low addresses, or
    /// the piece's address, are already mapped to the same place in the object.
    fn add_mapping(&mut self, pid: u32, index: usize, piece: Piece) -> bool {
        let process = self.processes.entry(pid).or_default();
        if piece.is_low {
            return process.low.insert(index);
        }
        let end = piece.start.saturating_add(piece.len);
        let below = process.pieces.range(..=piece.address).next_back();
        if let Some((start, (known_end, known_object, pgoff))) = below
            && piece.address < *known_end
            && *known_object == index
            && pgoff.wrapping_add(piece.start.wrapping_sub(*start)) == piece.pgoff
        {
            return false;
        }
        // The mappings that the new one overlaps are removed, and added again when a frame needs them.
        let covered = process.pieces.range(..end);
        let covered = covered.filter(|(_, (known_end, ..))| *known_end > piece.start);
        let covered: Vec<u64> = covered.map(|(start, _)| *start).collect();
        for start in covered {
            process.pieces.remove(&start);
        }
        process
            .pieces
            .insert(piece.start, (end, index, piece.pgoff));
        true
    }
}

/// A part of an object that is mapped for a frame.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Start address of the mapping.
    start: u64,
    /// Size in bytes.
    len: u64,
    /// Offset of the part in the object.
    pgoff: u64,
    /// The frame's address in the recording.
    address: u64,
    /// Whether this is the part with low addresses.
    is_low: bool,
}

impl Piece {
    /// One byte at an address, mapped from the start of the object.
    fn at(address: u64) -> Self {
        Self {
            start: address,
            len: 1,
            pgoff: 0,
            address,
            is_low: false,
        }
    }
}
