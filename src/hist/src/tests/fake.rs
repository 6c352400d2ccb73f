//! A small recording without files: four objects, two of one short name, a few functions in each.

use rperf_replay::{CommId, DsoId, Order};
use rperf_resolve::{Level, SymbolId};
use rperf_symbol::{SymbolIndex, SymbolTable, perf_map};

use crate::facts::Facts;
use crate::keys::{Context, Site, Subject, Thread};
use crate::names::Names;
use crate::payloads::PayloadId;
use crate::values::Value;

const DSOS: [&str; 4] = ["[kernel.kallsyms]", "libc.so.6", "app", "libc.so.6"];

/// Names of everything below.
pub(crate) struct Fake {
    table: SymbolTable,
    facts: Facts,
}

impl Fake {
    pub(crate) fn new() -> Self {
        // `twin` is there twice, as a static function of two files is.
        let map = b"100 10 main\n200 10 twin\n300 10 twin\n400 10 leaf\n";
        Self {
            table: perf_map::parse(map).table,
            facts: Facts::default(),
        }
    }

    /// The site with that number: functions of each object, then bare addresses in an object and in none.
    pub(crate) fn site(&self, number: u32) -> Site {
        let dso = number % 4;
        let kernel = dso == 0;
        let level = Some(if kernel { Level::Kernel } else { Level::User });
        match number / 4 {
            function @ 0..4 => Site {
                dso: Some(DsoId(dso)),
                symbol: Some(SymbolId {
                    dso: DsoId(dso),
                    index: self.index(function),
                }),
                level,
                ..Site::default()
            },
            4 => Site {
                dso: Some(DsoId(dso)),
                symbol: None,
                address: u64::from(number) << if kernel { 58 } else { 4 },
                level,
                ..Site::default()
            },
            _ => Site {
                address: u64::from(number - 20),
                ..Site::default()
            },
        }
    }

    /// How many sites there are.
    pub(crate) const SITES: u32 = 23;

    fn index(&self, function: u32) -> SymbolIndex {
        let nth = self.table.iter().nth(function as usize);
        nth.expect("four functions").0
    }
}

impl Names for Fake {
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

    fn line(&self, line: PayloadId) -> &str {
        ["a.c:1", "a.c:12", "??:0"][line.0 as usize % 3]
    }

    fn payload(&self, payload: PayloadId) -> &str {
        ["pid=1", "pid=2", ""][payload.0 as usize % 3]
    }

    fn payload_rank(&self, payload: PayloadId) -> u32 {
        [1, 2, 0][payload.0 as usize % 3]
    }

    fn field(&self, _subject: &Subject<'_>) -> Option<&Value> {
        None
    }

    fn facts(&self, _subject: &Subject<'_>) -> &Facts {
        &self.facts
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

/// One sample.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) order: Order,
    pub(crate) context: Context,
    pub(crate) leaf: u32,
    pub(crate) level: Level,
    pub(crate) period: u64,
    pub(crate) frames: Vec<u32>,
}

/// A context by small numbers.
pub(crate) fn context(comm: u32, tid: u32, cpu: u32) -> Context {
    Context {
        comm: Some(CommId(comm)),
        thread: Thread { pid: 7, tid },
        cpu,
        payload: (cpu == 0).then_some(PayloadId(comm)),
        parent: None,
        values: None,
        facts: None,
    }
}
