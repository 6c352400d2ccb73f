//! User frames of samples that carry registers and a copy of the stack (`--call-graph dwarf`), put behind the kernel's.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use rperf_replay::{DsoKind, Fold, Machine, Sample, World};
use rperf_unwind::{
    AddressSpace, Arch, Cause, Code, Ending, ModuleId, Outcome, Registers, Snapshot, Stack,
    Unwinder,
};
use rperf_wire::{CpuMode, Endian, PERF_CONTEXT_USER, RegsAbi, U64s};
use rustc_hash::FxHashMap;

use crate::call_stack;
use crate::chain;
use crate::frame::{Level, Place};
use crate::resolver::Resolver;

/// `PROT_EXEC` of mmap(2).
const PROT_EXEC: u32 = 4;

/// Unwinds the user stacks of a recording's samples before they are folded or rendered. Shared by all workers.
pub struct UserStacks<'r, 'w> {
    resolver: &'r Resolver<'w>,
    options: StackOptions,
    found: Counts,
}

/// What unwinding has to know of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackOptions {
    /// The name of the architecture that it was made on, as uname(2) says it.
    pub machine: String,
    /// Byte order of its records.
    pub endian: Endian,
    /// Frames of the kernel, and again of user space, that are kept of each callchain; no other limit applies to
    /// the chains that are passed on. `None` leaves all samples as they are.
    pub limit: Option<usize>,
    /// Whether the kernel's frames that are kept are the outermost, as in perf where graphs begin with callers.
    pub outermost: bool,
    /// Whether branch stacks are records of calls, which take the place of user frames (`--call-graph lbr`).
    pub calls: bool,
}

#[derive(Default)]
struct Counts {
    stacks: AtomicU64,
    guessed: AtomicU64,
    deep: AtomicU64,
    /// Rare, so one lock for all is enough.
    cut: Mutex<FxHashMap<(Cause, Option<ModuleId>), u64>>,
}

/// What became of the user stacks of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackSummary {
    /// Samples that had a copy of a user stack.
    pub stacks: u64,
    /// Those with frames that rest on frame pointers alone.
    pub guessed: u64,
    /// Those that have as many frames as are kept, or more.
    pub deep: u64,
    /// Those that lack frames, by cause.
    pub cut: Vec<CutStacks>,
    /// Whether these end in a frame that says so.
    pub marked: bool,
}

/// Stacks that lack frames for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutStacks {
    /// The reason.
    pub cause: Cause,
    /// How many there are.
    pub stacks: u64,
    /// The name of the object in which most of them end, where the reason is an object's.
    pub object: Option<String>,
}

impl StackSummary {
    /// Stacks that lack frames.
    #[must_use]
    pub fn incomplete(&self) -> u64 {
        self.cut.iter().map(|cut| cut.stacks).sum()
    }

    /// Whether some would be whole if more of them had been copied.
    #[must_use]
    pub fn is_copied_too_short(&self) -> bool {
        self.cut.iter().any(|cut| cut.cause == Cause::DumpEnd)
    }

    /// Adds what became of other stacks.
    pub fn merge(&mut self, other: Self) {
        self.stacks += other.stacks;
        self.guessed += other.guessed;
        self.deep += other.deep;
        self.marked |= other.marked;
        for cut in other.cut {
            match self.cut.iter_mut().find(|known| known.cause == cut.cause) {
                Some(known) => known.stacks += cut.stacks,
                None => self.cut.push(cut),
            }
        }
    }
}

/// What a worker keeps between samples.
#[derive(Default)]
pub struct StackScratch {
    unwinder: Unwinder,
    addresses: Vec<u64>,
    chain: Vec<u8>,
}

impl StackScratch {
    pub(crate) fn unwinder(&mut self) -> &mut Unwinder {
        &mut self.unwinder
    }

    /// Room for a callchain.
    pub(crate) fn empty_chain(&mut self) -> &mut Vec<u8> {
        self.chain.clear();
        &mut self.chain
    }
}

