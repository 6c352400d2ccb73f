//! Completes the callchains of samples: unwinds user stacks from registers and a stack copy
//! (`--call-graph dwarf`) and appends the frames to those of the kernel. Without a stack copy, takes the user frames from
//! LBR call stacks, or inserts the caller in the link register of 64-bit Arm.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use rperf_replay::{DsoKind, Fold, Machine, Sample, World};
use rperf_unwind::{
    AddressSpace, Arch, Ending, ModuleId, ObjectOffset, Registers, Snapshot, StackBytes,
    TruncationCause, UnwindOutcome, Unwinder,
};
use rperf_wire::{
    Attr, BranchSampleType, CpuMode, Endian, PERF_CONTEXT_USER, PROT_EXEC, Regs, RegsAbi,
    SampleType, U64s,
};
use rustc_hash::FxHashMap;

use crate::call_stack;
use crate::chain;
use crate::frame::{AddressContext, Level};
use crate::leaf::LEAF_REGISTERS;
use crate::resolver::Resolver;

/// Completes the callchains of a recording's samples before they are folded or rendered. Shared by
/// all workers.
pub struct UserStacks<'r, 'w> {
    resolver: &'r Resolver<'w>,
    options: StackOptions,
    counts: StackCounts,
}

/// The registers of a thread and the top of its stack, read from the live thread instead of a sample.
#[derive(Debug, Clone, Copy)]
pub struct UnsampledStack<'a> {
    /// Machine, process and time.
    pub at: AddressContext,
    /// The registers.
    pub registers: Regs<'a>,
    /// The bytes from the stack pointer upwards.
    pub bytes: &'a [u8],
}

/// Options of completing callchains, and the properties of the recording that it depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackOptions {
    /// Architecture of the recording machine, from uname(2).
    pub machine: String,
    /// Byte order of its records.
    pub endian: Endian,
    /// Maximum number of frames. With a stack copy, it applies to the kernel frames and, separately, to the unwound user
    /// frames; without one, to all recorded frames together, but neither to the calls of LBR call stacks nor to an inserted
    /// caller. No other limit applies to the resulting chains. `None` leaves recorded chains unchanged.
    pub limit: Option<usize>,
    /// Whether the outermost kernel frames of a chain with more than `limit` of them are kept instead of the innermost,
    /// as in perf if graphs start with callers.
    pub keeps_outermost: bool,
    /// Whether branch stacks are call stacks that replace user frames (`--call-graph lbr`).
    pub has_lbr_call_stacks: bool,
}

#[derive(Default)]
struct StackCounts {
    stacks: AtomicU64,
    guessed: AtomicU64,
    at_frame_limit: AtomicU64,
    /// Numbers of truncated stacks, by cause and the module in which they end. They are rare, so a single lock is sufficient.
    truncated: Mutex<FxHashMap<(TruncationCause, Option<ModuleId>), u64>>,
}

/// Statistics of unwinding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackSummary {
    /// Number of samples of the host with user registers and a stack copy, which may be empty.
    pub stacks: u64,
    /// Number of these samples in which some frames were found by heuristics, such as frame pointers.
    pub guessed: u64,
    /// Number of these samples that reached the limit of frames.
    pub at_frame_limit: u64,
    /// Truncated stacks by cause.
    pub truncated: Vec<TruncatedStacks>,
    /// Whether truncated stacks end in a marker frame.
    pub marked: bool,
}

/// Stacks truncated for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruncatedStacks {
    /// The reason.
    pub cause: TruncationCause,
    /// How many there are.
    pub stacks: u64,
    /// The object in which most of them end, if the reason is related to objects. After [`StackSummary::merge`], the object in
    /// the first of the merged summaries that has this cause.
    pub object: Option<String>,
}

impl StackSummary {
    /// Number of truncated stacks.
    #[must_use]
    pub fn truncated_count(&self) -> u64 {
        self.truncated
            .iter()
            .map(|truncated| truncated.stacks)
            .sum()
    }

    /// Whether some stacks are truncated because too few bytes of them were copied.
    #[must_use]
    pub fn is_copied_too_short(&self) -> bool {
        self.truncated
            .iter()
            .any(|truncated| truncated.cause == TruncationCause::DumpEnd)
    }

