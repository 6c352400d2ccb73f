//! The stacks of waits: callers outside of the functions of locks, and the stacks of holders.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rperf_analysis::lock::{
    CapturedLock, CapturedWaits, FUTEX_WAITS, KnownStacks, LOCK_WAITS, LockAggregation, LockDetail,
    LockStack,
};
use rperf_analysis::{EventLayouts, ObserverPass, PrepareSamples};
use rperf_replay::{DsoId, DsoKind, EventIndex, Machine, Order, Sample, World};
use rperf_resolve::{AddressContext, Frame, Resolver, bytes_within, chain_addresses};
use rperf_tracepoint::typed::TypedEvent;
use rperf_wire::CpuMode;

use super::analysis::{LockQuery, capture_event};
use super::cgroup_filter;
use crate::cli::error::CliError;
use crate::cli::shared::analysis::Analysis;

/// The kernel's functions of locks and of the scheduler, both called functions of locks here: the address ranges of their
/// sections. Such functions in modules are not known.
pub(super) struct LockFunctions<'n, 'r> {
    resolver: &'n Resolver<'r>,
    /// The ranges by kernel. The threads that prepare stacks share them: the first that needs them finds them.
    text: OnceLock<Vec<(DsoId, Vec<Range<u64>>)>>,
}

impl<'n, 'r> LockFunctions<'n, 'r> {
    pub(super) fn new(resolver: &'n Resolver<'r>) -> Self {
        let text = OnceLock::new();
        Self { resolver, text }
    }

    /// Returns the addresses of the frames after the innermost `skip`, without functions of locks.
    pub(super) fn callers(&self, frames: &[Frame], skip: usize) -> Vec<u64> {
        let callers = frames.iter().skip(skip);
        let callers = callers.filter(|frame| !self.contain(frame));
        callers.map(|frame| frame.ip).collect()
    }

    /// Whether a frame is in a function of locks.
    fn contain(&self, frame: &Frame) -> bool {
        let dso = frame.dso.filter(|_| is_kernel_address(frame.ip));
        dso.is_some_and(|dso| self.contain_address(dso, frame.address))
    }

    /// Like [`Self::callers`], for addresses: symbols are not looked up.
    fn callers_of(&self, at: AddressContext, frames: &[(CpuMode, u64)], skip: usize) -> Vec<u64> {
        let callers = frames.iter().skip(skip);
        let callers = callers.filter(|(mode, ip)| !self.contain_ip(at, *mode, *ip));
        callers.map(|(_, ip)| *ip).collect()
    }

    /// Like [`Self::contain`], for the address of a frame.
    fn contain_ip(&self, at: AddressContext, mode: CpuMode, ip: u64) -> bool {
        if !is_kernel_address(ip) {
            return false;
        }
        let mapping = self.resolver.mapping(at, mode, ip);
        mapping.is_some_and(|mapping| {
            let mapping = self.resolver.world().mapping(mapping);
            self.contain_address(mapping.dso, mapping.object_address(ip))
        })
    }

    /// Whether an address in the address space of a DSO's symbols is in a function of locks.
    fn contain_address(&self, dso: DsoId, address: u64) -> bool {
        let text = self.text.get_or_init(|| lock_text(self.resolver));
        let mut of_dso = text.iter().filter(|(kernel, _)| *kernel == dso);
        of_dso.any(|(_, ranges)| ranges.iter().any(|range| range.contains(&address)))
    }

    /// Whether there is a list of words, and no function of `frames` has one of them in its name.
    pub(super) fn is_excluded(&self, frames: &[Frame], words: Option<&[String]>) -> bool {
        let Some(words) = words else {
            return false;
        };
        let names = frames.iter().filter_map(|frame| frame.symbol);
        let mut names = names.map(|symbol| self.resolver.symbol_name(symbol));
        !names.any(|name| words.iter().any(|word| name.contains(word.as_str())))
    }
}

/// Whether an address is in the kernel's half of the address space.
pub(super) const fn is_kernel_address(ip: u64) -> bool {
    matches!(CpuMode::of_address(ip), CpuMode::Kernel)
}

/// Returns the frames of addresses of a process, or of the kernel if `None`, with the last known mappings.
pub(super) fn frames_at(
    resolver: &Resolver<'_>,
    process: Option<u32>,
    addresses: &[u64],
) -> Vec<Frame> {
    let (at, mode) = address_context(process);
    let frames = addresses.iter();
    let frames = frames.map(|ip| resolver.locate(at, mode, *ip));
    frames.collect()
}

