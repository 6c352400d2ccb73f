//! The [`Resolver`]: looks addresses up, loads what it needs for it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rperf_replay::{Dso, DsoId, DsoKind, Machine, MappingId, World};
use rperf_symbol::{
    Budget, FileBytes, Files, KernelCode, Origin, SearchPaths, SourceFrame, Symbol, SymbolTable,
};
use rperf_unwind::{Cause, ModuleId};
use rperf_wire::{CpuMode, U64s};

use crate::chain::{self, Split};
use crate::code::CodeOf;
use crate::cut;
use crate::frame::{Frame, Level, Place, SymbolId};
use crate::inline::{Call, Inlines, Reading, SourceLine};
use crate::made::Function;
use crate::object::{Object, Sources};

/// Addresses from here on are the kernel's, on every 64-bit machine that perf runs on.
const KERNEL_START: u64 = 1 << 63;
/// Objects go by their [`DsoId`] in stacks, functions that runtimes dumped by numbers from here on.
const FIRST_MADE: u32 = 1 << 31;

/// Something about an object's symbols that the user may want to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding<'a> {
    /// The object.
    pub dso: DsoId,
    /// What was found.
    pub what: &'a rperf_symbol::Finding,
}

/// Names addresses of one recording. Shared by reference between threads; loads each object at its first hit.
pub struct Resolver<'w> {
    world: &'w World,
    files: &'w dyn Files,
    known: Known,
}

/// What a resolver has found out. Another one can go on with it when the World has grown.
pub struct Known {
    paths: SearchPaths,
    vdso: Option<FileBytes>,
    /// Marks at the ends of stacks that lack frames, if these are marked.
    marks: Option<Box<Object>>,
    /// What debug information may take of memory.
    budget: Arc<Budget>,
    /// The mapping of the host's kernel, among the first so many mappings.
    kernel: Option<MappingId>,
    mappings: usize,
    /// By [`DsoId`].
    objects: Vec<OnceLock<Object>>,
    /// By [`DsoId`]: how the frames of its functions are laid out.
    frames: Vec<OnceLock<Result<rperf_unwind::Object, Cause>>>,
    /// By [`DsoId`]: where the objects' code is.
    code: Vec<OnceLock<Option<CodeOf>>>,
    /// The objects of the functions that runtimes dumped, by the functions' numbers.
    made: Mutex<Vec<DsoId>>,
}

impl<'w> Resolver<'w> {
    /// A resolver for the addresses of `world`, reading symbols with `files` where `paths` says.
    #[must_use]
    pub fn new(world: &'w World, files: &'w dyn Files, paths: SearchPaths) -> Self {
        let known = Known {
            paths,
            vdso: None,
            marks: None,
            budget: Budget::new(Budget::DEFAULT_BYTES),
            kernel: None,
            mappings: 0,
            objects: Vec::new(),
            frames: Vec::new(),
            code: Vec::new(),
            made: Mutex::default(),
        };
        Self::resume(world, files, known)
    }

    /// A resolver that goes on with what another has found out in the same World, when it was smaller. Objects that were
    /// read are not read again.
    #[must_use]
    pub fn resume(world: &'w World, files: &'w dyn Files, known: Known) -> Self {
        Self {
            world,
            files,
            known: known.grown(world),
        }
    }

    /// What was found out, for [`Resolver::resume`].
    #[must_use]
    pub fn into_known(self) -> Known {
        self.known
    }

    /// Names `[vdso]` frames after `image`, the running kernel's, where the build-id cache has no copy of the recorded one.
    #[must_use]
    pub fn with_vdso(mut self, image: Option<FileBytes>) -> Self {
        self.known.vdso = image;
        self
    }

    /// Puts a frame with the cause at the outer end of each unwound stack that lacks frames, where `on`.
    #[must_use]
    pub fn marking_cut_stacks(mut self, on: bool) -> Self {
        self.known.marks = on.then(|| Box::new(cut::object()));
        self
    }

    /// Whether such stacks are marked.
    pub(crate) fn marks_cut_stacks(&self) -> bool {
        self.known.marks.is_some()
    }

    /// The callchain entry at the end of a stack that lacks frames, if such stacks are marked.
    pub(crate) fn mark(&self, cause: Cause) -> Option<u64> {
        self.marks_cut_stacks().then(|| cut::address(cause))
    }