    /// Adds other statistics.
    pub fn merge(&mut self, other: Self) {
        self.stacks += other.stacks;
        self.guessed += other.guessed;
        self.at_frame_limit += other.at_frame_limit;
        self.marked |= other.marked;
        for truncated in other.truncated {
            match self
                .truncated
                .iter_mut()
                .find(|known| known.cause == truncated.cause)
            {
                Some(known) => known.stacks += truncated.stacks,
                None => self.truncated.push(truncated),
            }
        }
    }
}

/// State that a worker keeps between samples.
#[derive(Default)]
pub struct StackScratch {
    unwinder: Unwinder,
    /// The unwound user frames of the current sample.
    addresses: Vec<u64>,
    /// The completed callchain of the current sample.
    chain: Vec<u8>,
}

impl StackScratch {
    pub(crate) fn unwinder(&mut self) -> &mut Unwinder {
        &mut self.unwinder
    }

    /// A cleared buffer for a callchain.
    pub(crate) fn empty_chain(&mut self) -> &mut Vec<u8> {
        self.chain.clear();
        &mut self.chain
    }
}

/// Whether samples of an event carry data that completes their callchains: stack copies, LBR call stacks, or the link
/// register of 64-bit Arm.
#[must_use]
pub fn completes_callchains(attr: &Attr) -> bool {
    let required = SampleType::CALLCHAIN | SampleType::REGS_USER;
    let has_stack = attr.sample_type.contains(SampleType::STACK_USER);
    let has_link = attr.sample_regs_user == LEAF_REGISTERS;
    has_lbr_call_stacks(attr) || (attr.sample_type.contains(required) && (has_stack || has_link))
}

/// Whether the branch stacks of an event are LBR call stacks (`--call-graph lbr`).
#[must_use]
pub fn has_lbr_call_stacks(attr: &Attr) -> bool {
    let required = SampleType::CALLCHAIN | SampleType::BRANCH_STACK;
    let branches = attr.branch_sample_type;
    attr.sample_type.contains(required) && branches.contains(BranchSampleType::CALL_STACK)
}

impl<'r, 'w> UserStacks<'r, 'w> {
    /// Creates the completion of callchains for the processes and objects of `resolver`.
    #[must_use]
    pub fn new(resolver: &'r Resolver<'w>, options: StackOptions) -> Self {
        Self {
            resolver,
            options,
            counts: StackCounts::default(),
        }
    }

