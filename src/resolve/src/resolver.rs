//! The [`Resolver`]: address lookup, and loading of objects on demand.

use std::path::{Path, PathBuf};
use std::sync::{OnceLock, PoisonError};
use std::thread;

use rperf_replay::{Dso, DsoId, DsoKind, Machine, MappingId, World};
use rperf_symbol::{
    FileBytes, Files, KernelCode, SearchPaths, SourceFrame, Symbol, SymbolOrigin, SymbolTable,
};
use rperf_unwind::{FrameInfo, ModuleId, TruncationCause};
use rperf_wire::{CpuMode, U64s};

use crate::chain;
use crate::code::CodeSource;
use crate::frame::{AddressContext, Frame, Level, SymbolId};
use crate::inline::{CallFrame, DebugInputs, InlineInfo, SourceLine};
use crate::jit::DumpedFunction;
use crate::loaded::LoadedObjects;
use crate::object::{LoadInputs, LoadedObject, kernel_index};
use crate::truncated;

/// [`ModuleId`]s, the numbers of modules in unwinding, identify JIT functions from this number on; lower ones are [`DsoId`]s.
const FIRST_JIT: u32 = 1 << 31;

/// A problem with an object's symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectFinding<'a> {
    /// The object.
    pub dso: DsoId,
    /// The problem.
    pub problem: &'a rperf_symbol::SymbolFinding,
}

/// Resolves addresses of one recording. Shared by reference between threads; loads each object at
/// its first use.
pub struct Resolver<'w> {
    world: &'w World,
    files: &'w dyn Files,
    loaded: LoadedObjects,
}

impl<'w> Resolver<'w> {
    /// Creates a resolver for `world` (the processes and mappings, by time) that loads symbols through `files` from `paths`.
    #[must_use]
    pub fn new(world: &'w World, files: &'w dyn Files, paths: SearchPaths) -> Self {
        let loaded = LoadedObjects::new(paths);
        Self::resume(world, files, loaded)
    }

    /// Creates a resolver with the data loaded by an earlier resolver. Since then, `world` may have grown.
    #[must_use]
    pub fn resume(world: &'w World, files: &'w dyn Files, loaded: LoadedObjects) -> Self {
        Self {
            world,
            files,
            loaded: loaded.with_objects_of(world),
        }
    }

    /// The loaded data, for [`Resolver::resume`].
    #[must_use]
    pub fn into_loaded(self) -> LoadedObjects {
        self.loaded
    }

    /// Uses `image`, the running kernel's vdso, for `[vdso]` frames if the build-id cache has no
    /// copy of the recorded one.
    #[must_use]
    pub fn with_vdso(mut self, image: Option<FileBytes>) -> Self {
        self.loaded.vdso = image;
        self
    }

    /// Enables a marker with the cause at the outer end of truncated stacks.
    #[must_use]
    pub fn marking_truncated_stacks(mut self, on: bool) -> Self {
        self.loaded.markers = on.then(|| Box::new(truncated::marker_object()));
        self
    }

    /// Whether truncated stacks are marked.
    pub(crate) fn marks_truncated_stacks(&self) -> bool {
        self.loaded.markers.is_some()
    }

    /// The callchain entry at the end of a truncated stack, if enabled.
    pub(crate) fn marker(&self, cause: TruncationCause) -> Option<u64> {
        self.marks_truncated_stacks()
            .then(|| truncated::marker_address(cause))
    }