    /// The World that the frames' ids belong to.
    #[must_use]
    pub fn world(&self) -> &'w World {
        self.world
    }

    /// Reads the symbols of an object, unless that has been done: what comes of itself when the first address falls into it.
    pub fn read(&self, dso: DsoId) {
        self.object(dso);
    }

    /// What is at `ip`, looked up in `mode` alone. Modes other than kernel and user of a machine know no mappings.
    #[must_use]
    pub fn locate(&self, at: Place, mode: CpuMode, ip: u64) -> Frame {
        match self.mapping(at, mode, ip) {
            Some(mapping) => self.in_mapping(mapping, ip, mode.into()),
            None => self.unmapped(mode, ip),
        }
    }

    /// The frame at an address where nothing is mapped.
    #[must_use]
    pub fn unmapped(&self, mode: CpuMode, ip: u64) -> Frame {
        let marks = self.known.marks.as_ref();
        let mark = marks.filter(|_| mode == CpuMode::User);
        mark.and_then(|marks| cut::frame(marks, ip))
            .unwrap_or(Frame::unknown(ip, mode.into()))
    }

    /// What is mapped at `ip`, looked up in `mode` alone.
    ///
    /// The kernel reaches from its first to its last symbol, once these are known: the record of its mapping leaves out
    /// the code that only runs at the start, which idle processors are still in.
    #[inline]
    #[must_use]
    pub fn mapping(&self, at: Place, mode: CpuMode, ip: u64) -> Option<MappingId> {
        if let Some(kernel) = self.known.kernel
            && mode == CpuMode::Kernel
            && at.machine == Machine::Host
            && self.kernel_covers(kernel, ip)
        {
            return Some(kernel);
        }
        self.world.lookup(at.machine, mode, at.pid, at.order, ip)
    }

    fn kernel_covers(&self, kernel: MappingId, ip: u64) -> bool {
        let dso = self.world.mapping(kernel).dso;
        let bounds = self.object(dso).and_then(|object| object.table.bounds());
        bounds.is_some_and(|(start, end)| (start..end).contains(&ip))
    }

    /// What is at the data address `addr` of a sample taken in `mode`: an address that the mode knows nothing of is
    /// tried on the other side of the border between kernel and user space.
    #[must_use]
    pub fn locate_data(&self, at: Place, mode: CpuMode, addr: u64) -> Frame {
        let frame = self.locate(at, mode, addr);
        let kernel = addr >= KERNEL_START;
        let other = match mode {
            CpuMode::User if kernel => CpuMode::Kernel,
            CpuMode::Kernel if !kernel => CpuMode::User,
            CpuMode::GuestUser if kernel => CpuMode::GuestKernel,
            CpuMode::GuestKernel if !kernel => CpuMode::GuestUser,
            _ => return frame,
        };
        match frame.mapping {
            Some(_) => frame,
            None => self.locate(at, other, addr),
        }
    }

    /// Appends the frames of `chain` to `out`, innermost first, at most `max_stack` of them. A corrupted chain adds none.
    pub fn callchain(&self, at: Place, chain: U64s<'_>, max_stack: usize, out: &mut Vec<Frame>) {
        let start = out.len();
        let whole = chain::walk(chain, max_stack, |mode, ip| {
            out.push(self.locate(at, mode, ip));
        });
        if !whole {
            out.truncate(start);
        }
    }

    /// Calls `frame(mode, address)` for each frame of `chain`, innermost first, at most `max_stack` times, without looking
    /// anything up. `false` for a corrupted chain, of which no frame counts.
    pub fn walk(chain: U64s<'_>, max_stack: usize, frame: impl FnMut(CpuMode, u64)) -> bool {
        chain::walk(chain, max_stack, frame)
    }

    /// The first frame of `chain` and its callers; `None` for a chain without frames.
    #[inline]
    #[must_use]
    pub fn split_first(chain: U64s<'_>) -> Option<Split<'_>> {
        chain::split_first(chain)
    }

    /// The callers of a frame in parts of a few entries, innermost first, up to `max_stack` frames: `part(mode, entries)` for
    /// each, whose first frame is in `mode`. Stacks with the same outer callers have their outer parts in common.
    /// `false`, without any call, for a corrupted chain.
    #[inline]
    pub fn parts<'a>(
        mode: CpuMode,
        callers: U64s<'a>,
        max_stack: usize,
        part: impl FnMut(CpuMode, U64s<'a>),
    ) -> bool {
        chain::parts(mode, callers, max_stack, part)
    }

    /// [`Resolver::walk`] for the callers of a frame, the first of them in `mode`.
    pub fn walk_on(
        mode: CpuMode,
        callers: U64s<'_>,
        max_stack: usize,
        frame: impl FnMut(CpuMode, u64),
    ) -> bool {
        chain::walk_on(mode, callers.iter(), max_stack, frame)
    }

    /// The frame of `ip` in a mapping that is already known; does not depend on time.
    #[must_use]
    pub fn in_mapping(&self, mapping: MappingId, ip: u64, level: Level) -> Frame {
        let mapped = self.world.mapping(mapping);
        let address = mapped.object_address(ip);
        let dso = mapped.dso;
        let index = self
            .object(dso)
            .and_then(|object| object.find(address, mapped.function));
        // Without a symbol, a place in a module is shown by its distance from the start.
        let in_module = index.is_none() && self.world.dso(dso).kind == DsoKind::KernelModule;
        let address = match in_module {
            true => ip.wrapping_sub(mapped.start).wrapping_add(mapped.pgoff),
            false => address,
        };
        Frame {
            ip,
            address,
            mapping: Some(mapping),
            dso: Some(dso),
            symbol: index.map(|index| SymbolId { dso, index }),
            level,
        }
    }

    /// The name of a symbol as perf shows it, demangled.
    #[must_use]
    pub fn symbol_name(&self, symbol: SymbolId) -> &str {
        self.object(symbol.dso)
            .map_or("", |object| object.name(symbol.index))
    }

    /// Start and end of a symbol, in the terms of [`Frame::address`]; `None` for an id that another resolver made.
    #[must_use]
    pub fn symbol(&self, symbol: SymbolId) -> Option<Symbol> {
        self.object(symbol.dso)?.symbol(symbol.index)
    }

    /// The symbols of an object, by rising start; none where nothing is known of it.
    pub fn symbols(&self, dso: DsoId) -> impl Iterator<Item = (SymbolId, Symbol)> {
        let tables = self.object(dso).into_iter();
        let symbols = tables.flat_map(|object| object.table.iter());
        symbols.map(move |(index, symbol)| (SymbolId { dso, index }, symbol))
    }

    /// Whether a symbol is a function inlined into another, made by [`Resolver::expand`]. Its start and end are those of the
    /// function around it.
    #[must_use]
    pub fn is_inlined(&self, symbol: SymbolId) -> bool {
        let object = self.object(symbol.dso);
        object.is_some_and(|object| object.is_inlined(symbol.index))
    }

    /// Appends what the code at `frame` stands for: the functions inlined there, innermost first, and then `frame` itself,
    /// with the places of the calls between them. Where nothing is known of that, or `frame` has no symbol, just `frame`.
    ///
    /// The outermost function goes by its symbol, whatever the debug information calls it.
    pub fn expand<'r>(&'r self, frame: &Frame, calls: &mut Vec<Call<'r>>) {
        let mut sources = Vec::new();
        let Some((inlines, symbol)) = self.look_inside(frame, &mut sources) else {
            calls.push(Call {
                frame: *frame,
                place: self.made_line(frame).or_else(|| self.no_line(frame)),
            });
            return;
        };
        let outermost = sources.len().saturating_sub(1);
        for (index, source) in sources.into_iter().enumerate() {
            let inlined = source.function.filter(|_| index < outermost);
            let made = inlined.and_then(|function| {
                let number = inlines.number(function, symbol.index)?;
                self.object(symbol.dso)?.inlined_symbol(number)
            });
            if index < outermost && made.is_none() {
                continue;
            }
            let index = made.unwrap_or(symbol.index);
            calls.push(Call {
                frame: Frame {
                    symbol: Some(SymbolId { index, ..symbol }),
                    ..*frame
                },
                place: Some(inlines.place(source)),
            });
        }
    }

    /// The functions at a frame; at least one, if there is an answer.
    fn look_inside(
        &self,
        frame: &Frame,
        sources: &mut Vec<SourceFrame>,
    ) -> Option<(&Inlines, SymbolId)> {
        let symbol = frame.symbol?;
        let inlines = self.object(symbol.dso)?.inlines(self.reading())?;
        inlines.lines.frames(self.files, frame.address, sources);
        (!sources.is_empty()).then_some((inlines, symbol))
    }

    /// The place in the source of the instruction at `frame`, in the innermost of the functions inlined there; `None` for
    /// code that is in no file.
    #[must_use]
    pub fn source_line(&self, frame: &Frame) -> Option<SourceLine<'_>> {
        if let Some(line) = self.made_line(frame) {
            return Some(line);
        }
        let object = self.object(frame.dso?)?;
        let Some(inlines) = object.inlines(self.reading()) else {
            return self.no_line(frame);
        };
        let mut sources = Vec::new();
        inlines
            .lines
            .frames(self.files, frame.address, &mut sources);
        let innermost = sources.first().map(|source| inlines.place(*source));
        innermost.or_else(|| self.no_line(frame))
    }

    /// The line of code that a runtime dumped; of functions without lines it is as of files without any.
    fn made_line(&self, frame: &Frame) -> Option<SourceLine<'_>> {
        let SymbolId { dso, index } = frame.symbol?;
        let object = self.object(dso)?;
        let made = object.made.as_ref()?;
        let line = made.line(index, &object.symbol(index)?, frame.address);
        Some(line.unwrap_or(SourceLine::UNKNOWN))
    }

    /// The function at `frame` if a runtime dumped it, and how far into it the frame is.
    pub(crate) fn made_at(&self, frame: &Frame) -> Option<(&Function, u64)> {
        let SymbolId { dso, index } = frame.symbol?;
        let object = self.object(dso)?;
        let function = object.made.as_ref()?.function(index, || {
            let made = self.known.made.lock();
            let mut made = made.unwrap_or_else(PoisonError::into_inner);
            let number = u32::try_from(made.len()).unwrap_or_default();
            made.push(dso);
            ModuleId(FIRST_MADE | number)
        })?;
        let start = object.symbol(index)?.start;
        Some((function, frame.address.checked_sub(start)?))
    }

    /// The object that stacks know by this number.
    pub(crate) fn dso_of(&self, module: ModuleId) -> Option<DsoId> {
        let Some(made) = module.0.checked_sub(FIRST_MADE) else {
            return Some(DsoId(module.0));
        };
        let all = self.known.made.lock();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        all.get(made as usize).copied()
    }

    /// What is said of code whose line nobody tells. Entries of procedure linkage tables, which objects have no symbols for,
    /// count as code that is in no file.
    fn no_line(&self, frame: &Frame) -> Option<SourceLine<'static>> {
        let object = self.object(frame.dso?)?;
        let symbol = frame.symbol.and_then(|symbol| self.symbol(symbol));
        let is_plt_entry = symbol.is_some_and(|symbol| symbol.is_plt_entry());
        (object.has_file() && !is_plt_entry).then_some(SourceLine::UNKNOWN)
    }

    fn reading(&self) -> Reading<'_> {
        Reading {
            files: self.files,
            paths: &self.known.paths,
            budget: &self.known.budget,
        }
    }

    /// What there is to say about the debug information that was read so far.
    #[must_use]
    pub fn debug_findings(&self) -> Vec<rperf_symbol::Finding> {
        let objects = self.known.objects.iter().filter_map(OnceLock::get);
        let read = objects.filter_map(Object::read_inlines);
        read.flat_map(|inlines| inlines.lines.findings()).collect()
    }

    /// The file that an object's symbols came from, if it was asked for any and has some.
    #[must_use]
    pub fn source(&self, dso: DsoId) -> Option<&Path> {
        let object = self.known.objects.get(dso.0 as usize)?.get()?;
        (!object.table.is_empty()).then_some(object.source.as_path())
    }

    /// Of which kind the place is that an object's symbols came from, if it was asked for any and has some.
    #[must_use]
    pub fn origin(&self, dso: DsoId) -> Option<Origin> {
        self.known.objects.get(dso.0 as usize)?.get()?.origin
    }

    /// Whether a file with the right build-id was found for an object that was asked for, even one without symbols.
    #[must_use]
    pub fn has_file(&self, dso: DsoId) -> bool {
        let object = self.known.objects.get(dso.0 as usize);
        object.and_then(OnceLock::get).is_some_and(Object::has_file)
    }

    /// What there is to say about the objects that were loaded so far.
    pub fn findings(&self) -> impl Iterator<Item = Finding<'_>> {
        self.known
            .objects
            .iter()
            .enumerate()
            .flat_map(|(index, place)| {
                let findings = place.get().map_or(&[][..], |object| &object.findings);
                let dso = DsoId(u32::try_from(index).unwrap_or(u32::MAX));
                findings.iter().map(move |what| Finding { dso, what })
            })
    }

    /// The symbols of an object, read now if this is the first time that they are wanted.
    fn object(&self, dso: DsoId) -> Option<&Object> {
        if dso == cut::MARKS {
            return self.known.marks.as_deref();
        }
        let place = self.known.objects.get(dso.0 as usize)?;
        Some(place.get_or_init(|| self.load(dso)))
    }

    /// How the frames of an object's functions are laid out, read now if this is the first time that it is asked for.
    pub(crate) fn frames(&self, dso: DsoId) -> Result<&rperf_unwind::Object, Cause> {
        let place = self.known.frames.get(dso.0 as usize);
        let place = place.ok_or(Cause::LostFile)?;
        let loaded = place.get_or_init(|| self.sources().load_frames(self.world.dso(dso)));
        loaded.as_ref().map_err(|cause| *cause)
    }

    /// Where the code of the object at `frame` is.
    pub(crate) fn code_of(&self, frame: &Frame) -> Option<&CodeOf> {
        let place = self.known.code.get(frame.dso?.0 as usize)?;
        place.get_or_init(|| self.find_code(frame)).as_ref()
    }

    fn find_code(&self, frame: &Frame) -> Option<CodeOf> {
        let dso = self.world.dso(frame.dso?);
        if !matches!(dso.kind, DsoKind::Kernel | DsoKind::KernelModule) {
            let (_, file) = self.sources().images(dso)?.code?;
            return Some(CodeOf::File {
                bytes: file,
                layout: OnceLock::new(),
            });
        }
        if dso.machine != Machine::Host {
            return None;
        }
        let kernel = self.kernel_of(dso.machine)?;
        let image = self.object(kernel).and_then(Object::image);
        let image = image.filter(|_| dso.kind == DsoKind::Kernel);
        // One with nothing but debug information has no code.
        if let Some(code) = image.and_then(|image| KernelCode::of_image(image, frame.ip)) {
            return Some(CodeOf::Kernel(code));
        }
        let mapping = self.world.mapping(frame.mapping?);
        let kernel = self.world.dso(kernel);
        let code = self
            .sources()
            .kernel_code(kernel, mapping.start..mapping.end);
        code.map(CodeOf::Kernel)
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            files: self.files,
            paths: &self.known.paths,
            vdso: self.known.vdso.as_ref(),
            dsos: self.world.dsos(),
        }
    }

    fn load(&self, id: DsoId) -> Object {
        let dso = self.world.dso(id);
        if dso.kind == DsoKind::KernelModule
            && let Some(table) = self.listed_module(dso)
        {
            return Object::new(table, PathBuf::new(), Vec::new());
        }
        self.sources().load(dso)
    }

    /// The symbols of a module in the kernel's own listing, which names those of all modules.
    fn listed_module(&self, module: &Dso) -> Option<SymbolTable> {
        let kernel = self.object(self.kernel_of(module.machine)?)?;
        kernel.module(&module.name)
    }

    fn kernel_of(&self, machine: Machine) -> Option<DsoId> {
        let is_kernel = |dso: &Dso| dso.kind == DsoKind::Kernel && dso.machine == machine;
        let kernel = self.world.dsos().iter().position(is_kernel)?;
        Some(DsoId(u32::try_from(kernel).ok()?))
    }
}

