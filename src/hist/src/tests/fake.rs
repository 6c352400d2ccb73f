//! A small recording without files: four objects, two with the same short name, each with the same four functions. The first
//! object is the kernel.

use rperf_replay::{CommId, DsoId, Order};
use rperf_resolve::{Level, SymbolId};
use rperf_symbol::{SymbolIndex, SymbolTable, perf_map};

use crate::keys::{CodeSite, KeyInput, SampleContext, Thread};
use crate::names::RecordingNames;
use crate::payloads::TextId;
use crate::properties::Properties;
use crate::values::FieldValue;

const DSOS: [&str; 4] = ["[kernel.kallsyms]", "libc.so.6", "app", "libc.so.6"];
/// Number of objects.
const OBJECTS: u32 = DSOS.len() as u32;
/// Number of functions of each object.
const FUNCTIONS: u32 = 4;
/// Number of sites in objects: functions, and one address without a symbol in each object.
const OBJECT_SITES: u32 = OBJECTS * (FUNCTIONS + 1);

/// The names of the recording.
pub(crate) struct Fake {
    table: SymbolTable,
    properties: Properties,
}

impl Fake {
    pub(crate) fn new() -> Self {
        // `twin` occurs twice, like static functions of two files.
        let map = b"100 10 main\n200 10 twin\n300 10 twin\n400 10 leaf\n";
        Self {
            table: perf_map::parse(map).table,
            properties: Properties::default(),
        }
    }

    /// The site with this number: first the functions (the first function of each object, then the second of each, ...), then an
    /// address without a symbol in each object, then addresses outside objects.
    pub(crate) fn site(&self, number: u32) -> CodeSite {
        let dso = number % OBJECTS;
        let kernel = dso == 0;
        let level = Some(if kernel { Level::Kernel } else { Level::User });
        match number / OBJECTS {
            function @ 0..FUNCTIONS => CodeSite {
                dso: Some(DsoId(dso)),
                symbol: Some(SymbolId {
                    dso: DsoId(dso),
                    index: self.index(function),
                }),
                level,
                ..CodeSite::default()
            },
            FUNCTIONS => CodeSite {
                dso: Some(DsoId(dso)),
                symbol: None,
                // Like real addresses, those in the kernel are higher than those in user space.
                address: u64::from(number) << if kernel { 58 } else { 4 },
                level,
                ..CodeSite::default()
            },
            _ => CodeSite {
                address: u64::from(number - OBJECT_SITES),
                ..CodeSite::default()
            },
        }
    }

    /// The number of sites, including three outside objects.
    pub(crate) const SITES: u32 = OBJECT_SITES + 3;

    /// Returns the index of a function (0 to 3) in the symbol table.
    fn index(&self, function: u32) -> SymbolIndex {
        let nth = self.table.iter().nth(function as usize);
        nth.expect("four functions").0
    }
}

impl RecordingNames for Fake {
    fn comm(&self, comm: CommId) -> &str {
        ["app", "perf-exec", "zsh"][comm.0 as usize % 3]
    }

    fn last_comm(&self, thread: Thread) -> &str {
        if thread.tid == 0 { "swapper" } else { "app" }
    }

    fn dso(&self, dso: DsoId) -> &str {
        DSOS[dso.0 as usize]
    }

    fn symbol(&self, symbol: SymbolId) -> &str {
        self.table.raw_name(symbol.index)
    }

    fn is_inlined(&self, _symbol: SymbolId) -> bool {
        false
    }

    fn line(&self, line: TextId) -> &str {
        ["a.c:1", "a.c:12", "??:0"][line.0 as usize % 3]
    }

    fn payload(&self, payload: TextId) -> &str {
        ["pid=1", "pid=2", ""][payload.0 as usize % 3]
    }

    fn payload_rank(&self, payload: TextId) -> u32 {
        [1, 2, 0][payload.0 as usize % 3]
    }

    fn field(&self, _input: &KeyInput<'_>) -> Option<&FieldValue> {
        None
    }

    fn properties(&self, _input: &KeyInput<'_>) -> &Properties {
        &self.properties
    }

    fn cgroup(&self, _id: u64) -> Option<&str> {
        None
    }

    fn socket(&self, cpu: u32) -> i32 {
        (cpu / 2).cast_signed()
    }

    fn shows_nanoseconds(&self) -> bool {
        false
    }

    fn is_data(&self, _symbol: SymbolId) -> bool {
        false
    }

    fn range(&self, symbol: SymbolId) -> (u64, u64) {
        let symbol = self.table.get(symbol.index);
        symbol.map_or((0, 0), |symbol| (symbol.start, symbol.end))
    }
}

/// A sample. `leaf` and `frames` are numbers of sites ([`Fake::site`]); the outermost caller is the first frame.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) order: Order,
    pub(crate) context: SampleContext,
    pub(crate) leaf: u32,
    pub(crate) level: Level,
    pub(crate) period: u64,
    pub(crate) frames: Vec<u32>,
}

/// A context with these ids. Only samples of CPU 0 have a payload, so that there are some without.
pub(crate) fn context(comm: u32, tid: u32, cpu: u32) -> SampleContext {
    SampleContext {
        comm: Some(CommId(comm)),
        thread: Thread { pid: 7, tid },
        cpu,
        payload: (cpu == 0).then_some(TextId(comm)),
        parent: None,
        values: None,
        properties: None,
    }
}