/// Returns where addresses of a process, or of the kernel if `None`, are looked up: in the last known mappings of the host.
pub(super) fn address_context(process: Option<u32>) -> (AddressContext, CpuMode) {
    let at = AddressContext {
        machine: Machine::Host,
        pid: process.unwrap_or_default(),
        order: Order::MAX,
    };
    match process {
        Some(_) => (at, CpuMode::User),
        None => (at, CpuMode::Kernel),
    }
}

/// Computes the details of waits and of captured waits (samples that BPF programs write, with the data of the lock); for
/// `--holders` also of context switches and of samples of clocks (`cpu-clock`, `task-clock`).
pub(super) struct LockDetails<'r> {
    resolver: &'r Resolver<'r>,
    /// The processes and mappings of the recording.
    world: &'r World,
    query: &'r LockQuery,
    functions: LockFunctions<'r, 'r>,
    /// A cache of the details of stacks of the host's kernel, used if no names of functions are needed.
    known_stacks: KnownStacks,
    /// The event of captured waits for futexes; `None` if [`capture_event`] finds none.
    futex_waits: Option<EventIndex>,
    /// The event of captured waits for locks of the kernel; `None` if [`capture_event`] finds none.
    lock_waits: Option<EventIndex>,
    /// The events of clocks; none without `with_holders`.
    clocks: Vec<EventIndex>,
    /// Whether details are computed for `--holders`.
    with_holders: bool,
    /// The ids of the cgroups whose waits are selected; all if `None`.
    cgroups: Option<Vec<u64>>,
    /// The detail of waits in other cgroups.
    excluded: Arc<LockDetail>,
}

impl PrepareSamples for LockDetails<'_> {
    /// `None` for events that need no detail, such as the ends of waits; their samples are not skipped.
    type Detail = Option<Arc<LockDetail>>;

    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<Self::Detail> {
        // Without a typed event, only samples of clocks and of captured waits are needed; others are skipped.
        let Some(event) = event else {
            let detail = match self.clocks.contains(&sample.event) {
                true => LockDetail {
                    stack: whole_stack(sample),
                    clock_period: Some(sample.period),
                    ..LockDetail::default()
                },
                false => self.captured(sample)?,
            };
            return Some(Some(Arc::new(detail)));
        };
        Some(match event {
            TypedEvent::ContentionBegin(_) | TypedEvent::SysEnterFutex(_)
                if self.is_in_other_cgroup(sample) =>
            {
                Some(Arc::clone(&self.excluded))
            }
            TypedEvent::ContentionBegin(_) => Some(self.kernel_detail(sample)),
            TypedEvent::SysEnterFutex(_) if self.with_holders => None,
            TypedEvent::SysEnterFutex(_) => Some(Arc::new(self.user_detail(sample))),
            TypedEvent::SchedSwitch(_) if self.with_holders => Some(Arc::new(LockDetail {
                stack: whole_stack(sample),
                ..LockDetail::default()
            })),
            _ => None,
        })
    }
}

impl<'r> LockDetails<'r> {
    /// Creates the preparation of a recording's samples. `--holders` also needs [`Self::with_holders`].
    ///
    /// # Errors
    ///
    /// A path of `-G` is not that of a recorded cgroup.
    pub(super) fn new(
        analysis: &'r Analysis<'_>,
        resolver: &'r Resolver<'r>,
        query: &'r LockQuery,
    ) -> Result<Self, CliError> {
        let world = analysis.replay.world();
        let recorded_cgroups: Vec<(u64, &Path)> = world
            .cgroups()
            .map(|(id, path)| (id, Path::new(path)))
            .collect();
        let excluded = LockDetail {
            is_excluded: true,
            ..LockDetail::default()
        };
        Ok(Self {
            resolver,
            world,
            query,
            functions: LockFunctions::new(resolver),
            known_stacks: KnownStacks::default(),
            futex_waits: capture_event(analysis, FUTEX_WAITS),
            lock_waits: capture_event(analysis, LOCK_WAITS),
            clocks: Vec::new(),
            with_holders: false,
            cgroups: cgroup_filter::ids(query, recorded_cgroups.iter().copied())?,
            excluded: Arc::new(excluded),
        })
    }