    /// The World to which the ids in frames refer.
    #[must_use]
    pub fn world(&self) -> &'w World {
        self.world
    }

    /// Loads the symbols of an object now, instead of on first use.
    pub fn load_symbols(&self, dso: DsoId) {
        self.object(dso);
    }

    /// Runs `work` while another thread loads the symbols of the host's kernel, which are many. For `work` that resolves
    /// kernel addresses; it waits for the symbols when it needs them.
    pub fn while_loading_kernel_symbols<R>(&self, work: impl FnOnce() -> R) -> R {
        // The mapping of the host's kernel.
        let Some(kernel) = self.loaded.kernel else {
            return work();
        };
        let load = || self.load_symbols(self.world.mapping(kernel).dso);
        thread::scope(|scope| {
            // If no thread can be started, `work` loads them.
            let _loader = thread::Builder::new().spawn_scoped(scope, load);
            work()
        })
    }

    /// Resolves `ip` in `mode`. Only kernel and user mode, of the host or a guest, have mappings.
    #[must_use]
    pub fn locate(&self, at: AddressContext, mode: CpuMode, ip: u64) -> Frame {
        match self.mapping(at, mode, ip) {
            Some(mapping) => self.frame_in_mapping(mapping, ip, mode.into()),
            None => self.unmapped_frame(mode, ip),
        }
    }

    /// The frame of an unmapped address. If the address marks a truncated stack, the frame's symbol names the cause.
    #[must_use]
    pub fn unmapped_frame(&self, mode: CpuMode, ip: u64) -> Frame {
        let markers = self.loaded.markers.as_ref();
        let markers = markers.filter(|_| mode == CpuMode::User);
        markers
            .and_then(|markers| truncated::marker_frame(markers, ip))
            .unwrap_or(Frame::unknown(ip, mode.into()))
    }

    /// The mapping at `ip` in `mode`.
    ///
    /// The host's kernel extends from its first to its last symbol, if known: the record of its mapping excludes
    /// the init code, which has the outermost callers of the boot CPU's idle task.
    #[inline]
    #[must_use]
    pub fn mapping(&self, at: AddressContext, mode: CpuMode, ip: u64) -> Option<MappingId> {
        if let Some(kernel) = self.loaded.kernel
            && mode == CpuMode::Kernel
            && at.machine == Machine::Host
            && self.kernel_covers(kernel, ip)
        {
            return Some(kernel);
        }
        self.world.lookup(at.machine, mode, at.pid, at.order, ip)
    }

    /// Whether `ip` is between the first and the last symbol of the object of `kernel`, the mapping of the host's kernel.
    fn kernel_covers(&self, kernel: MappingId, ip: u64) -> bool {
        let dso = self.world.mapping(kernel).dso;
        let bounds = self.object(dso).and_then(|object| object.table.bounds());
        bounds.is_some_and(|(start, end)| (start..end).contains(&ip))
    }

    /// Resolves the data address `addr` of a sample taken in `mode`. An address without a mapping in this mode is
    /// looked up in the other mode, kernel or user, if it is in that mode's half of the address space.
    #[must_use]
    pub fn locate_data(&self, at: AddressContext, mode: CpuMode, addr: u64) -> Frame {
        let frame = self.locate(at, mode, addr);
        let in_kernel_half = CpuMode::of_address(addr) == CpuMode::Kernel;
        let other = match mode {
            CpuMode::User if in_kernel_half => CpuMode::Kernel,
            CpuMode::Kernel if !in_kernel_half => CpuMode::User,
            CpuMode::GuestUser if in_kernel_half => CpuMode::GuestKernel,
            CpuMode::GuestKernel if !in_kernel_half => CpuMode::GuestUser,
            _ => return frame,
        };
        match frame.mapping {
            Some(_) => frame,
            None => self.locate(at, other, addr),
        }
    }

    /// Appends the frames of `chain` to `out`, innermost first, at most `max_stack`. A corrupted
    /// chain adds none.
    pub fn callchain(
        &self,
        at: AddressContext,
        chain: U64s<'_>,
        max_stack: usize,
        out: &mut Vec<Frame>,
    ) {
        let start = out.len();
        let is_complete = chain::walk(chain, max_stack, |mode, ip| {
            out.push(self.locate(at, mode, ip));
        });
        if !is_complete {
            out.truncate(start);
        }
    }

    /// The frame of `ip` in a known mapping; doesn't depend on time. In the mapping of a JIT function, the symbol is that of the
    /// function, regardless of `ip`.
    #[must_use]
    pub fn frame_in_mapping(&self, mapping: MappingId, ip: u64, level: Level) -> Frame {
        let mapped = self.world.mapping(mapping);
        let address = mapped.object_address(ip);
        let dso = mapped.dso;
        let index = self
            .object(dso)
            .and_then(|object| object.find(address, mapped.function));
        // Without a symbol, an address in a module is displayed as an offset from the module's start.
        let is_module_offset = index.is_none() && self.world.dso(dso).kind == DsoKind::KernelModule;
        let address = match is_module_offset {
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

    /// The displayed name of a symbol, demangled, as in perf.
    #[must_use]
    pub fn symbol_name(&self, symbol: SymbolId) -> &str {
        self.object(symbol.dso)
            .map_or("", |object| object.name(symbol.index))
    }

    /// Start and end of a symbol, in terms of [`Frame::address`]; `None` for an unknown id.
    #[must_use]
    pub fn symbol(&self, symbol: SymbolId) -> Option<Symbol> {
        self.object(symbol.dso)?.symbol(symbol.index)
    }

    /// The symbols of an object by ascending start. In a JIT dump whose functions are identified by number instead of by address,
    /// the symbols are in the order of the numbers.
    pub fn symbols(&self, dso: DsoId) -> impl Iterator<Item = (SymbolId, Symbol)> {
        let tables = self.object(dso).into_iter();
        let symbols = tables.flat_map(|object| object.table.iter());
        symbols.map(move |(index, symbol)| (SymbolId { dso, index }, symbol))
    }

    /// Whether a symbol is an inlined function, created by [`Resolver::expand`]. Its start and end
    /// are those of the enclosing function.
    #[must_use]
    pub fn is_inlined(&self, symbol: SymbolId) -> bool {
        let object = self.object(symbol.dso);
        object.is_some_and(|object| object.is_inlined(symbol.index))
    }

    /// Appends the functions at `frame`: the inlined ones that have a name, innermost first, and then
    /// `frame` itself. Each has its source line, which for all but the innermost is the call site. Without debug information or a
    /// symbol, just `frame`.
    ///
    /// The outermost function has the name of its symbol, regardless of the debug information.
    pub fn expand<'r>(&'r self, frame: &Frame, calls: &mut Vec<CallFrame<'r>>) {
        let mut sources = Vec::new();
        let Some((inlines, symbol)) = self.source_frames(frame, &mut sources) else {
            calls.push(CallFrame {
                frame: *frame,
                source_line: self.jit_line(frame).or_else(|| self.no_line(frame)),
            });
            return;
        };
        let outermost = sources.len().saturating_sub(1);
        for (position, source) in sources.into_iter().enumerate() {
            let index = match position == outermost {
                true => Some(symbol.index),
                // `None`, which omits the inlined function, if it has no name.
                false => source.function.and_then(|function| {
                    // The index among the object's inlined functions, whose symbols follow those of its table.
                    let number = inlines.number(function, symbol.index)?;
                    self.object(symbol.dso)?.inlined_symbol(number)
                }),
            };
            let Some(index) = index else { continue };
            calls.push(CallFrame {
                frame: Frame {
                    symbol: Some(SymbolId { index, ..symbol }),
                    ..*frame
                },
                source_line: Some(inlines.source_line(source)),
            });
        }
    }

    /// Appends the functions at `frame` to `sources`, innermost first. Returns the lines and inlined functions of the frame's
    /// object, and the frame's symbol; `None` if no function was found.
    fn source_frames(
        &self,
        frame: &Frame,
        sources: &mut Vec<SourceFrame>,
    ) -> Option<(&InlineInfo, SymbolId)> {
        let symbol = frame.symbol?;
        let inlines = self.object(symbol.dso)?.inlines(self.debug_inputs())?;
        inlines.lines.frames(self.files, frame.address, sources);
        (!sources.is_empty()).then_some((inlines, symbol))
    }

    /// The source location of the instruction at `frame`, in the innermost inlined function; `None` for code that has neither an
    /// object file nor an entry in a JIT dump, and for PLT entries.
    #[must_use]
    pub fn source_line(&self, frame: &Frame) -> Option<SourceLine<'_>> {
        if let Some(line) = self.jit_line(frame) {
            return Some(line);
        }
        let object = self.object(frame.dso?)?;
        let Some(inlines) = object.inlines(self.debug_inputs()) else {
            return self.no_line(frame);
        };
        let mut sources = Vec::new();
        inlines
            .lines
            .frames(self.files, frame.address, &mut sources);
        let innermost = sources.first().map(|source| inlines.source_line(*source));
        innermost.or_else(|| self.no_line(frame))
    }

    /// The source line at a frame in a JIT function, [`SourceLine::UNKNOWN`] if it has none; `None` for other code.
    fn jit_line(&self, frame: &Frame) -> Option<SourceLine<'_>> {
        let SymbolId { dso, index } = frame.symbol?;
        let object = self.object(dso)?;
        let jit = object.jit.as_ref()?;
        let line = jit.line(index, &object.symbol(index)?, frame.address);
        Some(line.unwrap_or(SourceLine::UNKNOWN))
    }

    /// The JIT function at `frame`, and the offset in it.
    pub(crate) fn jit_function_at(&self, frame: &Frame) -> Option<(&DumpedFunction, u64)> {
        let SymbolId { dso, index } = frame.symbol?;
        let object = self.object(dso)?;
        // Called at the function's first use: gives the function the next free number.
        let function = object.jit.as_ref()?.function(index, || {
            let jit = self.loaded.jit.lock();
            let mut jit = jit.unwrap_or_else(PoisonError::into_inner);
            let number = u32::try_from(jit.len()).unwrap_or_default();
            jit.push(dso);
            ModuleId(FIRST_JIT | number)
        })?;
        let start = object.symbol(index)?.start;
        Some((function, frame.address.checked_sub(start)?))
    }

    /// The object with this number in unwinding; for the number of a JIT function, the object that it belongs to.
    pub(crate) fn dso_of(&self, module: ModuleId) -> Option<DsoId> {
        let Some(jit) = module.0.checked_sub(FIRST_JIT) else {
            return Some(DsoId(module.0));
        };
        let all = self.loaded.jit.lock();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        all.get(jit as usize).copied()
    }

    /// The location of code without a line: [`SourceLine::UNKNOWN`]; `None` for code without an object file. Entries of procedure
    /// linkage tables, which have no symbols in the object, are treated as code without an object file.
    fn no_line(&self, frame: &Frame) -> Option<SourceLine<'static>> {
        let object = self.object(frame.dso?)?;
        let symbol = frame.symbol.and_then(|symbol| self.symbol(symbol));
        let is_plt_entry = symbol.is_some_and(|symbol| symbol.is_plt_entry());
        (object.has_file() && !is_plt_entry).then_some(SourceLine::UNKNOWN)
    }

    fn debug_inputs(&self) -> DebugInputs<'_> {
        DebugInputs {
            files: self.files,
            paths: &self.loaded.paths,
            // The memory limit of debug information.
            budget: &self.loaded.budget,
        }
    }

    /// Problems with debug information so far.
    #[must_use]
    pub fn debug_findings(&self) -> Vec<rperf_symbol::SymbolFinding> {
        let objects = self.loaded.objects.iter().filter_map(OnceLock::get);
        let inlines = objects.filter_map(LoadedObject::loaded_inlines);
        inlines.flat_map(|info| info.lines.findings()).collect()
    }

    /// The file with an object's symbols, if the object is loaded and has symbols.
    #[must_use]
    pub fn symbol_file(&self, dso: DsoId) -> Option<&Path> {
        let object = self.object_if_loaded(dso)?;
        (!object.table.is_empty()).then_some(object.source.as_path())
    }

    /// The type of the file with an object's symbols, if loaded.
    #[must_use]
    pub fn symbol_origin(&self, dso: DsoId) -> Option<SymbolOrigin> {
        self.object_if_loaded(dso)?.origin
    }

    /// Whether a file with the right build-id was found for a loaded object, even a file without
    /// symbols.
    #[must_use]
    pub fn has_file(&self, dso: DsoId) -> bool {
        self.object_if_loaded(dso)
            .is_some_and(LoadedObject::has_file)
    }

    /// The objects in which an address without a symbol was looked up.
    pub fn objects_lacking_names(&self) -> impl Iterator<Item = DsoId> {
        let objects = (0..).map(DsoId).zip(&self.loaded.objects);
        let lacking = objects.filter(|(_, slot)| slot.get().is_some_and(LoadedObject::lacks_names));
        lacking.map(|(dso, _)| dso)
    }

    /// The problems with one object, if it is loaded.
    #[must_use]
    pub fn findings_of(&self, dso: DsoId) -> &[rperf_symbol::SymbolFinding] {
        self.object_if_loaded(dso)
            .map_or(&[], |object| &object.findings)
    }

    /// Problems with the objects loaded so far.
    pub fn findings(&self) -> impl Iterator<Item = ObjectFinding<'_>> {
        self.loaded
            .objects
            .iter()
            .enumerate()
            .flat_map(|(index, slot)| {
                let findings = slot.get().map_or(&[][..], |object| &object.findings);
                let dso = DsoId(u32::try_from(index).unwrap_or(u32::MAX));
                findings
                    .iter()
                    .map(move |problem| ObjectFinding { dso, problem })
            })
    }

    /// Problems to report even if not verbose, without duplicates: unusable files given for the
    /// kernel ([`SearchPaths::vmlinux`], [`SearchPaths::kallsyms_override`]), and unusable perf
    /// maps and JIT dumps, whose code has no other source of names.
    #[must_use]
    pub fn always_reported_findings(&self) -> Vec<&rperf_symbol::SymbolFinding> {
        let paths = &self.loaded.paths;
        let image = paths.vmlinux.as_ref().map(|path| paths.under_symfs(path));
        let given = [image.as_deref(), paths.kallsyms_override.as_deref()];
        let mut reported: Vec<&rperf_symbol::SymbolFinding> = Vec::new();
        for ObjectFinding { dso, problem } in self.findings() {
            // JIT dumps are loaded for the object of the perf map.
            let is_jit = matches!(self.world.dso(dso).kind, DsoKind::PerfMap(_));
            let path = problem.path();
            let is_given = path.is_some_and(|path| given.contains(&Some(path)));
            if (is_jit || is_given) && !reported.contains(&problem) {
                reported.push(problem);
            }
        }
        reported
    }

    /// The symbols of an object, loaded on first use.
    fn object(&self, dso: DsoId) -> Option<&LoadedObject> {
        if dso == truncated::MARKER_DSO {
            return self.loaded.markers.as_deref();
        }
        let slot = self.loaded.objects.get(dso.0 as usize)?;
        Some(slot.get_or_init(|| self.load(dso)))
    }

    fn object_if_loaded(&self, dso: DsoId) -> Option<&LoadedObject> {
        self.loaded.objects.get(dso.0 as usize)?.get()
    }

    /// The frame information of an object, loaded on first use.
    pub(crate) fn frame_info(&self, dso: DsoId) -> Result<&FrameInfo, TruncationCause> {
        let slot = self.loaded.frame_info.get(dso.0 as usize);
        let slot = slot.ok_or(TruncationCause::LostFile)?;
        let loaded = slot.get_or_init(|| self.load_inputs().load_frame_info(self.world.dso(dso)));
        loaded.as_ref().map_err(|cause| *cause)
    }

    /// The source of the code of `frame`'s object, found on first use. For a kernel or module it has only the segment or mapping
    /// of the frame that was first asked for.
    pub(crate) fn code_of(&self, frame: &Frame) -> Option<&CodeSource> {
        let slot = self.loaded.code.get(frame.dso?.0 as usize)?;
        slot.get_or_init(|| self.find_code(frame)).as_ref()
    }

    fn find_code(&self, frame: &Frame) -> Option<CodeSource> {
        let dso = self.world.dso(frame.dso?);
        if !matches!(dso.kind, DsoKind::Kernel | DsoKind::KernelModule) {
            let (_, file) = self.load_inputs().images(dso)?.code?;
            return Some(CodeSource::File {
                bytes: file,
                layout: OnceLock::new(),
            });
        }
        // The code of guests' kernels is not read.
        if dso.machine != Machine::Host {
            return None;
        }
        let kernel_id = self.kernel_of(dso.machine)?;
        let image = self.object(kernel_id).and_then(LoadedObject::image);
        // The code of modules is not in the kernel's image.
        let image = image.filter(|_| dso.kind == DsoKind::Kernel);
        // If the image is a file with debug information only, it has no code, and the kernel's memory is read instead.
        if let Some(code) = image.and_then(|image| KernelCode::of_image(image, frame.ip)) {
            return Some(CodeSource::Kernel(code));
        }
        let mapping = self.world.mapping(frame.mapping?);
        let kernel = self.world.dso(kernel_id);
        let code = self
            .load_inputs()
            .kernel_code(kernel, mapping.start..mapping.end);
        code.map(CodeSource::Kernel)
    }

    /// The inputs from which objects, their code and their frame information are loaded.
    pub(crate) fn load_inputs(&self) -> LoadInputs<'_> {
        LoadInputs {
            files: self.files,
            paths: &self.loaded.paths,
            vdso: self.loaded.vdso.as_ref(),
            dsos: self.world.dsos(),
        }
    }

    fn load(&self, id: DsoId) -> LoadedObject {
        let dso = self.world.dso(id);
        if dso.kind == DsoKind::KernelModule
            && let Some(table) = self.listed_module(dso)
        {
            // No file of its own, and no problems: those of kallsyms are the kernel's.
            return LoadedObject::new(table, PathBuf::new(), Vec::new());
        }
        self.load_inputs().load(dso)
    }

    /// The symbols of a module in kallsyms; `None` if the list of the kernel's object has no such module.
    fn listed_module(&self, module: &Dso) -> Option<SymbolTable> {
        let kernel = self.object(self.kernel_of(module.machine)?)?;
        kernel.module_symbols(&module.name)
    }

    /// The kernel's object of the host or a guest.
    fn kernel_of(&self, machine: Machine) -> Option<DsoId> {
        let kernel = kernel_index(self.world.dsos(), machine)?;
        Some(DsoId(u32::try_from(kernel).ok()?))
    }
}
