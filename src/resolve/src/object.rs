//! The symbols of one object: where they are read, and the names that were shown so far.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rperf_replay::{Dso, DsoKind};
use rperf_symbol::kallsyms::ModuleSymbols;
use rperf_symbol::{
    BuildId, FileBytes, Files, Finding, ObjectKind, ObjectRequest, SearchPaths, SymbolIndex,
    SymbolTable, perf_map,
};

/// A name in source form, once it was asked for; `None` inside where the name stands as it is.
type Name = OnceLock<Option<Box<str>>>;

/// A loaded object. Names in source form are kept: making one takes microseconds, and a report shows the same few.
pub(crate) struct Object {
    pub(crate) table: SymbolTable,
    pub(crate) source: PathBuf,
    pub(crate) findings: Vec<Finding>,
    modules: Vec<ModuleSymbols>,
    /// One for each symbol, made when the first name is asked for.
    names: OnceLock<Box<[Name]>>,
}

impl Object {
    pub(crate) fn new(table: SymbolTable, source: PathBuf, findings: Vec<Finding>) -> Self {
        Self {
            table,
            source,
            findings,
            modules: Vec::new(),
            names: OnceLock::new(),
        }
    }

    pub(crate) fn name(&self, index: SymbolIndex) -> &str {
        let names = self
            .names
            .get_or_init(|| (0..self.table.len()).map(|_| OnceLock::new()).collect());
        let made = names.get(index.as_usize()).and_then(|place| {
            place
                .get_or_init(|| match self.table.name(index) {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(name) => Some(name.into_boxed_str()),
                })
                .as_deref()
        });
        made.unwrap_or_else(|| self.table.raw_name(index))
    }

    /// The start of the first symbol and the end of the last.
    pub(crate) fn bounds(&self) -> Option<(u64, u64)> {
        let (_, first) = self.table.iter().next()?;
        let (_, last) = self.table.iter().next_back()?;
        Some((first.start, last.end))
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
}

impl Sources<'_> {
    /// Reads the symbols of `dso`.
    pub(crate) fn load(&self, dso: &Dso) -> Object {
        let map_file;
        let (kind, path) = match dso.kind {
            DsoKind::Kernel => (ObjectKind::Kernel, Path::new(&dso.long_name)),
            DsoKind::KernelModule => (ObjectKind::KernelModule, Path::new(&dso.long_name)),
            DsoKind::User => (ObjectKind::User, Path::new(&dso.long_name)),
            DsoKind::Vdso => (ObjectKind::Vdso, Path::new(&dso.long_name)),
            DsoKind::PerfMap(pid) => {
                map_file = PathBuf::from(format!("/tmp/perf-{pid}.map"));
                (ObjectKind::PerfMap, map_file.as_path())
            }
            DsoKind::Bpf => return announced(dso),
            _ => (ObjectKind::Other, Path::new(&dso.long_name)),
        };
        let build_id = dso.build_id.as_deref().and_then(BuildId::from_bytes);
        let relocation = dso.relocation.as_ref();
        let request = ObjectRequest {
            build_id: build_id.as_ref(),
            image: self.vdso.filter(|_| dso.kind == DsoKind::Vdso),
            relocation: relocation.map(|(symbol, address)| (symbol.as_str(), *address)),
            map_start: dso.map_start,
            ..ObjectRequest::new(path, kind)
        };
        let loaded = rperf_symbol::load(self.files, self.paths, &request);
        Object {
            modules: loaded.modules,
            ..Object::new(loaded.table, loaded.source, loaded.findings)
        }
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