    /// Wraps `inner`, which gets complete callchains.
    pub fn fold<F: Fold>(&self, inner: F) -> UnwoundFold<'_, 'r, 'w, F> {
        UnwoundFold {
            stacks: self,
            scratch: StackScratch::default(),
            inner,
        }
    }

    /// Statistics so far.
    #[must_use]
    pub fn summary(&self) -> StackSummary {
        let counts = self.counts.truncated.lock();
        let counts = counts.unwrap_or_else(PoisonError::into_inner);
        let truncated = TruncationCause::ALL.into_iter().filter_map(|cause| {
            let of_cause = counts.iter().filter(|((other, _), _)| *other == cause);
            let stacks = of_cause.clone().map(|(_, stacks)| stacks).sum();
            let objects = of_cause.filter_map(|((_, module), stacks)| {
                let dso = self.resolver.dso_of((*module)?)?;
                Some((&*self.resolver.world().dso(dso).name, *stacks))
            });
            (stacks > 0).then_some(TruncatedStacks {
                cause,
                stacks,
                object: most_frequent(objects).map(str::to_owned),
            })
        });
        StackSummary {
            stacks: self.counts.stacks.load(Ordering::Relaxed),
            guessed: self.counts.guessed.load(Ordering::Relaxed),
            at_frame_limit: self.counts.at_frame_limit.load(Ordering::Relaxed),
            truncated: truncated.collect(),
            marked: self.resolver.marks_truncated_stacks(),
        }
    }

    /// The callchain of `sample` with user frames, shortened to [`StackOptions::limit`]; `None` if the
    /// recorded chain needs no change.
    pub fn chain<'s>(
        &self,
        sample: &Sample<'_>,
        scratch: &'s mut StackScratch,
    ) -> Option<U64s<'s>> {
        let limit = self.options.limit?;
        let recorded = sample.wire.callchain?;
        if sample.wire.stack_user.is_none() {
            let endian = self.options.endian;
            if self.options.has_lbr_call_stacks
                && call_stack::write(sample, limit, endian, &mut scratch.chain).is_some()
            {
                return Some(U64s::new(&scratch.chain, endian));
            }
            return self.chain_without_stack_copy(sample, limit, scratch);
        }
        if let Some(cause) = self.unwind(sample, limit, scratch) {
            scratch.addresses.extend(self.resolver.marker(cause));
        }
        let has_user_frames = !scratch.addresses.is_empty();
        if !has_user_frames && recorded.len() <= limit {
            return None;
        }
        let chain = &mut scratch.chain;
        chain.clear();
        // A corrupted kernel part is left out; the user part is kept.
        if self.options.keeps_outermost {
            chain::write_outermost(recorded, limit, chain);
        } else {
            let size = chain::bytes_within(recorded, limit).unwrap_or_default();
            chain.extend_from_slice(recorded.as_bytes().get(..size).unwrap_or_default());
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

    /// Returns the frame addresses of a thread that is not sampled, innermost first, at most `limit`. As in unwound callchains,
    /// all but the first are return addresses minus one, except for frames interrupted by a signal.
    #[must_use]
    pub fn frames(&self, copy: &UnsampledStack<'_>, limit: usize) -> Vec<u64> {
        let mut addresses = Vec::new();
        let Some(arch) = self.arch_of(copy.registers.abi) else {
            return addresses;
        };
        if let Some(registers) = Registers::of_sample(arch, &copy.registers) {
            let snapshot = Snapshot {
                arch,
                registers,
                stack: StackBytes {
                    start: registers.stack_pointer(arch),
                    bytes: copy.bytes,
                    // The copy is only the top of the stack.
                    may_continue: true,
                    endian: self.options.endian,
                },
            };
            let space = UserSpace::new(self.resolver, copy.at);
            Unwinder::new().unwind(&snapshot, &space, limit, &mut addresses);
        }
        addresses
    }

    pub(crate) fn resolver(&self) -> &'r Resolver<'w> {
        self.resolver
    }

    pub(crate) fn endian(&self) -> Endian {
        self.options.endian
    }

    /// The architecture of a task with this register ABI.
    pub(crate) fn arch_of(&self, abi: RegsAbi) -> Option<Arch> {
        Arch::of_task(&self.options.machine, abi)
    }

    /// Unwinds the user frames of `sample` into the scratch; returns the cause if some are missing.
    fn unwind(
        &self,
        sample: &Sample<'_>,
        limit: usize,
        scratch: &mut StackScratch,
    ) -> Option<TruncationCause> {
        scratch.addresses.clear();
        let (Some(registers), Some(stack)) = (&sample.wire.regs_user, &sample.wire.stack_user)
        else {
            return None;
        };
        // Kernel threads have no user registers, and unwinding of guests is not supported.
        if registers.values.is_empty() || sample.machine() != Machine::Host {
            return None;
        }
        self.counts.stacks.fetch_add(1, Ordering::Relaxed);
        let Some(arch) = self.arch_of(registers.abi) else {
            return self.count_truncated(TruncationCause::UnknownArch, NO_MODULE);
        };
        // Without the instruction pointer or the stack pointer, the copy cannot be used: the cause is that of a missing copy.
        let Some(registers) = Registers::of_sample(arch, registers) else {
            return self.count_truncated(TruncationCause::NoStack, NO_MODULE);
        };
        if stack.bytes.is_empty() {
            return self.count_truncated(TruncationCause::NoStack, NO_MODULE);
        }
        let snapshot = Snapshot {
            arch,
            registers,
            stack: StackBytes {
                start: registers.stack_pointer(arch),
                bytes: stack.bytes,
                // The kernel copies less than the reserved size only if it cannot read on, as at the end of the stack.
                may_continue: stack.bytes.len() >= stack.reserved,
                endian: self.options.endian,
            },
        };
        let space = UserSpace::new(self.resolver, AddressContext::of(sample));
        let outcome = scratch
            .unwinder
            .unwind(&snapshot, &space, limit, &mut scratch.addresses);
        self.count_outcome(outcome)
    }

    /// Counts the outcome of a stack; returns the cause if frames are missing.
    fn count_outcome(&self, outcome: UnwindOutcome) -> Option<TruncationCause> {
        if outcome.guessed > 0 {
            self.counts.guessed.fetch_add(1, Ordering::Relaxed);
        }
        match outcome.ending {
            Ending::Truncated { cause, module } => self.count_truncated(cause, module),
            Ending::Limit => {
                self.counts.at_frame_limit.fetch_add(1, Ordering::Relaxed);
                None
            }
            Ending::Complete => None,
        }
    }

    /// Counts a truncated stack that ends in `module`; always returns `Some(cause)`, the result of [`Self::unwind`].
    fn count_truncated(
        &self,
        cause: TruncationCause,
        module: Option<ModuleId>,
    ) -> Option<TruncationCause> {
        let counts = self.counts.truncated.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        *counts.entry((cause, module)).or_default() += 1;
        Some(cause)
    }
}

