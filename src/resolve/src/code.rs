//! Machine code from object files, JIT dumps and kernel memory.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use rperf_replay::{DsoId, Machine, Order};
use rperf_symbol::{BuildId, CodeLayout, FileBytes, KernelCode, build_id_of_elf};
use rperf_wire::CpuMode;

use crate::frame::{AddressContext, Frame, Level};
use crate::resolver::Resolver;

/// Code from an address on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeBytes<'r> {
    /// The ELF file with the code, or only the start of that file: its header identifies the instruction set.
    pub file: &'r [u8],
    /// The code; a copy if the recording contains modifications of it by the kernel.
    pub bytes: Cow<'r, [u8]>,
}

/// Source of an object's code.
pub(crate) enum CodeSource {
    /// The mapped file.
    File {
        bytes: FileBytes,
        /// Loaded on first use.
        layout: OnceLock<CodeLayout>,
    },
    /// Code of a kernel or a module.
    Kernel(KernelCode),
}

impl Resolver<'_> {
    /// The build-id of an object: from the recording, otherwise, for user objects and vdsos, from the object's file, which is
    /// read in each call.
    #[must_use]
    pub fn build_id(&self, dso: DsoId) -> Option<BuildId> {
        let dso = self.world().dso(dso);
        if let Some(recorded) = dso.build_id.as_deref() {
            return BuildId::from_bytes(recorded);
        }
        let (_, bytes) = self.load_inputs().images(dso)?.code?;
        build_id_of_elf(&bytes)
    }

    /// The code at `frame` just before the record at position `order`, at most `max_len` bytes; `None` if the object has no
    /// source of code, or `frame` is outside of it. The source for the kernel and its modules is an image or memory, for other
    /// objects a readable file or a JIT dump.
    #[must_use]
    pub fn code(&self, frame: &Frame, order: Order, max_len: usize) -> Option<CodeBytes<'_>> {
        if let Some((function, offset)) = self.jit_function_at(frame) {
            return function.code(offset, max_len);
        }
        match self.code_of(frame)? {
            CodeSource::File { bytes, .. } => Some(CodeBytes {
                file: bytes,
                bytes: Cow::Borrowed(first(
                    max_len,
                    bytes.get(usize::try_from(frame.address).ok()?..)?,
                )),
            }),
            CodeSource::Kernel(code) => Some(CodeBytes {
                file: &code.header,
                bytes: self.code_as_of(order, frame.ip, first(max_len, code.at(frame.ip)?)),
            }),
        }
    }

    /// The address of `frame` in the object's own address space, as printed by disassemblers: for
    /// mapped files the virtual address, otherwise [`Frame::address`].
    #[must_use]
    pub fn object_address(&self, frame: &Frame) -> u64 {
        let layout = self.layout_of(frame);
        let address = layout.and_then(|layout| layout.address(frame.address));
        address.unwrap_or(frame.address)
    }

    /// The code sections in the file of `frame`, as ranges of [`Frame::address`]; `None` without
    /// such a file or sections.
    #[must_use]
    pub fn code_sections(&self, frame: &Frame) -> Option<&[Range<u64>]> {
        let sections = self.layout_of(frame)?.sections();
        (!sections.is_empty()).then_some(sections)
    }

    /// The frame at `address` in the address space of `frame`'s object (see [`Resolver::object_address`]); for a kernel address
    /// without a symbol in this object, the frame in the object that contains the address. `None` if `frame` has no mapping, or
    /// if `address` is outside of the file.
    #[must_use]
    pub fn frame_in_object(&self, frame: &Frame, address: u64) -> Option<Frame> {
        let target = match self.layout_of(frame) {
            Some(layout) => layout.offset(address)?,
            None => address,
        };
        let distance = target.wrapping_sub(frame.address);
        let ip = frame.ip.wrapping_add(distance);
        let in_mapping = self.frame_in_mapping(frame.mapping?, ip, frame.level);
        // Kernel and modules are at separate addresses, and code of one may refer to another.
        if frame.level != Level::Kernel || in_mapping.symbol.is_some() {
            return Some(in_mapping);
        }
        // Kernel mappings do not depend on the process; those at the end of the recording are used.
        let kernel_at_end = AddressContext {
            machine: Machine::Host,
            pid: 0,
            order: Order::MAX,
        };
        Some(self.locate(kernel_at_end, CpuMode::Kernel, ip))
    }

    /// The layout of the file with the code of `frame`.
    fn layout_of(&self, frame: &Frame) -> Option<&CodeLayout> {
        match self.code_of(frame)? {
            CodeSource::File { bytes, layout } if self.jit_function_at(frame).is_none() => {
                Some(layout.get_or_init(|| CodeLayout::of(bytes)))
            }
            _ => None,
        }
    }

    /// Returns the kernel's `code` at `address` as it was just before `order`; a copy if the kernel has modified it.
    fn code_as_of<'r>(&self, order: Order, address: u64, code: &'r [u8]) -> Cow<'r, [u8]> {
        let modified = self.world().code_at(order, address, code);
        modified.map_or(Cow::Borrowed(code), Cow::Owned)
    }
}

/// The first `max_len` bytes, or all if there are fewer.
pub(crate) fn first(max_len: usize, bytes: &[u8]) -> &[u8] {
    bytes.get(..max_len).unwrap_or(bytes)
}
