//! Names of resolved addresses and of threads as Python strings, each created once.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyString;
use rperf_replay::{CommId, DsoId, World};
use rperf_resolve::{Frame, Resolver, SymbolId};
use rustc_hash::FxHashMap;

/// The name and addresses of a symbol: a function, or, for a data address (`addr` of a sample), possibly a variable.
#[derive(Debug)]
pub(crate) struct NamedSymbol {
    pub(crate) name: Py<PyString>,
    /// First address, in the address space of [`NamedAddress::address`].
    pub(crate) start: u64,
    /// End, exclusive.
    pub(crate) end: u64,
}

/// An object: a program, a library, the kernel.
#[derive(Debug)]
pub(crate) struct NamedDso {
    /// The name shown by `script`.
    pub(crate) name: Py<PyString>,
    /// The path; the name if there is no file.
    pub(crate) long_name: Py<PyString>,
    /// The build-id in hexadecimal digits; empty if unknown.
    pub(crate) build_id: Py<PyString>,
}

/// A resolved address.
#[derive(Debug, Clone)]
pub(crate) struct NamedAddress {
    /// The sampled address.
    pub(crate) ip: u64,
    /// The address among the object's symbols, for example a file offset; see [`Frame::address`].
    pub(crate) address: u64,
    pub(crate) symbol: Option<Arc<NamedSymbol>>,
    pub(crate) dso: Option<Arc<NamedDso>>,
}

/// The names of one recording that were needed so far. Ids can be keys, since a recording's World (the processes and mappings at
/// a time) never reuses them; only that of a live session does.
#[derive(Default)]
pub(crate) struct PythonNames {
    symbols: FxHashMap<SymbolId, Arc<NamedSymbol>>,
    dsos: FxHashMap<DsoId, Arc<NamedDso>>,
    comms: FxHashMap<CommId, Py<PyString>>,
}

impl PythonNames {
    /// The address of a frame, with its symbol and object.
    pub(crate) fn named_address(
        &mut self,
        py: Python<'_>,
        resolver: &Resolver<'_>,
        frame: &Frame,
    ) -> NamedAddress {
        NamedAddress {
            ip: frame.ip,
            address: frame.address,
            symbol: frame
                .symbol
                .and_then(|symbol| self.symbol(py, resolver, symbol)),
            dso: frame.dso.map(|dso| self.dso(py, resolver.world(), dso)),
        }
    }

    fn symbol(
        &mut self,
        py: Python<'_>,
        resolver: &Resolver<'_>,
        id: SymbolId,
    ) -> Option<Arc<NamedSymbol>> {
        if let Some(known) = self.symbols.get(&id) {
            return Some(Arc::clone(known));
        }
        let symbol = resolver.symbol(id)?;
        let named = Arc::new(NamedSymbol {
            name: PyString::new(py, resolver.symbol_name(id)).unbind(),
            start: symbol.start,
            end: symbol.end,
        });
        self.symbols.insert(id, Arc::clone(&named));
        Some(named)
    }

    fn dso(&mut self, py: Python<'_>, world: &World, id: DsoId) -> Arc<NamedDso> {
        let make = || {
            let dso = world.dso(id);
            let bytes = dso.build_id.iter().flatten();
            let build_id: String = bytes.map(|byte| format!("{byte:02x}")).collect();
            let text = |text: &str| PyString::new(py, text).unbind();
            Arc::new(NamedDso {
                name: text(&dso.name),
                long_name: text(&dso.long_name),
                build_id: text(&build_id),
            })
        };
        Arc::clone(self.dsos.entry(id).or_insert_with(make))
    }

    /// The thread name with this id.
    pub(crate) fn comm(&mut self, py: Python<'_>, world: &World, id: CommId) -> Py<PyString> {
        let make = || PyString::new(py, world.comm(id)).unbind();
        self.comms.entry(id).or_insert_with(make).clone_ref(py)
    }
}
