//! Stacks with frame names, for flame graphs and folded stacks.

use std::ops::Range;

use rperf_replay::{DsoKind, World};
use rperf_resolve::Level;

use crate::histogram::ColumnSum;
use crate::keys::CodeSite;
use crate::names::RecordingNames;
use crate::stacks::MergedStacks;

/// The stacks of one event, each with the sum of its samples.
#[derive(Debug, Default)]
pub struct NamedStacks {
    /// The frames to which [`StackView::frames`] refers; several can have the same name.
    pub names: Vec<NamedFrame>,
    stacks: Vec<NamedStack>,
    /// The frames of all stacks, one stack after the other, as indices in `names`.
    frames: Vec<u32>,
}

/// The name of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFrame {
    /// The function; if unknown, the name of the object in brackets, or `[unknown]`.
    pub name: String,
    /// Type of the code.
    pub origin: CodeOrigin,
}

/// Type of the code at a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeOrigin {
    /// User code that is neither inlined nor JIT-compiled, or unknown code.
    User,
    /// A kernel, the host's or a guest's.
    Kernel,
    /// An inlined function, contained in the next outer frame.
    Inlined,
    /// Code without a file: JIT-compiled, named by a perf map or a jitdump if there is one.
    Jit,
}

/// One stack of a task.
#[derive(Debug)]
struct NamedStack {
    comm: Option<Box<str>>,
    pid: u32,
    tid: u32,
    /// Range in [`NamedStacks::frames`].
    frames: Range<usize>,
    sum: ColumnSum,
}

/// A stack of a task, returned by [`NamedStacks::iter`].
#[derive(Debug, Clone, Copy)]
pub struct StackView<'a> {
    /// The task's name, if the sort order has the key `comm` or `comm_nodigit`.
    pub comm: Option<&'a str>,
    /// The process, if the sort order has one of the keys `pid`, `tid` and `tgid`; otherwise 0.
    pub pid: u32,
    /// The thread, if the sort order has one of the keys `pid`, `tid` and `tgid`; otherwise 0.
    pub tid: u32,
    /// Indices in [`NamedStacks::names`], in call graph order. Without callchains, only the
    /// sampled location.
    pub frames: &'a [u32],
    /// Sum of its samples.
    pub sum: ColumnSum,
}

impl NamedStacks {
    /// Returns all stacks, unordered. Threads fold parts of the recording in parallel: a stack that occurs in several parts may
    /// be returned several times.
    pub fn iter(&self) -> impl Iterator<Item = StackView<'_>> {
        self.stacks.iter().map(|stack| StackView {
            comm: stack.comm.as_deref(),
            pid: stack.pid,
            tid: stack.tid,
            frames: &self.frames[stack.frames.clone()],
            sum: stack.sum,
        })
    }

    pub(crate) fn new(
        merged: &MergedStacks,
        callchains: bool,
        world: &World,
        recording_names: &dyn RecordingNames,
    ) -> Self {
        let named_frame = |site: &CodeSite| NamedFrame {
            name: name(site, recording_names),
            origin: origin(site, world, recording_names),
        };
        let mut named = Self {
            names: merged.sites.iter().map(named_frame).collect(),
            ..Self::default()
        };
        for stack in &merged.stacks {
            let start = named.frames.len();
            match callchains {
                true => named.frames.extend_from_slice(merged.frames(stack)),
                false => named.frames.push(stack.leaf),
            }
            let context = merged.contexts[stack.context as usize];
            named.stacks.push(NamedStack {
                comm: context.comm.map(|comm| recording_names.comm(comm).into()),
                pid: context.thread.pid,
                tid: context.thread.tid,
                frames: start..named.frames.len(),
                sum: stack.weight.sum(),
            });
        }
        named
    }
}

fn name(site: &CodeSite, recording_names: &dyn RecordingNames) -> String {
    match (site.symbol, site.dso) {
        (Some(symbol), _) => recording_names.symbol(symbol).to_owned(),
        // Names such as `[kernel.kallsyms]`, `[vdso]` and `[JIT] tid 7` already have brackets.
        (None, Some(dso)) if recording_names.dso(dso).starts_with('[') => {
            recording_names.dso(dso).to_owned()
        }
        (None, Some(dso)) => format!("[{}]", recording_names.dso(dso)),
        (None, None) => "[unknown]".to_owned(),
    }
}

fn origin(site: &CodeSite, world: &World, recording_names: &dyn RecordingNames) -> CodeOrigin {
    let is_inlined = |symbol| recording_names.is_inlined(symbol);
    let kind = site.dso.map(|dso| world.dso(dso).kind);
    match (site.level, kind) {
        _ if site.symbol.is_some_and(is_inlined) => CodeOrigin::Inlined,
        (Some(Level::Kernel | Level::GuestKernel), _) => CodeOrigin::Kernel,
        (_, Some(DsoKind::PerfMap(_))) => CodeOrigin::Jit,
        _ => CodeOrigin::User,
    }
}
