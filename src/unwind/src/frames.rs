//! Frame information tables, and lookup of the entry for an address.

use std::ops::Range;
use std::sync::OnceLock;

use gimli::{
    BaseAddresses, CieOrFde, DebugFrame, EhFrame, FrameDescriptionEntry, RunTimeEndian,
    UnwindContext, UnwindSection,
};
use object::ReadRef as _;
use rperf_symbol::FileBytes;

use crate::Arch;
use crate::compile::{Bytes, compile};
use crate::epilogue::StepOrigin;
use crate::outcome::TruncationCause;
use crate::step::Step;

/// The bytes of a section: a part of a file, or decompressed.
#[derive(Debug)]
pub(crate) enum SectionBytes {
    Part(FileBytes, Range<usize>),
    Owned(Vec<u8>),
}

impl SectionBytes {
    pub(crate) fn get(&self) -> &[u8] {
        match self {
            Self::Part(file, range) => file.get(range.clone()).unwrap_or_default(),
            Self::Owned(bytes) => bytes,
        }
    }
}

/// How numbers in an object are encoded; the architecture determines the address size and vendor extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameFormat {
    pub(crate) arch: Arch,
    pub(crate) endian: RunTimeEndian,
}

/// `.eh_frame` with its optional search table, or `.debug_frame`.
#[derive(Debug)]
pub(crate) struct FrameTable {
    pub(crate) format: FrameFormat,
    pub(crate) kind: SectionKind,
    pub(crate) bytes: SectionBytes,
    pub(crate) bases: BaseAddresses,
    /// Built on first use, unless there is a search table.
    pub(crate) index: OnceLock<EntryOffsets>,
}

/// Type of the section, which determines how its entries refer to each other.
#[derive(Debug)]
pub(crate) enum SectionKind {
    EhFrame {
        /// Address of the section.
        address: u64,
        search: Option<SearchTable>,
    },
    DebugFrame,
}

impl FrameTable {
    /// The step for `address`: the rules that lead from a frame there to its caller. `None` if no entry covers it.
    pub(crate) fn step(
        &self,
        address: u64,
        context: &mut UnwindContext<usize>,
    ) -> Option<Result<Step, TruncationCause>> {
        match self.kind {
            SectionKind::EhFrame { .. } => self.step_of(&self.eh_frame(), address, context),
            SectionKind::DebugFrame => self.step_of(&self.debug_frame(), address, context),
        }
    }

    /// Whether an entry's code starts at `address`.
    pub(crate) fn starts_at(&self, address: u64) -> bool {
        let start = match self.kind {
            SectionKind::EhFrame { .. } => self.start_of(&self.eh_frame(), address),
            SectionKind::DebugFrame => self.start_of(&self.debug_frame(), address),
        };
        start == Some(address)
    }

    fn eh_frame(&self) -> EhFrame<Bytes<'_>> {
        let FrameFormat { arch, endian } = self.format;
        let mut section = EhFrame::from(Bytes::new(self.bytes.get(), endian));
        section.set_address_size(arch.address_size());
        section.set_vendor(arch.vendor());
        section
    }

    fn debug_frame(&self) -> DebugFrame<Bytes<'_>> {
        let FrameFormat { arch, endian } = self.format;
        let mut section = DebugFrame::from(Bytes::new(self.bytes.get(), endian));
        section.set_address_size(arch.address_size());
        section.set_vendor(arch.vendor());
        section
    }

    /// The entry that covers `address`.
    fn entry<'a, S: UnwindSection<Bytes<'a>>>(
        &self,
        section: &S,
        address: u64,
    ) -> Option<gimli::Result<FrameDescriptionEntry<Bytes<'a>>>> {
        let offset = match &self.kind {
            SectionKind::EhFrame {
                address: section_address,
                search: Some(search),
            } => {
                let entry_address = search.entry_address(address)?;
                usize::try_from(entry_address.checked_sub(*section_address)?).ok()?
            }
            _ => {
                let build = || EntryOffsets::build(section, &self.bases);
                self.index.get_or_init(build).entry_offset(address)?
            }
        };
        let entry = section.fde_from_offset(&self.bases, offset.into(), S::cie_from_offset);
        match entry {
            Ok(entry) if !entry.contains(address) => None,
            entry => Some(entry),
        }
    }

    fn start_of<'a, S: UnwindSection<Bytes<'a>>>(&self, section: &S, address: u64) -> Option<u64> {
        Some(self.entry(section, address)?.ok()?.initial_address())
    }

    fn step_of<'a, S: UnwindSection<Bytes<'a>>>(
        &self,
        section: &S,
        address: u64,
        context: &mut UnwindContext<usize>,
    ) -> Option<Result<Step, TruncationCause>> {
        let bases = &self.bases;
        let step = self.entry(section, address)?.and_then(|entry| {
            let mut step = compile(section, bases, &entry, context, address)?;
            let origin = StepOrigin {
                section,
                bases,
                entry: &entry,
                address,
                stack_pointer: self.format.arch.stack_pointer(),
            };
            // Removes the registers that an epilogue already popped: they are not restored from the stack.
            origin.correct(&mut step, context);
            Ok(step)
        });
        Some(step.map_err(|_| TruncationCause::BadFrameInfo))
    }
}

