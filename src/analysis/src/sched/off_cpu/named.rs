//! The names of the frames of stacks.

use rperf_replay::DsoKind;
use rperf_resolve::{Level, Resolver};
use rustc_hash::FxHashMap;

use super::{OffCpuTable, StackFrame};

/// The stacks of an [`OffCpuTable`], those of context switches and wakeups, with names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedSwitchStacks {
    frames: Vec<NamedFrame>,
    /// Indices into `frames`, by stack.
    stacks: Vec<Vec<usize>>,
}

/// A frame with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFrame {
    /// The function; if it is unknown, the object in brackets; `[unknown]` if the object is unknown, too.
    pub name: String,
    /// The type of its code.
    pub code: FrameCode,
}

/// The type of the code of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameCode {
    /// Code of user space that is not from a perf map, code of a hypervisor, or unknown code.
    User,
    /// The kernel, or that of a guest.
    Kernel,
    /// JIT-compiled code, named by a perf map.
    Jit,
}

impl NamedSwitchStacks {
    /// Returns the stacks of a table, with names from `resolver`.
    #[must_use]
    pub fn new(table: &OffCpuTable, resolver: &Resolver<'_>) -> Self {
        let mut named = Self::default();
        let mut indices: FxHashMap<StackFrame, usize> = FxHashMap::default();
        for stack in &table.stacks {
            let stack = stack.iter().map(|frame| {
                *indices.entry(*frame).or_insert_with(|| {
                    named.frames.push(NamedFrame::new(frame, resolver));
                    named.frames.len() - 1
                })
            });
            let stack = stack.collect();
            named.stacks.push(stack);
        }
        named
    }

    /// Returns the frames of a stack, innermost first; none if there is no such stack.
    pub fn frames(&self, stack: usize) -> impl DoubleEndedIterator<Item = &NamedFrame> {
        let stack = self.stacks.get(stack).map_or(&[][..], Vec::as_slice);
        stack.iter().filter_map(|index| self.frames.get(*index))
    }
}

impl NamedFrame {
    fn new(frame: &StackFrame, resolver: &Resolver<'_>) -> Self {
        let dso = frame.dso.map(|dso| resolver.world().dso(dso));
        let name = match (frame.symbol, dso) {
            (Some(symbol), _) => resolver.symbol_name(symbol).to_owned(),
            // The kernel and objects without a file have names in brackets.
            (None, Some(dso)) if dso.short_name.starts_with('[') => dso.short_name.clone(),
            (None, Some(dso)) => format!("[{}]", dso.short_name),
            (None, None) => "[unknown]".to_owned(),
        };
        let code = match (frame.level, dso.map(|dso| dso.kind)) {
            (Level::Kernel | Level::GuestKernel, _) => FrameCode::Kernel,
            (_, Some(DsoKind::PerfMap(_))) => FrameCode::Jit,
            _ => FrameCode::User,
        };
        Self { name, code }
    }
}
