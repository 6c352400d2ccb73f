//! The functions of a text, by object.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::frame::TextFrame;
use super::kernel::KernelCode;

/// The end of low addresses, 4 GiB. A low address is taken for an offset in its object, or an address in a program that is not
/// position-independent.
pub(super) const LOW_END: u64 = 1 << 32;
/// The first address of objects that must be moved, because another object has the same low addresses. It is above the
/// addresses of 32-bit programs and below the usual addresses of 64-bit programs.
const FIRST_BASE: u64 = 0x1000_0000_0000;
const PAGE: u64 = 0x1000;
/// Alignment of functions whose place in the object is unknown and therefore chosen.
const ALIGN: u64 = 16;
/// Name of the object for functions without an object.
const NO_OBJECT: &str = "unknown";

/// An object of user space.
#[derive(Debug, Default)]
pub(super) struct UserObject<'t> {
    pub(super) name: &'t str,
    /// Functions at low addresses: the start, the name, and the size as far as known.
    placed: BTreeMap<u64, (&'t str, u64)>,
    /// Names of functions with unknown starts, by each low address seen in them.
    marks: BTreeMap<u64, &'t str>,
    /// Functions at other addresses, and inlined functions: the name, and the size as far as known.
    named: BTreeMap<&'t str, u64>,
    /// The range of low addresses, extended to whole pages; empty if there are none.
    pub(super) low: Range<u64>,
    /// The offset by which low addresses are moved: 0 unless an earlier object has some of the same addresses.
    pub(super) base: u64,
    /// Offsets of `named` in the object.
    named_offsets: HashMap<&'t str, u64>,
}

/// All functions of a text.
#[derive(Debug, Default)]
pub(super) struct Objects<'t> {
    pub(super) user: Vec<UserObject<'t>>,
    /// Indices in `user` by name.
    indices: HashMap<&'t str, usize>,
    pub(super) kernel: KernelCode<'t>,
}

/// The owner of a frame's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeOwner {
    Kernel,
    /// Index of the object.
    User(usize),
    /// Neither function nor object is known.
    Unknown,
}

impl<'t> Objects<'t> {
    /// Adds the functions of a sample's frames.
    pub(super) fn add(&mut self, frames: &[TextFrame<'t>]) {
        for (number, frame) in frames.iter().enumerate() {
            match self.add_owner(frames, number) {
                CodeOwner::Kernel if frame.is_inlined => self.kernel.add_inlined(frame),
                CodeOwner::Kernel => self.kernel.add(frame),
                CodeOwner::User(object) => {
                    if let Some(object) = self.user.get_mut(object) {
                        object.add(frame);
                    }
                }
                CodeOwner::Unknown => {}
            }
        }
    }

    /// Returns the owner of a frame; adds an object that is new.
    fn add_owner(&mut self, frames: &[TextFrame<'t>], number: usize) -> CodeOwner {
        let name = match owner_name(frames, number) {
            None => return CodeOwner::Unknown,
            Some(None) => return CodeOwner::Kernel,
            Some(Some(name)) => name,
        };
        let next = self.user.len();
        let object = *self.indices.entry(name).or_insert(next);
        if object == next {
            self.user.push(UserObject {
                name,
                ..UserObject::default()
            });
        }
        CodeOwner::User(object)
    }

    /// Returns the owner of a frame that was added before.
    pub(super) fn owner(&self, frames: &[TextFrame<'t>], number: usize) -> CodeOwner {
        match owner_name(frames, number) {
            None => CodeOwner::Unknown,
            Some(None) => CodeOwner::Kernel,
            Some(Some(name)) => match self.indices.get(name) {
                Some(object) => CodeOwner::User(*object),
                None => CodeOwner::Unknown,
            },
        }
    }

    /// Gives each object its addresses, and each function a place in its object.
    pub(super) fn finish(&mut self) {
        let mut base = FIRST_BASE;
        let mut taken: Vec<Range<u64>> = Vec::new();
        for object in &mut self.user {
            let low = object.low.clone();
            let is_separate = |other: &Range<u64>| other.end <= low.start || low.end <= other.start;
            if taken.iter().all(is_separate) {
                taken.push(low);
            } else {
                object.base = base;
                base += low.end + PAGE;
            }
            object.finish();
        }
        self.kernel.finish();
    }
}

/// The name of a frame's object: `None` if neither function nor object is known, `Some(None)` for the kernel. An inlined
/// function has the object of the function that contains it.
fn owner_name<'t>(frames: &[TextFrame<'t>], number: usize) -> Option<Option<&'t str>> {
    let (_, from) = frames.split_at_checked(number)?;
    let frame = from.first()?;
    let container = from.iter().find(|frame| !frame.is_inlined);
    let object = container.and_then(|container| container.object);
    match (object, frame.symbol) {
        (None, None) => None,
        _ if container.unwrap_or(frame).is_kernel() => Some(None),
        (Some(object), _) => Some(Some(object)),
        (None, Some(_)) => Some(Some(NO_OBJECT)),
    }
}

