//! Symbols of one object, and cached displayed names.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rperf_replay::{Dso, DsoKind, Machine, perf_map_name};
use rperf_symbol::dwarf::FunctionId;
use rperf_symbol::kallsyms::ModuleSymbols;
use rperf_symbol::{
    BuildId, DebugSource, FileBytes, Files, KernelCode, ObjectImages, ObjectKind, ObjectRequest,
    SearchPaths, Symbol, SymbolFinding, SymbolIndex, SymbolOrigin, SymbolTable, perf_map,
};
use rperf_unwind::TruncationCause;

use crate::displayed_names::DisplayedNames;
use crate::inline::{DebugInputs, InlineInfo};
use crate::jit::JitObject;
use crate::jit_functions;

/// A loaded object.
pub(crate) struct LoadedObject {
    pub(crate) table: SymbolTable,
    /// The path of the file with the symbols; empty for symbols that are not from a file of their own.
    pub(crate) source: PathBuf,
    /// Type of the file `source`.
    pub(crate) origin: Option<SymbolOrigin>,
    pub(crate) findings: Vec<SymbolFinding>,
    /// For a kernel: the symbols of its modules in kallsyms.
    modules: Vec<ModuleSymbols>,
    /// The contents of the object file with the symbols, if they are from one: lines and inlined functions are looked up with it.
    debug: Option<DebugSource>,
    /// The functions of the JIT dump, if the symbols are from one.
    pub(crate) jit: Option<JitObject>,
    /// Loaded when the first line or inlined function is looked up.
    inlines: OnceLock<Option<Box<InlineInfo>>>,
    names: DisplayedNames,
    /// Whether an address without a symbol was looked up.
    lacks_names: AtomicBool,
}

impl LoadedObject {
    pub(crate) fn new(table: SymbolTable, source: PathBuf, findings: Vec<SymbolFinding>) -> Self {
        Self {
            table,
            source,
            origin: None,
            findings,
            modules: Vec::new(),
            debug: None,
            jit: None,
            inlines: OnceLock::new(),
            names: DisplayedNames::default(),
            lacks_names: AtomicBool::new(false),
        }
    }

    /// Lines and inlined functions; `None` without debug information.
    pub(crate) fn inlines(&self, inputs: DebugInputs<'_>) -> Option<&InlineInfo> {
        let source = self.debug.as_ref()?;
        let read = || InlineInfo::open(inputs, source).map(Box::new);
        self.inlines.get_or_init(read).as_deref()
    }

    /// The object file with the symbols, if any. For the kernel, code is also read from it.
    pub(crate) fn image(&self) -> Option<&DebugSource> {
        self.debug.as_ref()
    }

    /// Whether there is an object file, which could have lines.
    pub(crate) fn has_file(&self) -> bool {
        self.debug.is_some()
    }

    /// Lines and inlined functions, if already loaded.
    pub(crate) fn loaded_inlines(&self) -> Option<&InlineInfo> {
        self.inlines.get()?.as_deref()
    }

    /// The symbol index of the inlined function with this number in [`InlineInfo`]: inlined functions follow the symbols of the
    /// table.
    pub(crate) fn inlined_symbol(&self, number: u32) -> Option<SymbolIndex> {
        SymbolIndex::new(self.table.len().checked_add(number as usize)?)
    }

    /// If `index` is an inlined function: the debug information, the function in it, and the enclosing symbol.
    fn inlined(&self, index: SymbolIndex) -> Option<(&InlineInfo, FunctionId, SymbolIndex)> {
        let number = index.as_usize().checked_sub(self.table.len())?;
        let inlines = self.loaded_inlines()?;
        let (function, base) = inlines.function_and_base(number)?;
        Some((inlines, function, base))
    }

    /// Whether `index` is an inlined function.
    pub(crate) fn is_inlined(&self, index: SymbolIndex) -> bool {
        index.as_usize() >= self.table.len()
    }

    /// The symbol at `index`, or the enclosing symbol of an inlined function.
    pub(crate) fn symbol(&self, index: SymbolIndex) -> Option<Symbol> {
        let index = match self.inlined(index) {
            Some((_, _, base)) => base,
            None => index,
        };
        self.table.get(index)
    }

    pub(crate) fn name(&self, index: SymbolIndex) -> &str {
        if self.is_inlined(index) {
            let inlined = self.inlined(index);
            return inlined.map_or("", |(inlines, function, _)| {
                inlines.lines.function_name(function)
            });
        }
        self.names.get(&self.table, index)
    }