impl Known {
    /// The ids of mappings are others from now on.
    pub fn forget_mappings(&mut self) {
        (self.kernel, self.mappings) = (None, 0);
    }

    /// What runtimes say of their code is read again where it is asked for: they make more as they go. Ids of such
    /// functions mean nothing then.
    pub fn forget_run_time_code(&mut self, world: &World) {
        for (dso, object) in world.dsos().iter().zip(&mut self.objects) {
            if matches!(dso.kind, DsoKind::PerfMap(_)) {
                object.take();
            }
        }
    }

    /// The same with room for all objects of `world`. Of several mappings of the host's kernel the last counts.
    fn grown(mut self, world: &World) -> Self {
        let is_kernel = |dso: DsoId| {
            let dso = world.dso(dso);
            dso.kind == DsoKind::Kernel && dso.machine == Machine::Host
        };
        let mappings = world.mappings();
        let new = mappings.get(self.mappings..).unwrap_or_default();
        if let Some(index) = new.iter().rposition(|mapping| is_kernel(mapping.dso)) {
            let index = u32::try_from(self.mappings + index);
            self.kernel = index.ok().map(MappingId).or(self.kernel);
        }
        self.mappings = mappings.len();
        self.objects.resize_with(world.dsos().len(), OnceLock::new);
        self.frames.resize_with(world.dsos().len(), OnceLock::new);
        self.code.resize_with(world.dsos().len(), OnceLock::new);
        self
    }
}