/// Offsets of entries, for sections without a usable search table.
#[derive(Debug, Default)]
pub(crate) struct EntryOffsets {
    /// Start address, end address, offset in the section; by ascending address.
    entries: Vec<(u64, u64, usize)>,
}

impl EntryOffsets {
    /// Reads the entries up to the first that has no valid header. Other invalid entries, and those of code at address 0, are
    /// skipped.
    fn build<'a, S: UnwindSection<Bytes<'a>>>(section: &S, bases: &BaseAddresses) -> Self {
        let mut entries = Vec::new();
        let mut all = section.entries(bases);
        while let Ok(Some(entry)) = all.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let parsed: gimli::Result<FrameDescriptionEntry<_>> = partial.parse(S::cie_from_offset);
            // Entries of code at 0 belong to functions removed by the linker.
            if let Ok(entry) = parsed
                && entry.initial_address() != 0
            {
                entries.push((entry.initial_address(), entry.end_address(), entry.offset()));
            }
        }
        entries.sort_unstable();
        Self { entries }
    }

    /// The offset of the entry that covers `address`.
    fn entry_offset(&self, address: u64) -> Option<usize> {
        let after = self
            .entries
            .partition_point(|(start, _, _)| *start <= address);
        let (_, end, offset) = self.entries.get(after.checked_sub(1)?)?;
        (address < *end).then_some(*offset)
    }
}

/// The search table of `.eh_frame_hdr` in the usual form: pairs of 32-bit offsets from the address of `.eh_frame_hdr` to the
/// start of a function and to its entry in `.eh_frame`, by ascending start.
#[derive(Debug)]
pub(crate) struct SearchTable {
    bytes: SectionBytes,
    /// Address of `.eh_frame_hdr`.
    address: u64,
    /// Number of pairs.
    count: usize,
    endian: RunTimeEndian,
}

/// The first bytes of `.eh_frame_hdr` in this form: version 1; encodings of the address of `.eh_frame` (PC-relative in 32 bits),
/// of the number of pairs (32 bits) and of the pairs.
const SEARCH_FORM: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// Offset of the first pair.
const SEARCH_START: usize = 12;
/// Size of a pair in bytes.
const SEARCH_PAIR: usize = 8;

impl SearchTable {
    /// Returns `None` for an empty table or one of another form: then all entries of the section are indexed ([`EntryOffsets`]).
    pub(crate) fn parse(bytes: SectionBytes, address: u64, endian: RunTimeEndian) -> Option<Self> {
        let all = bytes.get();
        if all.get(..4)? != SEARCH_FORM {
            return None;
        }
        let stated = u32_at(all, 8, endian)? as usize;
        let count = stated.min(all.len().saturating_sub(SEARCH_START) / SEARCH_PAIR);
        (count > 0).then_some(Self {
            bytes,
            address,
            count,
            endian,
        })
    }

    /// The address of `.eh_frame` according to `.eh_frame_hdr` (`bytes` at `address`), for files without section headers.
    pub(crate) fn eh_frame_address(
        bytes: &[u8],
        address: u64,
        endian: RunTimeEndian,
    ) -> Option<u64> {
        (bytes.get(..2)? == &SEARCH_FORM[..2]).then_some(())?;
        let offset = u32_at(bytes, 4, endian)?.cast_signed();
        Some(address.wrapping_add(4).wrapping_add_signed(offset.into()))
    }

    /// The address of the entry of the last function that starts at or before `address`.
    fn entry_address(&self, address: u64) -> Option<u64> {
        let bytes = self.bytes.get();
        // `part` is 0 for the start of the function, 1 for its entry.
        let address_in = |pair: usize, part: usize| {
            let offset = u32_at(
                bytes,
                SEARCH_START + pair * SEARCH_PAIR + part * 4,
                self.endian,
            )?;
            Some(
                self.address
                    .wrapping_add_signed(offset.cast_signed().into()),
            )
        };
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if address_in(middle, 0)? <= address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        address_in(low.checked_sub(1)?, 1)
    }
}

/// The 32-bit number at an offset.
pub(crate) fn u32_at(bytes: &[u8], offset: usize, endian: RunTimeEndian) -> Option<u32> {
    let word: [u8; 4] = bytes
        .read_bytes_at(offset as u64, 4)
        .ok()?
        .try_into()
        .ok()?;
    Some(match endian {
        RunTimeEndian::Little => u32::from_le_bytes(word),
        RunTimeEndian::Big => u32::from_be_bytes(word),
    })
}
