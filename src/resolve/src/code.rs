//! The bytes of code, as the files of objects, the dumps of runtimes and the memory of kernels have them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use rperf_replay::{Machine, Order};
use rperf_symbol::{CodeLayout, FileBytes, KernelCode};
use rperf_wire::CpuMode;

use crate::frame::{Frame, Level, Place};
use crate::resolver::Resolver;

/// Code at some address, from there on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code<'r> {
    /// The ELF file that it is in, or the start of it, which tells whose instructions these are.
    pub file: &'r [u8],
    /// The code; a copy of it where the kernel changed it later or had changed it before.
    pub bytes: Cow<'r, [u8]>,
}

/// Where an object's code is.
pub(crate) enum CodeOf {
    /// In the file that was mapped.
    File {
        bytes: FileBytes,
        /// Read once it is asked for.
        layout: OnceLock<CodeLayout>,
    },
    /// A kernel's, or that of one of its modules.
    Kernel(KernelCode),
}

impl Resolver<'_> {
    /// The code at `frame` as it was just before `order`, up to `most` bytes of it; `None` where nothing has it: no file of
    /// the object is at hand, no dump of its runtime, and for a kernel neither its image nor its memory.
    #[must_use]
    pub fn code(&self, frame: &Frame, order: Order, most: usize) -> Option<Code<'_>> {
        if let Some((function, offset)) = self.made_at(frame) {
            return function.code(offset, most);
        }
        match self.code_of(frame)? {
            CodeOf::File { bytes, .. } => Some(Code {
                file: bytes,
                bytes: Cow::Borrowed(first(
                    most,
                    bytes.get(usize::try_from(frame.address).ok()?..)?,
                )),
            }),
            CodeOf::Kernel(code) => Some(Code {
                file: &code.header,
                bytes: self.as_it_was(order, frame.ip, first(most, code.at(frame.ip)?)),
            }),
        }
    }

    /// The address of `frame` as the object's own tables give it, and tools that print its code: for files that were mapped
    /// that of the segment; elsewhere [`Frame::address`].
    #[must_use]
    pub fn object_address(&self, frame: &Frame) -> u64 {
        let layout = self.layout_of(frame);
        let address = layout.and_then(|layout| layout.address(frame.address));
        address.unwrap_or(frame.address)
    }

    /// The sections of code in the file that `frame` is in, as ranges of [`Frame::address`]; `None` where code is in no such
    /// file.
    #[must_use]
    pub fn code_sections(&self, frame: &Frame) -> Option<&[Range<u64>]> {
        let sections = self.layout_of(frame)?.sections();
        (!sections.is_empty()).then_some(sections)
    }

    /// What lies at `address` of the object that `frame` is in, given as [`Resolver::object_address`] gives it.
    #[must_use]
    pub fn beside(&self, frame: &Frame, address: u64) -> Option<Frame> {
        let place = match self.layout_of(frame) {
            Some(layout) => layout.offset(address)?,
            None => address,
        };
        let bytes = place.wrapping_sub(frame.address);
        let ip = frame.ip.wrapping_add(bytes);
        let found = self.in_mapping(frame.mapping?, ip, frame.level);
        // Of the kernel and its modules each is somewhere else, and code of one goes on in the other.
        if frame.level != Level::Kernel || found.symbol.is_some() {
            return Some(found);
        }
        let anywhere = Place {
            machine: Machine::Host,
            pid: 0,
            order: Order::MAX,
        };
        Some(self.locate(anywhere, CpuMode::Kernel, ip))
    }

    /// How the file is laid out that the code of `frame` is in.
    fn layout_of(&self, frame: &Frame) -> Option<&CodeLayout> {
        match self.code_of(frame)? {
            CodeOf::File { bytes, layout } if self.made_at(frame).is_none() => {
                Some(layout.get_or_init(|| CodeLayout::of(bytes)))
            }
            _ => None,
        }
    }

    fn as_it_was<'r>(&self, order: Order, address: u64, code: &'r [u8]) -> Cow<'r, [u8]> {
        let then = self.world().code_at(order, address, code);
        then.map_or(Cow::Borrowed(code), Cow::Owned)
    }
}

/// Up to `most` of `bytes`.
pub(crate) fn first(most: usize, bytes: &[u8]) -> &[u8] {
    bytes.get(..most).unwrap_or(bytes)
}