impl<'r, 'w> UserStacks<'r, 'w> {
    /// User stacks in the processes and objects of `resolver`.
    #[must_use]
    pub fn new(resolver: &'r Resolver<'w>, options: StackOptions) -> Self {
        Self {
            resolver,
            options,
            found: Counts::default(),
        }
    }

    /// `inner`, which is handed whole callchains.
    pub fn fold<F: Fold>(&self, inner: F) -> UnwoundFold<'_, 'r, 'w, F> {
        UnwoundFold {
            stacks: self,
            scratch: StackScratch::default(),
            inner,
        }
    }

    /// What became of all stacks so far.
    #[must_use]
    pub fn summary(&self) -> StackSummary {
        let counts = self.found.cut.lock();
        let counts = counts.unwrap_or_else(PoisonError::into_inner);
        let cut = Cause::ALL.into_iter().filter_map(|cause| {
            let of_cause = counts.iter().filter(|((other, _), _)| *other == cause);
            let stacks = of_cause.clone().map(|(_, stacks)| stacks).sum();
            let objects = of_cause.filter_map(|((_, module), stacks)| {
                let dso = self.resolver.dso_of((*module)?)?;
                Some((stacks, &self.resolver.world().dso(dso).name))
            });
            (stacks > 0).then_some(CutStacks {
                cause,
                stacks,
                object: objects.max().map(|(_, name)| name.clone()),
            })
        });
        StackSummary {
            stacks: self.found.stacks.load(Ordering::Relaxed),
            guessed: self.found.guessed.load(Ordering::Relaxed),
            deep: self.found.deep.load(Ordering::Relaxed),
            cut: cut.collect(),
            marked: self.resolver.marks_cut_stacks(),
        }
    }

    /// The callchain of `sample` with its user frames, cut to the limit; `None` where it is right as it stands.
    pub fn chain<'s>(
        &self,
        sample: &Sample<'_>,
        scratch: &'s mut StackScratch,
    ) -> Option<U64s<'s>> {
        let limit = self.options.limit?;
        let recorded = sample.wire.callchain?;
        if sample.wire.stack_user.is_none() {
            let endian = self.options.endian;
            if self.options.calls
                && call_stack::write(sample, limit, endian, &mut scratch.chain).is_some()
            {
                return Some(U64s::new(&scratch.chain, endian));
            }
            return self.without_copy(sample, limit, scratch);
        }
        if let Some(cause) = self.unwind(sample, limit, scratch) {
            scratch.addresses.extend(self.resolver.mark(cause));
        }
        let has_user_frames = !scratch.addresses.is_empty();
        if !has_user_frames && recorded.len() <= limit {
            return None;
        }
        let chain = &mut scratch.chain;
        chain.clear();
        // A corrupted part of the kernel's does not touch the user's.
        if self.options.outermost {
            chain::write_outermost(recorded, limit, chain);
        } else {
            let kept = chain::bytes_within(recorded, limit).unwrap_or_default();
            chain.extend_from_slice(recorded.as_bytes().get(..kept).unwrap_or_default());
        }
        if has_user_frames {
            for word in std::iter::once(&PERF_CONTEXT_USER).chain(&scratch.addresses) {
                chain.extend_from_slice(&match self.options.endian {
                    Endian::Little => word.to_le_bytes(),
                    Endian::Big => word.to_be_bytes(),
                });
            }
        }
        Some(U64s::new(chain, self.options.endian))
    }

    pub(crate) fn resolver(&self) -> &'r Resolver<'w> {
        self.resolver
    }

    pub(crate) fn endian(&self) -> Endian {
        self.options.endian
    }

    /// The architecture of a task whose registers have this width.
    pub(crate) fn arch_of(&self, abi: RegsAbi) -> Option<Arch> {
        Arch::of_task(&self.options.machine, abi)
    }

    /// Puts the user frames of `sample` into the scratch; says why some are missing, if so.
    fn unwind(
        &self,
        sample: &Sample<'_>,
        limit: usize,
        scratch: &mut StackScratch,
    ) -> Option<Cause> {
        scratch.addresses.clear();
        let (Some(registers), Some(stack)) = (&sample.wire.regs_user, &sample.wire.stack_user)
        else {
            return None;
        };
        // Threads of the kernel have neither; and whose user space would it be with a guest?
        if registers.values.is_empty() || sample.machine() != Machine::Host {
            return None;
        }
        self.found.stacks.fetch_add(1, Ordering::Relaxed);
        let Some(arch) = self.arch_of(registers.abi) else {
            return self.cut(Cause::UnknownArch, None);
        };
        let Some(registers) = Registers::of_sample(arch, registers) else {
            return self.cut(Cause::NoStack, None);
        };
        if stack.bytes.is_empty() {
            return self.cut(Cause::NoStack, None);
        }
        let snapshot = Snapshot {
            arch,
            registers,
            stack: Stack {
                start: registers.stack_pointer(arch),
                bytes: stack.bytes,
                is_full: stack.bytes.len() >= stack.reserved,
                endian: self.options.endian,
            },
        };
        let space = Space::new(self.resolver, sample);
        let outcome = scratch
            .unwinder
            .unwind(&snapshot, &space, limit, &mut scratch.addresses);
        self.note(outcome)
    }

    /// Counts a stack; says why frames are missing, if so.
    fn note(&self, outcome: Outcome) -> Option<Cause> {
        if outcome.guessed > 0 {
            self.found.guessed.fetch_add(1, Ordering::Relaxed);
        }
        match outcome.ending {
            Ending::Cut { cause, module } => self.cut(cause, module),
            Ending::Limit => {
                self.found.deep.fetch_add(1, Ordering::Relaxed);
                None
            }
            Ending::Complete => None,
        }
    }

    fn cut(&self, cause: Cause, module: Option<ModuleId>) -> Option<Cause> {
        let counts = self.found.cut.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        *counts.entry((cause, module)).or_default() += 1;
        Some(cause)
    }
}