impl<'t> UserObject<'t> {
    fn add(&mut self, frame: &TextFrame<'t>) {
        let is_low = frame.address < LOW_END && !frame.is_inlined;
        if is_low {
            let page = frame.address & !(PAGE - 1);
            self.low = match self.low.is_empty() {
                true => page..page + PAGE,
                false => page.min(self.low.start)..self.low.end.max(page + PAGE),
            };
        }
        let Some(symbol) = frame.symbol else {
            return;
        };
        // The function contains the byte at the frame's offset.
        let known_size = frame.offset.unwrap_or_default().saturating_add(1);
        match frame.offset {
            Some(offset) if is_low => {
                let (_, size) = self
                    .placed
                    .entry(frame.address - offset)
                    .or_insert((symbol, known_size));
                *size = known_size.max(*size);
            }
            None if is_low => {
                self.marks.insert(frame.address, symbol);
            }
            _ => {
                let size = self.named.entry(symbol).or_insert(known_size);
                *size = known_size.max(*size);
            }
        }
    }

    /// Moves `marks` to `placed`, limits each function in `placed` to the start of the next one, and gives each function in
    /// `named` a place: its offset in the object.
    fn finish(&mut self) {
        self.place_marks();
        let starts: Vec<u64> = self.placed.keys().copied().collect();
        for ((start, (_, size)), next) in self.placed.iter_mut().zip(starts.iter().skip(1)) {
            *size = (*size).min(next - start);
        }
        let by_name = self.placed.iter().map(|(start, (name, _))| (*name, *start));
        let by_name: HashMap<&str, u64> = by_name.collect();
        let mut next_free = LOW_END;
        for (name, size) in &self.named {
            // A function that is also in `placed`, and large enough there, has that place; any other one gets `next_free`.
            let low_place = by_name.get(name).copied();
            let fits = |start: &u64| self.placed.get(start).is_some_and(|(_, room)| room >= size);
            let place = low_place.filter(fits).unwrap_or_else(|| {
                let place = next_free;
                // Damaged text can have functions of any size; past the end of the address space they share a place.
                next_free =
                    next_free.saturating_add(*size).saturating_add(ALIGN - 1) / ALIGN * ALIGN;
                place
            });
            self.named_offsets.insert(*name, place);
        }
    }

    /// Moves `marks` to `placed`: in ascending order, successive addresses with the same function name are one piece of code.
    fn place_marks(&mut self) {
        // Start, name and end of the current piece.
        let mut run: Option<(u64, &'t str, u64)> = None;
        for (address, name) in std::mem::take(&mut self.marks) {
            match &mut run {
                Some((_, known, end)) if *known == name => *end = address + 1,
                _ => {
                    if let Some((start, known, end)) = run.replace((address, name, address + 1)) {
                        self.placed.entry(start).or_insert((known, end - start));
                    }
                }
            }
        }
        if let Some((start, known, end)) = run {
            self.placed.entry(start).or_insert((known, end - start));
        }
    }

    /// The object's name in mappings. Names of anonymous memory (except the vdso), and names that begin with `/tmp/perf-`, are
    /// changed if functions are known: otherwise readers of the recording would look up the functions in a perf map, not in the
    /// symbol file written for the object.
    pub(super) fn recorded_name(&self) -> &'t str {
        if self.placed.is_empty() && self.named.is_empty() || self.is_vdso() {
            return self.name;
        }
        match self.name.strip_prefix("/tmp/") {
            Some(map) if map.starts_with("perf-") => map,
            None if self.name.starts_with(['[']) || self.name.starts_with("//") => {
                self.name.trim_matches(['[', ']', '/'])
            }
            _ => self.name,
        }
    }

    pub(super) fn is_vdso(&self) -> bool {
        self.name == "[vdso]"
    }

    /// The offset in the object of a function in `named`.
    pub(super) fn function_offset(&self, symbol: &str) -> Option<u64> {
        self.named_offsets.get(symbol).copied()
    }

    /// The known size in bytes of a function in `named`; 1 for any other function.
    pub(super) fn function_size(&self, symbol: &str) -> u64 {
        self.named.get(symbol).copied().unwrap_or(1)
    }

    /// The functions: offset in the object, size and name.
    pub(super) fn functions(&self) -> Vec<(u64, u64, &'t str)> {
        let placed = self.placed.iter();
        let placed = placed.map(|(start, (name, size))| (*start, *size, *name));
        // A place below `LOW_END` is that of a function in `placed`.
        let named = self.named.iter().filter_map(|(name, size)| {
            let place = self
                .function_offset(name)
                .filter(|place| *place >= LOW_END)?;
            Some((place, *size, *name))
        });
        placed.chain(named).collect()
    }
}
