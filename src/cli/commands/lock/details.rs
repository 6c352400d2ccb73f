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
use rperf_wire::{CpuMode, EventType};

use super::analysis::{LockQuery, capture_event};
use super::cgroup_filter;
use crate::cli::error::CliError;
use crate::cli::shared::analysis::Analysis;

/// The kernel's functions of locks and of the scheduler: the address ranges of their sections. Modules have none.
pub(super) struct LockFunctions<'n, 'r> {
    resolver: &'n Resolver<'r>,
    /// By kernel. Found once, since stacks are prepared by all threads.
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

    fn contain(&self, frame: &Frame) -> bool {
        let dso = frame
            .dso
            .filter(|_| CpuMode::of_address(frame.ip) == CpuMode::Kernel);
        dso.is_some_and(|dso| self.contain_address(dso, frame.address))
    }

    /// Like [`Self::callers`], for addresses: symbols are not looked up.
    fn callers_of(&self, at: AddressContext, frames: &[(CpuMode, u64)], skip: usize) -> Vec<u64> {
        let callers = frames.iter().skip(skip);
        let callers = callers.filter(|(mode, ip)| {
            let mapping = Some(*ip).filter(|ip| CpuMode::of_address(*ip) == CpuMode::Kernel);
            let mapping = mapping.and_then(|ip| self.resolver.mapping(at, *mode, ip));
            !mapping.is_some_and(|mapping| {
                let mapping = self.resolver.world().mapping(mapping);
                self.contain_address(mapping.dso, mapping.object_address(*ip))
            })
        });
        callers.map(|(_, ip)| *ip).collect()
    }

    /// Whether an address of an object is in a function of locks.
    fn contain_address(&self, dso: DsoId, address: u64) -> bool {
        let text = self.text.get_or_init(|| lock_text(self.resolver));
        let mut own = text.iter().filter(|(kernel, _)| *kernel == dso);
        own.any(|(_, ranges)| ranges.iter().any(|range| range.contains(&address)))
    }

    /// Whether there is a list of words and no function has one of them in its name.
    pub(super) fn is_excluded(&self, frames: &[Frame], words: Option<&[String]>) -> bool {
        let Some(words) = words else {
            return false;
        };
        let names = frames.iter().filter_map(|frame| frame.symbol);
        let mut names = names.map(|symbol| self.resolver.symbol_name(symbol));
        !names.any(|name| words.iter().any(|word| name.contains(word.as_str())))
    }
}

/// Returns the frames of addresses of a process, or of the kernel if `None`, as of now or of the end of the recording.
pub(super) fn frames_at(
    resolver: &Resolver<'_>,
    process: Option<u32>,
    addresses: &[u64],
) -> Vec<Frame> {
    let (at, mode) = context(process);
    let frames = addresses.iter();
    let frames = frames.map(|ip| resolver.locate(at, mode, *ip));
    frames.collect()
}

/// Returns where addresses of a process, or of the kernel if `None`, are looked up.
pub(super) fn context(process: Option<u32>) -> (AddressContext, CpuMode) {
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

/// Computes the details of waits, of captured waits, and of the samples of holders.
pub(super) struct LockDetails<'r> {
    resolver: &'r Resolver<'r>,
    world: &'r World,
    query: &'r LockQuery,
    functions: LockFunctions<'r, 'r>,
    /// Stacks of the host's kernel whose frames need no names.
    known: KnownStacks,
    /// The events of captured waits for futexes and for locks of the kernel.
    futex_waits: Option<EventIndex>,
    lock_waits: Option<EventIndex>,
    /// The events of clocks, if the stacks of holders are read.
    clocks: Vec<EventIndex>,
    with_holders: bool,
    /// The ids of the cgroups whose waits are selected, and the detail of other waits.
    cgroups: Option<Vec<u64>>,
    excluded: Arc<LockDetail>,
}