/// The user space of one sample.
pub(crate) struct Space<'r, 'w> {
    resolver: &'r Resolver<'w>,
    at: Place,
    epoch: u64,
}

impl<'r, 'w> Space<'r, 'w> {
    pub(crate) fn new(resolver: &'r Resolver<'w>, sample: &Sample<'_>) -> Self {
        let at = Place::of(sample);
        let epoch = resolver.world().epoch(at.machine, at.pid, at.order).user;
        Self {
            resolver,
            at,
            epoch,
        }
    }
}

impl AddressSpace for Space<'_, '_> {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn code_at(&self, address: u64) -> Option<Code<'_>> {
        let world = self.resolver.world();
        let Place {
            machine,
            pid,
            order,
        } = self.at;
        let id = world.lookup(machine, CpuMode::User, pid, order, address)?;
        let mapping = world.mapping(id);
        if mapping.prot & PROT_EXEC == 0 {
            return None;
        }
        if matches!(world.dso(mapping.dso).kind, DsoKind::PerfMap(_)) {
            let frame = self.resolver.in_mapping(id, address, Level::User);
            if let Some((function, offset)) = self.resolver.made_at(&frame) {
                return Some(function.frames(offset));
            }
        }
        Some(Code {
            module: ModuleId(mapping.dso.0),
            offset: mapping.object_address(address),
            object: self.resolver.frames(mapping.dso),
        })
    }
}

/// Unwinds samples before they are folded; see [`UserStacks::fold`].
pub struct UnwoundFold<'s, 'r, 'w, F> {
    stacks: &'s UserStacks<'r, 'w>,
    scratch: StackScratch,
    inner: F,
}

impl<F> UnwoundFold<'_, '_, '_, F> {
    /// What was folded.
    pub fn into_inner(self) -> F {
        self.inner
    }
}

impl<F: Fold> Fold for UnwoundFold<'_, '_, '_, F> {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        let Some(chain) = self.stacks.chain(sample, &mut self.scratch) else {
            return self.inner.sample(world, sample);
        };
        let mut complete = sample.clone();
        complete.wire.callchain = Some(chain);
        self.inner.sample(world, &complete);
    }

    fn merge(&mut self, later: Self) {
        self.inner.merge(later.inner);
    }
}