    /// The symbol at `address` of the object; if the number `function` of a JIT function is given, the symbol of that function,
    /// regardless of the address.
    pub(crate) fn find(&self, address: u64, function: Option<u32>) -> Option<SymbolIndex> {
        let index = match function {
            None => self.table.find(address),
            // Loaded with `by_number`: the table has the symbol of each function at its number.
            Some(number) => SymbolIndex::new(number as usize)
                .filter(|index| index.as_usize() < self.table.len()),
        };
        if index.is_none() && !self.lacks_names() {
            self.lacks_names.store(true, Ordering::Relaxed);
        }
        index
    }

    /// Whether an address without a symbol was looked up.
    pub(crate) fn lacks_names(&self) -> bool {
        self.lacks_names.load(Ordering::Relaxed)
    }

    /// The symbols of the module `[name]` in kallsyms.
    pub(crate) fn module_symbols(&self, name: &str) -> Option<SymbolTable> {
        let name = name.strip_prefix('[')?.strip_suffix(']')?;
        let listed = self.modules.iter().find(|module| *module.name == *name)?;
        Some(listed.table.clone())
    }
}

/// Inputs for loading objects.
pub(crate) struct LoadInputs<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) paths: &'a SearchPaths,
    /// The image of the running kernel's 64-bit vdso; not given if the files are of another machine (`--symfs`).
    pub(crate) vdso: Option<&'a FileBytes>,
    /// All objects of the recording.
    pub(crate) dsos: &'a [Dso],
}

/// The index in `dsos` of the kernel of the host or a guest.
pub(crate) fn kernel_index(dsos: &[Dso], machine: Machine) -> Option<usize> {
    dsos.iter()
        .position(|dso| dso.kind == DsoKind::Kernel && dso.machine == machine)
}

impl LoadInputs<'_> {
    /// Loads the symbols of `dso`.
    pub(crate) fn load(&self, dso: &Dso) -> LoadedObject {
        // Declared here to outlive `path`, which may borrow it.
        let map_path;
        let vdso = self.vdso_of(dso);
        let jit_dump = jit_functions::dump_of(self.dsos, dso).map(|(_, path)| path);
        let dso_path = dso.path();
        let (kind, path) = match dso.kind {
            DsoKind::Kernel => (ObjectKind::Kernel, &*dso_path),
            DsoKind::KernelModule => (ObjectKind::KernelModule, &*dso_path),
            DsoKind::User => (ObjectKind::User, &*dso_path),
            DsoKind::Vdso | DsoKind::Vdso32 => (ObjectKind::Vdso, &*dso_path),
            DsoKind::PerfMap(pid) => {
                map_path = perf_map_path(pid);
                (ObjectKind::PerfMap, map_path.as_path())
            }
            DsoKind::Bpf => return ksymbol_object(dso),
            _ => (ObjectKind::Other, &*dso_path),
        };
        let build_id = dso.build_id.as_deref().and_then(BuildId::from_bytes);
        // The kernel's build-id selects the kallsyms with a module's symbols.
        let is_module = kind == ObjectKind::KernelModule;
        let kernel_build_id = is_module
            .then(|| self.kernel_build_id(dso.machine))
            .flatten();
        let relocation = dso.relocation.as_ref();
        let request = ObjectRequest {
            build_id: build_id.as_ref(),
            kernel_build_id: kernel_build_id.as_ref(),
            image: vdso.as_ref(),
            relocation: relocation.map(|(symbol, address)| (symbol.as_str(), *address)),
            map_start: dso.map_start,
            pid: pid(dso),
            other_pids: other_pids(dso),
            jit_dump: jit_dump.as_deref(),
            // If JIT functions have mappings, each mapping has the function's number, for [`LoadedObject::find`].
            by_number: dso.has_functions,
            ..ObjectRequest::new(path, kind)
        };
        let loaded = rperf_symbol::load(self.files, self.paths, &request);
        LoadedObject {
            origin: SymbolOrigin::of(&loaded, &request, self.paths),
            modules: loaded.modules,
            debug: loaded.debug,
            jit: loaded.code.map(JitObject::new),
            ..LoadedObject::new(loaded.table, loaded.source, loaded.findings)
        }
    }

    /// The image of a vdso; `None` for other objects. For 64 bits, it is [`LoadInputs::vdso`]. For 32 bits, it is that of the
    /// running kernel, but `None` if [`LoadInputs::vdso`] is not given, or if the running kernel is known to differ from the
    /// recorded one.
    fn vdso_of(&self, dso: &Dso) -> Option<FileBytes> {
        match dso.kind {
            DsoKind::Vdso => self.vdso.cloned(),
            DsoKind::Vdso32 if self.vdso.is_some() && self.is_of_running_kernel() => {
                self.files.vdso32()
            }
            _ => None,
        }
    }

    /// Whether the recorded kernel is the running one; also true if its build-id is not recorded.
    fn is_of_running_kernel(&self) -> bool {
        let build_id = self.kernel_build_id(Machine::Host);
        build_id.is_none_or(|id| rperf_symbol::is_running_kernel(self.files, self.paths, &id))
    }

    /// The recorded build-id of the kernel of the host or a guest.
    fn kernel_build_id(&self, machine: Machine) -> Option<BuildId> {
        let kernel = self.dsos.get(kernel_index(self.dsos, machine)?)?;
        BuildId::from_bytes(kernel.build_id.as_deref()?)
    }

    /// Finds the files of a user object or vdso; `None` for other objects.
    pub(crate) fn images(&self, dso: &Dso) -> Option<ObjectImages> {
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
        Some(rperf_symbol::object_images(
            self.files, self.paths, &request,
        ))
    }

    /// Reads the code in `range`, or its available start, from the memory of `kernel`.
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

    /// Loads the frame information of a user object or vdso.
    pub(crate) fn load_frame_info(
        &self,
        dso: &Dso,
    ) -> Result<rperf_unwind::FrameInfo, TruncationCause> {
        let images = self.images(dso).ok_or(TruncationCause::NoFile)?;
        let (_, code) = images.code.ok_or(TruncationCause::LostFile)?;
        let debug = images.debug.map(|(_, bytes)| bytes);
        rperf_unwind::FrameInfo::parse(code, debug.as_ref()).map_err(|_| TruncationCause::LostFile)
    }
}