    /// Whether cgroups are selected, and the cgroup of the sample is unknown or none of them.
    fn is_in_other_cgroup(&self, sample: &Sample<'_>) -> bool {
        let selected = self.cgroups.as_ref();
        selected.is_some_and(|selected| {
            let cgroup = sample.wire.cgroup;
            cgroup.is_none_or(|cgroup| !selected.contains(&cgroup))
        })
    }

    /// Returns the cgroup of a sample, if waits are grouped by it.
    fn cgroup(&self, sample: &Sample<'_>) -> Option<u64> {
        let is_needed = self.query.aggregation == LockAggregation::Cgroup;
        sample.wire.cgroup.filter(|_| is_needed)
    }

    /// Computes details for `--holders`, which shows stacks of holders of futexes: those of context switches and of samples of
    /// clocks, not those of waits for futexes. Captured waits for locks of the kernel are skipped.
    pub(super) fn with_holders(mut self, analysis: &Analysis<'_>) -> Self {
        let events = (0..).map(EventIndex).zip(analysis.metadata().events);
        let clocks = events.filter(|(_, event)| event.attr.is_clock());
        self.clocks = clocks.map(|(index, _)| index).collect();
        self.with_holders = true;
        self
    }

    /// Returns the pass over the samples of the `needed` tracepoints and of captured waits; for `--holders` also those of clocks,
    /// but not those of captured waits for locks of the kernel.
    pub(super) fn pass<'p>(
        self,
        layouts: &'p EventLayouts,
        needed: &[&[&'static str]],
    ) -> ObserverPass<'p, Self> {
        let events: Vec<EventIndex> = self
            .futex_waits
            .into_iter()
            .chain(self.lock_waits.filter(|_| !self.with_holders))
            .chain(self.clocks.clone())
            .collect();
        let pass = ObserverPass::new(layouts, self).reading(needed);
        events.into_iter().fold(pass, ObserverPass::reading_event)
    }

    /// Decodes a sample of an event of captured waits; `None` if the sample is one of another event, or invalid.
    fn captured(&self, sample: &Sample<'_>) -> Option<LockDetail> {
        let raw = sample.wire.raw?;
        let mut detail = LockDetail::default();
        if self.futex_waits == Some(sample.event) {
            detail.captured = Some(Box::new(CapturedWaits::decode(raw)?));
        } else if self.lock_waits == Some(sample.event) {
            detail.captured_lock = Some(Box::new(CapturedLock::decode(raw)?));
        } else {
            return None;
        }
        Some(detail)
    }

    /// Returns the detail of a wait for a lock of the kernel.
    fn kernel_detail(&self, sample: &Sample<'_>) -> Arc<LockDetail> {
        let chain = sample.wire.callchain;
        let size = chain.and_then(|chain| bytes_within(chain, self.query.max_stack));
        let bytes = chain.and_then(|chain| chain.as_bytes().get(..size?));
        let cgroup = self.cgroup(sample);
        let needs_names = self.query.callstack_filter.is_some();
        // The kernel's functions of locks stay where they are, so equal bytes have equal callers.
        match (needs_names, sample.machine(), bytes) {
            (true, ..) => Arc::new(self.named_kernel_detail(sample)),
            (_, Machine::Host, Some(bytes)) if let Some(cgroup) = cgroup => {
                let key = [bytes, &cgroup.to_ne_bytes()].concat();
                self.known_stacks
                    .get(&key, || self.unnamed_kernel_detail(sample))
            }
            (_, Machine::Host, Some(bytes)) => self
                .known_stacks
                .get(bytes, || self.unnamed_kernel_detail(sample)),
            _ => Arc::new(self.unnamed_kernel_detail(sample)),
        }
    }

    /// Returns the detail of a wait for a lock of the kernel; the wait is excluded if `-S` matches no function of its stack.
    fn named_kernel_detail(&self, sample: &Sample<'_>) -> LockDetail {
        let frames = self.frames(sample, self.query.max_stack);
        LockDetail {
            stack: LockStack {
                process: None,
                frames: self.functions.callers(&frames, self.query.stack_skip),
            },
            is_excluded: self.is_excluded(&frames),
            full_stack: frames.iter().map(|frame| frame.ip).collect(),
            cgroup: self.cgroup(sample),
            ..LockDetail::default()
        }
    }