/// Returns the object with the most stacks; of several, the last one by name. An object may occur several times: each function of
/// a run-time compiler is a module.
fn most_frequent<'n>(counts: impl Iterator<Item = (&'n str, u64)>) -> Option<&'n str> {
    let mut sums: FxHashMap<&str, u64> = FxHashMap::default();
    for (name, stacks) in counts {
        *sums.entry(name).or_default() += stacks;
    }
    let most = sums
        .into_iter()
        .max_by_key(|(name, stacks)| (*stacks, *name));
    most.map(|(name, _)| name)
}

/// The module of stacks that cannot be unwound at all, for which no code is looked up.
const NO_MODULE: Option<ModuleId> = None;

/// The user address space of a process at one time.
pub(crate) struct UserSpace<'r, 'w> {
    resolver: &'r Resolver<'w>,
    at: AddressContext,
    /// The number of this state of the user mappings, from the World (the processes and mappings at each time).
    epoch: u64,
}

impl<'r, 'w> UserSpace<'r, 'w> {
    pub(crate) fn new(resolver: &'r Resolver<'w>, at: AddressContext) -> Self {
        let epoch = resolver.world().epoch(at.machine, at.pid, at.order).user;
        Self {
            resolver,
            at,
            epoch,
        }
    }
}

impl AddressSpace for UserSpace<'_, '_> {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn code_at(&self, address: u64) -> Option<ObjectOffset<'_>> {
        let world = self.resolver.world();
        let AddressContext {
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
            let frame = self.resolver.frame_in_mapping(id, address, Level::User);
            if let Some((function, offset)) = self.resolver.jit_function_at(&frame) {
                return Some(function.unwind_location(offset));
            }
        }
        Some(ObjectOffset {
            module: ModuleId(mapping.dso.0),
            offset: mapping.object_address(address),
            frame_info: self.resolver.frame_info(mapping.dso),
        })
    }
}

/// A fold that unwinds samples; see [`UserStacks::fold`].
pub struct UnwoundFold<'s, 'r, 'w, F> {
    stacks: &'s UserStacks<'r, 'w>,
    scratch: StackScratch,
    inner: F,
}

impl<F> UnwoundFold<'_, '_, '_, F> {
    /// Returns the inner fold.
    pub fn into_inner(self) -> F {
        self.inner
    }
}

impl<F: Fold> Fold for UnwoundFold<'_, '_, '_, F> {
    fn fields(&self) -> SampleType {
        let completed = match self.stacks.options.limit {
            Some(_) => STACK_FIELDS,
            None => SampleType::default(),
        };
        self.inner.fields() | completed
    }

    #[inline(always)]
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        if self.stacks.options.limit.is_none() {
            return self.inner.sample(world, sample);
        }
        self.unwound_sample(world, sample);
    }

    fn merge(&mut self, later: Self) {
        self.inner.merge(later.inner);
    }
}

/// The fields of samples that callchains are completed from.
pub const STACK_FIELDS: SampleType = SampleType(
    SampleType::CALLCHAIN.0
        | SampleType::REGS_USER.0
        | SampleType::STACK_USER.0
        | SampleType::BRANCH_STACK.0,
);

impl<F: Fold> UnwoundFold<'_, '_, '_, F> {
    #[inline(never)]
    fn unwound_sample(&mut self, world: &World, sample: &Sample<'_>) {
        let Some(chain) = self.stacks.chain(sample, &mut self.scratch) else {
            return self.inner.sample(world, sample);
        };
        let mut complete = sample.clone();
        complete.wire.callchain = Some(chain);
        self.inner.sample(world, &complete);
    }
}

#[cfg(test)]
mod tests {
    use super::most_frequent;

    #[test]
    fn stacks_of_functions_of_one_object_are_added_up() {
        let counts = [("perf-7.map", 2), ("libc.so", 3), ("perf-7.map", 2)];
        assert_eq!(most_frequent(counts.into_iter()), Some("perf-7.map"));
    }
}