impl PrepareSamples for LockDetails<'_> {
    /// `None` at events that need no detail, such as the ends of waits.
    type Detail = Option<Arc<LockDetail>>;

    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<Self::Detail> {
        let Some(event) = event else {
            let detail = match self.clocks.contains(&sample.event) {
                true => LockDetail {
                    stack: whole_stack(sample),
                    clock: Some(sample.period),
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
    /// Creates the preparation of a recording.
    ///
    /// # Errors
    ///
    /// The recording has no cgroup of a name of `-G`.
    pub(super) fn new(
        analysis: &'r Analysis<'_>,
        resolver: &'r Resolver<'r>,
        query: &'r LockQuery,
    ) -> Result<Self, CliError> {
        let world = analysis.replay.world();
        let known: Vec<(u64, &Path)> = world
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
            known: KnownStacks::default(),
            futex_waits: capture_event(analysis, FUTEX_WAITS),
            lock_waits: capture_event(analysis, LOCK_WAITS),
            clocks: Vec::new(),
            with_holders: false,
            cgroups: cgroup_filter::ids(query, known.iter().copied())?,
            excluded: Arc::new(excluded),
        })
    }

    /// Whether cgroups are selected, and that of the sample is none of them.
    fn is_in_other_cgroup(&self, sample: &Sample<'_>) -> bool {
        let selected = self.cgroups.as_ref();
        selected.is_some_and(|selected| {
            let own = sample.wire.cgroup;
            own.is_none_or(|own| !selected.contains(&own))
        })
    }

    /// Returns the cgroup of a sample, if waits are grouped by it.
    fn cgroup(&self, sample: &Sample<'_>) -> Option<u64> {
        let is_needed = self.query.aggregation == LockAggregation::Cgroup;
        sample.wire.cgroup.filter(|_| is_needed)
    }

    /// Also reads the stacks of samples of clocks and of switches.
    pub(super) fn with_holders(mut self, analysis: &Analysis<'_>) -> Self {
        let events = (0..).map(EventIndex).zip(analysis.metadata().events);
        let clocks = events.filter(|(_, event)| {
            event.attr.kind == EventType::SOFTWARE && CLOCKS.contains(&event.attr.config)
        });
        self.clocks = clocks.map(|(index, _)| index).collect();
        self.with_holders = true;
        self
    }

    /// Returns the pass over the samples of these tracepoints, of captured waits and of clocks.
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

    /// Decodes a sample of an event of captured waits.
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

    fn kernel_detail(&self, sample: &Sample<'_>) -> Arc<LockDetail> {
        let chain = sample.wire.callchain;
        let size = chain.and_then(|chain| bytes_within(chain, self.query.max_stack));
        let bytes = chain.and_then(|chain| chain.as_bytes().get(..size?));
        let cgroup = self.cgroup(sample);
        match (self.query.callstack.is_some(), sample.machine(), bytes) {
            (true, ..) => Arc::new(self.named_kernel_detail(sample)),
            (_, Machine::Host, Some(bytes)) if let Some(cgroup) = cgroup => {
                let key = [bytes, &cgroup.to_ne_bytes()].concat();
                self.known.get(&key, || self.unnamed_kernel_detail(sample))
            }
            // The kernel's functions of locks stay where they are, so equal bytes have equal callers.
            (_, Machine::Host, Some(bytes)) => {
                self.known.get(bytes, || self.unnamed_kernel_detail(sample))
            }
            _ => Arc::new(self.unnamed_kernel_detail(sample)),
        }
    }

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

    /// Like [`Self::named_kernel_detail`], if no names are needed.
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
        frames.retain(|frame| CpuMode::of_address(frame.ip) == CpuMode::User);
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

    fn frames(&self, sample: &Sample<'_>, most: usize) -> Vec<Frame> {
        let (at, mut frames) = (AddressContext::of(sample), Vec::new());
        if let Some(chain) = sample.wire.callchain {
            self.resolver.callchain(at, chain, most, &mut frames);
        }
        frames
    }

    fn is_excluded(&self, frames: &[Frame]) -> bool {
        let words = self.query.callstack.as_deref();
        self.functions.is_excluded(frames, words)
    }
}

/// `PERF_COUNT_SW_CPU_CLOCK` and `_TASK_CLOCK`, whose periods are times.
const CLOCKS: [u64; 2] = [0, 1];

/// Returns all frames of a sample, of the kernel and of the program.
fn whole_stack(sample: &Sample<'_>) -> LockStack {
    let chain = sample.wire.callchain;
    let frames = chain.map(|chain| chain_addresses(chain, usize::MAX));
    let frames = frames.unwrap_or_default().into_iter();
    LockStack {
        process: Some(sample.pid),
        frames: frames.map(|(_, ip)| ip).collect(),
    }
}

/// Returns the addresses of user frames from the innermost outside the C library on; all if there is none outside.
pub(super) fn user_callers(world: &World, frames: &[Frame]) -> Vec<u64> {
    let outside = frames.iter().position(|frame| !is_c_library(world, frame));
    let callers = frames.iter().skip(outside.unwrap_or_default());
    callers.map(|frame| frame.ip).collect()
}

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
    let mut limits_found = [(None, None); 2];
    for (id, symbol) in resolver.symbols(dso) {
        let name = resolver.symbol_name(id);
        if !name.starts_with("__") {
            continue;
        }
        for ((start, end), limits) in limits_found.iter_mut().zip(limits) {
            if name == limits.0 {
                start.get_or_insert(symbol.start);
            } else if name == limits.1 {
                end.get_or_insert(symbol.start);
            }
        }
    }
    let limits_found = limits_found.into_iter();
    limits_found
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
