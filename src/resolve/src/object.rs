//! The symbols of one object: where they are read, and the names that were shown so far.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

use rperf_replay::{Dso, DsoKind, Machine};
use rperf_symbol::dwarf::FunctionId;
use rperf_symbol::kallsyms::ModuleSymbols;
use rperf_symbol::{
    BuildId, DebugSource, FileBytes, Files, Finding, Images, KernelCode, ObjectKind, ObjectRequest,
    Origin, SearchPaths, Symbol, SymbolIndex, SymbolTable, perf_map,
};
use rperf_unwind::Cause;

use crate::inline::{Inlines, Reading};
use crate::jit;
use crate::made::Made;
use crate::shown::ShownNames;

/// A loaded object.
pub(crate) struct Object {
    pub(crate) table: SymbolTable,
    pub(crate) source: PathBuf,
    /// Of which kind that file is.
    pub(crate) origin: Option<Origin>,
    pub(crate) findings: Vec<Finding>,
    modules: Vec<ModuleSymbols>,
    debug: Option<DebugSource>,
    /// For code that a runtime dumped.
    pub(crate) made: Option<Made>,
    /// Read when the first line or inlined function is asked for.
    inlines: OnceLock<Option<Box<Inlines>>>,
    names: ShownNames,
}

impl Object {
    pub(crate) fn new(table: SymbolTable, source: PathBuf, findings: Vec<Finding>) -> Self {
        Self {
            table,
            source,
            origin: None,
            findings,
            modules: Vec::new(),
            debug: None,
            made: None,
            inlines: OnceLock::new(),
            names: ShownNames::default(),
        }
    }

    /// Lines and inlined functions; `None` where the object has no debug information.
    pub(crate) fn inlines(&self, reading: Reading<'_>) -> Option<&Inlines> {
        let source = self.debug.as_ref()?;
        let read = || Inlines::open(reading, source).map(Box::new);
        self.inlines.get_or_init(read).as_deref()
    }

    /// The file that symbols and lines come from; `None` for a kernel's listing and other objects without any.
    pub(crate) fn image(&self) -> Option<&DebugSource> {
        self.debug.as_ref()
    }

    /// Whether there is a file that could have lines.
    pub(crate) fn has_file(&self) -> bool {
        self.debug.is_some()
    }

    /// Lines and inlined functions if they were asked for before.
    pub(crate) fn read_inlines(&self) -> Option<&Inlines> {
        self.inlines.get()?.as_deref()
    }

    /// The symbol that stands for the inlined function with this number.
    pub(crate) fn inlined_symbol(&self, number: u32) -> Option<SymbolIndex> {
        SymbolIndex::new(self.table.len().checked_add(number as usize)?)
    }

    /// The function that `index` stands for and the symbol around it, where it is an inlined one.
    fn inlined(&self, index: SymbolIndex) -> Option<(&Inlines, FunctionId, SymbolIndex)> {
        let number = index.as_usize().checked_sub(self.table.len())?;
        let inlines = self.read_inlines()?;
        let (function, base) = inlines.made(number)?;
        Some((inlines, function, base))
    }

    /// Whether `index` stands for an inlined function.
    pub(crate) fn is_inlined(&self, index: SymbolIndex) -> bool {
        index.as_usize() >= self.table.len()
    }

    /// The symbol at `index`, or the one that it is inlined into.
    pub(crate) fn symbol(&self, index: SymbolIndex) -> Option<Symbol> {
        let index = match self.inlined(index) {
            Some((_, _, base)) => base,
            None => index,
        };
        self.table.get(index)
    }

    pub(crate) fn name(&self, index: SymbolIndex) -> &str {
        if self.is_inlined(index) {
            let known = self.inlined(index);
            return known.map_or("", |(inlines, function, _)| {
                inlines.lines.function_name(function)
            });
        }
        self.names.get(&self.table, index)
    }

    /// The symbol at `address` in terms of the object, or that of the function with this number.
    pub(crate) fn find(&self, address: u64, function: Option<u32>) -> Option<SymbolIndex> {
        match function {
            None => self.table.find(address),
            Some(number) => SymbolIndex::new(number as usize)
                .filter(|index| index.as_usize() < self.table.len()),
        }
    }

    /// What a kernel's listing says of the module called `[name]`.
    pub(crate) fn module(&self, name: &str) -> Option<SymbolTable> {
        let name = name.strip_prefix('[')?.strip_suffix(']')?;
        let listed = self.modules.iter().find(|module| *module.name == *name)?;
        Some(listed.table.clone())
    }
}

/// Where symbols come from.
pub(crate) struct Sources<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) paths: &'a SearchPaths,
    pub(crate) vdso: Option<&'a FileBytes>,
    /// All objects of the recording.
    pub(crate) dsos: &'a [Dso],
}