/// The perf map of process `pid`.
pub(crate) fn perf_map_path(pid: u32) -> PathBuf {
    PathBuf::from(perf_map_name(pid))
}

/// A process of the host that mapped `dso`; `None` for objects of guests, or if unknown.
pub(crate) fn pid(dso: &Dso) -> Option<u32> {
    (dso.machine == Machine::Host && dso.pid != 0).then_some(dso.pid)
}

/// The other processes that use `dso`, if it is of the host.
fn other_pids(dso: &Dso) -> &[u32] {
    match dso.machine {
        Machine::Host => &dso.other_pids,
        _ => &[],
    }
}

/// Code from a KSYMBOL record: an object with one symbol.
fn ksymbol_object(dso: &Dso) -> LoadedObject {
    let table = perf_map::kernel_function_table(dso.code_len, dso.name.as_bytes());
    LoadedObject::new(table, PathBuf::new(), Vec::new())
}

#[cfg(test)]
mod tests {
    use rperf_symbol::MemoryFiles;

    use super::*;

    fn dso(kind: DsoKind, name: &str, build_id: Option<u8>) -> Dso {
        Dso {
            name: name.to_owned(),
            short_name: name.to_owned(),
            long_name: name.to_owned(),
            kind,
            machine: Machine::Host,
            build_id: build_id.map(|byte| vec![byte; 20]),
            relocation: None,
            map_start: 0,
            code_len: 0,
            pid: 0,
            other_pids: Vec::new(),
            has_functions: false,
        }
    }

    #[test]
    fn modules_have_symbols_of_the_running_kernel_unless_another_was_recorded() {
        // `Elf64_Nhdr`: the lengths of owner and build-id, and the type NT_GNU_BUILD_ID.
        let mut notes: Vec<u8> = [4_u32, 20, 3]
            .into_iter()
            .flat_map(u32::to_ne_bytes)
            .collect();
        notes.extend(b"GNU\0");
        notes.extend([1; 20]);
        let listing = "ffffffff81000000 T _text\nffffffffc0000000 t probe\t[mod]\n";
        let mut files = MemoryFiles::new();
        files.insert("/sys/kernel/notes", notes);
        files.insert("/proc/kallsyms", listing.as_bytes().to_vec());
        for (recorded, expected) in [
            (None, Some("probe")),
            (Some(1), Some("probe")),
            (Some(3), None),
        ] {
            let dsos = [
                dso(DsoKind::Kernel, "[kernel.kallsyms]", recorded),
                dso(DsoKind::KernelModule, "[mod]", None),
            ];
            let inputs = LoadInputs {
                files: &files,
                paths: &SearchPaths::new(None),
                vdso: None,
                dsos: &dsos,
            };
            let table = inputs.load(&dsos[1]).table;
            let symbol = table.find(0xffff_ffff_c000_0010);
            let name = symbol.map(|symbol| table.name(symbol).into_owned());
            assert_eq!(name.as_deref(), expected, "{recorded:?}");
        }
    }
}
