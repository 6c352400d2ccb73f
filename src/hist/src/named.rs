//! Unique stacks with the names of their frames, for flame graphs and folded text.

use std::ops::Range;

use rperf_replay::{DsoKind, World};
use rperf_resolve::Level;

use crate::histogram::Sum;
use crate::keys::Site;
use crate::names::Names;
use crate::stacks::Layout;

/// The unique stacks of one event.
#[derive(Debug, Default)]
pub struct NamedStacks {
    /// The places that frames are at.
    pub places: Vec<NamedPlace>,
    stacks: Vec<NamedStack>,
    frames: Vec<u32>,
}

/// A place in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPlace {
    /// The function; where none is known, the short name of the object in brackets, or `[unknown]`.
    pub name: String,
    /// What code it is of.
    pub origin: Origin,
}

/// What code a place is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// User space, or not known.
    User,
    /// A kernel, the host's or a guest's.
    Kernel,
    /// A function that the next outer frame contains.
    Inlined,
    /// Compiled at run time, named by a perf map or a jitdump.
    Jit,
}

/// One unique stack.
#[derive(Debug)]
struct NamedStack {
    comm: Option<Box<str>>,
    pid: u32,
    tid: u32,
    frames: Range<usize>,
    sum: Sum,
}

/// One unique stack, as [`NamedStacks::iter`] shows it.
#[derive(Debug, Clone, Copy)]
pub struct StackView<'a> {
    /// What the task was called, where the options have the key `comm`.
    pub comm: Option<&'a str>,
    /// The process, where the options have the keys `pid` or `tid`.
    pub pid: u32,
    /// The thread, under the same condition.
    pub tid: u32,
    /// Places in [`NamedStacks::places`], in the order of the options' call graphs. Events without callchains have the one
    /// that the sample fell on.
    pub frames: &'a [u32],
    /// Its samples and their events.
    pub sum: Sum,
}

impl NamedStacks {
    /// All stacks, in no order; one that several parts of the recording have is there several times.
    pub fn iter(&self) -> impl Iterator<Item = StackView<'_>> {
        self.stacks.iter().map(|stack| StackView {
            comm: stack.comm.as_deref(),
            pid: stack.pid,
            tid: stack.tid,
            frames: &self.frames[stack.frames.clone()],
            sum: stack.sum,
        })
    }

    pub(crate) fn new(layout: &Layout, callchains: bool, world: &World, names: &dyn Names) -> Self {
        let place = |site: &Site| NamedPlace {
            name: name(site, names),
            origin: origin(site, world, names),
        };
        let mut named = Self {
            places: layout.sites.iter().map(place).collect(),
            ..Self::default()
        };
        for stack in &layout.stacks {
            let start = named.frames.len();
            match callchains {
                true => named.frames.extend_from_slice(layout.frames(stack)),
                false => named.frames.push(stack.leaf),
            }
            let context = layout.contexts[stack.context as usize];
            named.stacks.push(NamedStack {
                comm: context.comm.map(|comm| names.comm(comm).into()),
                pid: context.thread.pid,
                tid: context.thread.tid,
                frames: start..named.frames.len(),
                sum: stack.weight.sum(),
            });
        }
        named
    }
}

fn name(site: &Site, names: &dyn Names) -> String {
    match (site.symbol, site.dso) {
        (Some(symbol), _) => names.symbol(symbol).to_owned(),
        // Names of the kernel's code and of what has no file are in brackets already.
        (None, Some(dso)) if names.dso(dso).starts_with('[') => names.dso(dso).to_owned(),
        (None, Some(dso)) => format!("[{}]", names.dso(dso)),
        (None, None) => "[unknown]".to_owned(),
    }
}

fn origin(site: &Site, world: &World, names: &dyn Names) -> Origin {
    let is_inlined = |symbol| names.is_inlined(symbol);
    let kind = site.dso.map(|dso| world.dso(dso).kind);
    match (site.level, kind) {
        _ if site.symbol.is_some_and(is_inlined) => Origin::Inlined,
        (Some(Level::Kernel | Level::GuestKernel), _) => Origin::Kernel,
        (_, Some(DsoKind::PerfMap(_))) => Origin::Jit,
        _ => Origin::User,
    }
}