    /// Like [`Self::named_kernel_detail`], without looking up names: for queries without `-S`.
    fn unnamed_kernel_detail(&self, sample: &Sample<'_>) -> LockDetail {
        let chain = sample.wire.callchain;
        let frames = chain.map(|chain| chain_addresses(chain, self.query.max_stack));
        let (at, frames) = (AddressContext::of(sample), frames.unwrap_or_default());
        LockDetail {
            stack: LockStack {
                process: None,
                frames: self
                    .functions
                    .callers_of(at, &frames, self.query.stack_skip),
            },
            full_stack: frames.into_iter().map(|(_, ip)| ip).collect(),
            cgroup: self.cgroup(sample),
            ..LockDetail::default()
        }
    }

    /// Returns the detail of a wait for a futex.
    fn user_detail(&self, sample: &Sample<'_>) -> LockDetail {
        let mut frames = self.frames(sample, usize::MAX);
        frames.retain(|frame| !is_kernel_address(frame.ip));
        frames.truncate(self.query.max_stack);
        LockDetail {
            stack: LockStack {
                process: Some(sample.pid),
                frames: self.query.user_callers(self.world, &frames),
            },
            is_excluded: self.is_excluded(&frames),
            full_stack: frames.iter().map(|frame| frame.ip).collect(),
            cgroup: self.cgroup(sample),
            ..LockDetail::default()
        }
    }

    fn frames(&self, sample: &Sample<'_>, max_frames: usize) -> Vec<Frame> {
        let (at, mut frames) = (AddressContext::of(sample), Vec::new());
        if let Some(chain) = sample.wire.callchain {
            self.resolver.callchain(at, chain, max_frames, &mut frames);
        }
        frames
    }

    fn is_excluded(&self, frames: &[Frame]) -> bool {
        let words = self.query.callstack_filter.as_deref();
        self.functions.is_excluded(frames, words)
    }
}

/// Returns all frames of a sample, of the kernel and of the program, with the functions of locks.
fn whole_stack(sample: &Sample<'_>) -> LockStack {
    let chain = sample.wire.callchain;
    let frames = chain.map(|chain| chain_addresses(chain, usize::MAX));
    let frames = frames.unwrap_or_default().into_iter();
    LockStack {
        process: Some(sample.pid),
        frames: frames.map(|(_, ip)| ip).collect(),
    }
}

/// Returns the addresses of user frames without the innermost ones that are in the C library; of all frames if all are in it.
pub(super) fn user_callers(world: &World, frames: &[Frame]) -> Vec<u64> {
    let outside = frames.iter().position(|frame| !is_c_library(world, frame));
    let callers = frames.iter().skip(outside.unwrap_or_default());
    callers.map(|frame| frame.ip).collect()
}

/// Whether a frame is in the C library, the dynamic loader or the vDSO.
fn is_c_library(world: &World, frame: &Frame) -> bool {
    let Some(dso) = frame.dso else {
        return false;
    };
    let path = world.dso(dso).name.as_str();
    let file = path.rsplit('/').next().unwrap_or(path);
    let names = [
        "libc.so",
        "libc-",
        "libpthread",
        "ld-linux",
        "ld-musl",
        "[vdso]",
    ];
    names.iter().any(|name| file.starts_with(name))
}

/// Returns the address ranges of the kernel's functions of the scheduler and of locks: `__sched_text_start` to
/// `__sched_text_end` and `__lock_text_start` to `__lock_text_end`, as far as `dso` has these symbols.
fn section_ranges(resolver: &Resolver<'_>, dso: DsoId) -> Vec<Range<u64>> {
    let limits = [
        ("__sched_text_start", "__sched_text_end"),
        ("__lock_text_start", "__lock_text_end"),
    ];
    let mut found = [(None, None); 2];
    for (id, symbol) in resolver.symbols(dso) {
        let name = resolver.symbol_name(id);
        if !name.starts_with("__") {
            continue;
        }
        for ((start, end), (start_name, end_name)) in found.iter_mut().zip(limits) {
            if name == start_name {
                start.get_or_insert(symbol.start);
            } else if name == end_name {
                end.get_or_insert(symbol.start);
            }
        }
    }
    let ranges = found.into_iter();
    ranges
        .filter_map(|(start, end)| Some(start?..end?))
        .collect()
}

/// Returns the ranges of each kernel's sections of locks and of the scheduler.
fn lock_text(resolver: &Resolver<'_>) -> Vec<(DsoId, Vec<Range<u64>>)> {
    let dsos = (0..).map(DsoId).zip(resolver.world().dsos());
    let kernels = dsos.filter(|(_, dso)| dso.kind == DsoKind::Kernel);
    let text = kernels.map(|(kernel, _)| (kernel, section_ranges(resolver, kernel)));
    text.collect()
}