impl Sources<'_> {
    /// Reads the symbols of `dso`.
    pub(crate) fn load(&self, dso: &Dso) -> Object {
        let map;
        let vdso = self.vdso_of(dso);
        let jit_dump = jit::dump_of(self.dsos, dso).map(|(_, path)| path);
        let named = dso.path();
        let (kind, path) = match dso.kind {
            DsoKind::Kernel => (ObjectKind::Kernel, &*named),
            DsoKind::KernelModule => (ObjectKind::KernelModule, &*named),
            DsoKind::User => (ObjectKind::User, &*named),
            DsoKind::Vdso | DsoKind::Vdso32 => (ObjectKind::Vdso, &*named),
            DsoKind::PerfMap(pid) => {
                map = map_file(pid);
                (ObjectKind::PerfMap, map.as_path())
            }
            DsoKind::Bpf => return announced(dso),
            _ => (ObjectKind::Other, &*named),
        };
        let build_id = dso.build_id.as_deref().and_then(BuildId::from_bytes);
        let relocation = dso.relocation.as_ref();
        let request = ObjectRequest {
            build_id: build_id.as_ref(),
            image: vdso.as_ref(),
            relocation: relocation.map(|(symbol, address)| (symbol.as_str(), *address)),
            map_start: dso.map_start,
            pid: pid(dso),
            other_pids: other_pids(dso),
            jit_dump: jit_dump.as_deref(),
            by_number: dso.has_functions,
            ..ObjectRequest::new(path, kind)
        };
        let loaded = rperf_symbol::load(self.files, self.paths, &request);
        Object {
            origin: Origin::of(&loaded, &request, self.paths),
            modules: loaded.modules,
            debug: loaded.debug,
            made: loaded.code.map(Made::new),
            ..Object::new(loaded.table, loaded.source, loaded.findings)
        }
    }

    /// The image of a `[vdso]`, as far as this machine's kernel is the recorded one or nothing is known of that.
    fn vdso_of(&self, dso: &Dso) -> Option<FileBytes> {
        match dso.kind {
            DsoKind::Vdso => self.vdso.cloned(),
            DsoKind::Vdso32 if self.vdso.is_some() && self.is_of_running_kernel() => {
                self.files.vdso32()
            }
            _ => None,
        }
    }

    fn is_of_running_kernel(&self) -> bool {
        let is_kernel = |dso: &&Dso| dso.kind == DsoKind::Kernel && dso.machine == Machine::Host;
        let kernel = self.dsos.iter().find(is_kernel);
        let build_id = kernel.and_then(|kernel| BuildId::from_bytes(kernel.build_id.as_deref()?));
        build_id.is_none_or(|id| rperf_symbol::is_running_kernel(self.files, self.paths, &id))
    }

    /// Finds the files of a user object; `None` for other objects.
    pub(crate) fn images(&self, dso: &Dso) -> Option<Images> {
        let kind = match dso.kind {
            DsoKind::User => ObjectKind::User,
            DsoKind::Vdso | DsoKind::Vdso32 => ObjectKind::Vdso,
            _ => return None,
        };
        let vdso = self.vdso_of(dso);
        let build_id = dso.build_id.as_deref().and_then(BuildId::from_bytes);
        let path = dso.path();
        let request = ObjectRequest {
            build_id: build_id.as_ref(),
            image: vdso.as_ref(),
            pid: pid(dso),
            other_pids: other_pids(dso),
            ..ObjectRequest::new(&path, kind)
        };
        Some(rperf_symbol::images(self.files, self.paths, &request))
    }

    /// Reads code at run-time addresses out of the memory of `kernel`.
    pub(crate) fn kernel_code(&self, kernel: &Dso, range: Range<u64>) -> Option<KernelCode> {
        let build_id = kernel.build_id.as_deref().and_then(BuildId::from_bytes);
        let relocation = kernel.relocation.as_ref();
        let path = kernel.path();
        let request = ObjectRequest {
            build_id: build_id.as_ref(),
            relocation: relocation.map(|(symbol, address)| (symbol.as_str(), *address)),
            ..ObjectRequest::new(&path, ObjectKind::Kernel)
        };
        rperf_symbol::kernel_code(self.files, self.paths, &request, range)
    }

    /// Reads how the frames of a user object's functions are laid out.
    pub(crate) fn load_frames(&self, dso: &Dso) -> Result<rperf_unwind::Object, Cause> {
        let images = self.images(dso).ok_or(Cause::NoFile)?;
        let (_, code) = images.code.ok_or(Cause::LostFile)?;
        let debug = images.debug.map(|(_, bytes)| bytes);
        rperf_unwind::Object::parse(code, debug.as_ref()).map_err(|_| Cause::LostFile)
    }
}

/// Where the runtime of process `pid` lists the code that it makes.
pub(crate) fn map_file(pid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/perf-{pid}.map"))
}

/// A process of this machine that mapped `dso`.
pub(crate) fn pid(dso: &Dso) -> Option<u32> {
    (dso.machine == Machine::Host && dso.pid != 0).then_some(dso.pid)
}

/// Others of them.
fn other_pids(dso: &Dso) -> &[u32] {
    match dso.machine {
        Machine::Host => &dso.other_pids,
        _ => &[],
    }
}

/// Code that a KSYMBOL record announced: one symbol, as if a list of one line named it.
fn announced(dso: &Dso) -> Object {
    let list = format!("0 {:x} {}", dso.code_len, dso.name);
    Object::new(
        perf_map::parse(list.as_bytes()).table,
        PathBuf::new(),
        Vec::new(),
    )
}
