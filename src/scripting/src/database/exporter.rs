//! Assigns ids in order of time, and encodes rows as calls of the script's functions.

use rperf_replay::{DsoId, DsoKind};
use rperf_resolve::{Frame, SymbolId};
use rustc_hash::FxHashMap;

use super::calls::{DatabaseCalls, Table};
use super::items::{DatabaseItem, ExportedSample};
use super::tasks::{Tasks, ThreadIndex};
use crate::encoded_calls::EncodedCalls;
use crate::encoder::EventEncoder;
use crate::marshal::MarshalWriter;
use crate::sample_dict::binding;

/// Kinds of branches: the flags ([`BranchFlags`](rperf_lines::BranchFlags)), which are also the id of the row, and the name.
const BRANCHES: [(i64, &str); 16] = [
    (0, "no branch"),
    (3, "call"),
    (5, "return"),
    (9, "conditional jump"),
    (JUMP, "unconditional jump"),
    (67, "software interrupt"),
    (69, "return from interrupt"),
    (19, "system call"),
    (21, "return from system call"),
    (33, "asynchronous branch"),
    (99, "hardware interrupt"),
    (129, "transaction abort"),
    (TRACE_BEGIN | JUMP, "trace begin"),
    (TRACE_END | JUMP, "trace end"),
    (2051, "vm entry"),
    (4099, "vm exit"),
];
/// A branch without other flags.
const JUMP: i64 = 1;
const TRACE_BEGIN: i64 = 1 << 8;
const TRACE_END: i64 = 1 << 9;
/// The only machine: the host.
const MACHINE: i64 = 1;

/// A symbol, or an address without a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SymbolKey {
    Known(SymbolId),
    Unknown(DsoId, u64),
}

/// An address in an object.
#[derive(Debug, Clone, Copy)]
struct Address {
    object: DsoId,
    /// The symbol; for an address without one, the key under which it has been exported; `None` if it has not been.
    key: Option<SymbolKey>,
    /// The address in the object, as in its symbol table.
    address: u64,
    /// The recorded address: the sampled one, one of the callchain, or the data address.
    ip: u64,
}

/// A node in the tree of callers: the id of its parent, then the id of its symbol and 0, or 0 and its address.
type PathKey = (u64, u64, u64);

/// The ids of an address's object and symbol, and the offset in the symbol in bytes; zeros without an object.
#[derive(Debug, Default, Clone, Copy)]
struct AddressIds {
    object: u64,
    symbol: u64,
    offset: u64,
}

/// The state of an export to a database.
#[derive(Debug)]
pub struct DatabaseExporter {
    /// The tables that have a function in the script; the calls for events are the encoder's.
    calls: DatabaseCalls,
    /// The number of the first table's function.
    first_function: usize,
    has_begun: bool,
    tasks: Tasks,
    events: FxHashMap<usize, u64>,
    has_exported_machine: bool,
    objects: FxHashMap<DsoId, u64>,
    symbols: FxHashMap<SymbolKey, u64>,
    paths: FxHashMap<PathKey, u64>,
    // The last assigned ids of tables whose rows are not counted by a map above; 0 if none. `symbols` does not count
    // the rows, as it has only the first id of a symbol that was exported more than once.
    last_symbol: u64,
    last_thread: u64,
    last_comm: u64,
    last_comm_thread: u64,
    last_sample: u64,
    last_switch: u64,
    /// Rows that have not been sent.
    rows: EncodedCalls,
}

impl DatabaseExporter {
    pub(crate) fn new(calls: DatabaseCalls) -> Self {
        Self {
            calls,
            first_function: 0,
            has_begun: false,
            tasks: Tasks::default(),
            events: FxHashMap::default(),
            has_exported_machine: false,
            objects: FxHashMap::default(),
            symbols: FxHashMap::default(),
            paths: FxHashMap::default(),
            last_symbol: 0,
            last_thread: 0,
            last_comm: 0,
            last_comm_thread: 0,
            last_sample: 0,
            last_switch: 0,
            rows: EncodedCalls::default(),
        }
    }

    /// Numbers the functions of tables from `first_function` on, which grows if a stream describes further events.
    /// `marks_exec`: whether COMM records mark names of executed programs.
    pub(crate) fn set_calls(&mut self, first_function: usize, marks_exec: bool) {
        self.first_function = first_function;
        self.tasks.marks_exec |= marks_exec;
    }

    /// Sends the rows that do not depend on samples, if they have not been sent; returns whether the interpreter still reads.
    pub fn begin(&mut self, send: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.branch_types();
        }
        self.send_rows(send)
    }

    /// Sends the calls of a block (consecutive records, processed by one thread) and the rows for its samples and records, in
    /// order; returns whether the interpreter still reads.
    pub(crate) fn deliver(
        &mut self,
        items: Vec<DatabaseItem>,
        encoder: &EventEncoder<'_, '_>,
        send: &mut dyn FnMut(&[u8]) -> bool,
    ) -> bool {
        for item in items {
            match item {
                DatabaseItem::Calls(mut calls) => {
                    if !self.send_rows(send) || !calls.bytes().is_none_or(&mut *send) {
                        return false;
                    }
                }
                DatabaseItem::Sample(sample) => self.sample(&sample, encoder),
                DatabaseItem::Comm {
                    task,
                    name,
                    time,
                    is_exec,
                } => self.tasks.set_name(task, name, time, is_exec),
                DatabaseItem::Fork { task, parent, time } => self.tasks.fork(task, parent, time),
                switch @ DatabaseItem::Switch { .. } => self.switch(&switch),
            }
        }
        self.send_rows(send)
    }

    fn send_rows(&mut self, send: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let sent = self.rows.bytes().is_none_or(send);
        self.rows.clear();
        sent
    }

    /// Begins a row of this many values; `None` if the script does not have the table.
    fn row(&mut self, table: Table, values: usize) -> Option<&mut MarshalWriter> {
        if !self.calls.has(table) {
            return None;
        }
        let writer = self.rows.begin(self.first_function + table as usize);
        writer.tuple(values);
        Some(writer)
    }

    fn branch_types(&mut self) {
        let mut kinds: Vec<(i64, String)> = BRANCHES.map(|(id, name)| (id, name.to_owned())).into();
        for (id, name) in BRANCHES {
            // For a jump, `BRANCHES` already has the kinds at the beginning and at the end of a trace.
            if id == JUMP || id & (TRACE_BEGIN | TRACE_END) != 0 {
                continue;
            }
            kinds.push((id | TRACE_BEGIN, format!("trace begin / {name}")));
            kinds.push((id | TRACE_END, format!("{name} / trace end")));
        }
        for (id, name) in kinds {
            if let Some(to) = self.row(Table::BranchType, 2) {
                to.signed(id);
                to.text(name.as_bytes());
            }
        }
    }

    fn machine(&mut self) {
        if std::mem::replace(&mut self.has_exported_machine, true) {
            return;
        }
        if let Some(to) = self.row(Table::Machine, 3) {
            to.signed(MACHINE);
            // No guest: the process id is -1, and the root directory is empty.
            to.signed(-1);
            to.text(b"");
        }
    }

    fn sample(&mut self, sample: &ExportedSample, encoder: &EventEncoder<'_, '_>) {
        // The event is exported even if the sample is not: samples outside of kernel and user mode have no frame.
        let event = self.event(sample.event, encoder);
        let Some(frame) = &sample.frame else {
            return;
        };
        self.machine();
        let thread = self.tasks.find_or_create(sample.task);
        let comm = self.task(thread);
        self.last_sample += 1;
        let data_address = sample.data.as_ref().and_then(|frame| self.look_up(frame));
        let sampled_address = self.look_up(frame);
        let unknown_start: fn(&Address) -> u64 = |address| address.address;
        let sampled = self.address(sampled_address, unknown_start, encoder);
        let path = self.path(&sample.callers, encoder);
        let data = self.address(data_address, unknown_start, encoder);
        let ids = SampleIds {
            sample: self.last_sample,
            event,
            thread: self.tasks.get(thread).map_or(0, |thread| thread.id),
            comm,
            sampled,
            data,
            path,
        };
        if let Some(to) = self.row(Table::Sample, 25) {
            write_sample(sample, &ids, frame.ip, to);
        }
        if let Some((config, raw)) = &sample.synthesized
            && let Some(to) = self.row(Table::Synthesized, 3)
        {
            to.unsigned(ids.sample);
            to.signed(config.cast_signed());
            to.byte_string(raw);
        }
    }

    fn event(&mut self, index: usize, encoder: &EventEncoder<'_, '_>) -> u64 {
        if let Some(&id) = self.events.get(&index) {
            return id;
        }
        let id = self.events.len() as u64 + 1;
        self.events.insert(index, id);
        let call = encoder.calls.events.get(index).and_then(Option::as_ref);
        if let Some(to) = self.row(Table::Event, 2) {
            to.unsigned(id);
            to.text(call.map_or("", |call| call.name.as_str()).as_bytes());
        }
        id
    }

    /// Exports a thread with its newest name, and its main thread with the name of the program that the process executes.
    /// Returns the id of the program's name; 0 if the main thread is unknown.
    fn task(&mut self, thread: ThreadIndex) -> u64 {
        let main = self.tasks.main_thread(thread);
        let mut program = 0;
        if let Some(main) = main {
            self.thread(main, Some(main));
            let position = self.tasks.program_comm(main);
            let is_new_program = self.is_new_comm(main, position);
            program = self.comm(main, position);
            if is_new_program {
                self.comm_thread(program, main);
            }
        }
        if main != Some(thread) {
            let is_new_thread = self.tasks.get(thread).is_some_and(|thread| thread.id == 0);
            self.thread(thread, main);
            if is_new_thread && program != 0 {
                self.comm_thread(program, thread);
            }
        }
        if let Some(newest) = self.tasks.get(thread).map(|thread| thread.newest_comm()) {
            self.comm(thread, newest);
        }
        program
    }

    fn thread(&mut self, index: ThreadIndex, main: Option<ThreadIndex>) {
        let next = self.last_thread + 1;
        let Some(thread) = self.tasks.get_mut(index).filter(|thread| thread.id == 0) else {
            return;
        };
        thread.id = next;
        self.last_thread = next;
        let (pid, tid) = (thread.pid, thread.tid);
        let process = main.and_then(|main| self.tasks.get(main));
        let process = process.map_or(0, |thread| thread.id);
        if let Some(to) = self.row(Table::Thread, 5) {
            to.unsigned(next);
            to.signed(MACHINE);
            to.unsigned(process);
            to.signed(pid.cast_signed().into());
            to.signed(tid.cast_signed().into());
        }
    }

    fn is_new_comm(&self, thread: ThreadIndex, position: usize) -> bool {
        let thread = self.tasks.get(thread);
        let comm = thread.and_then(|thread| thread.comm(position));
        comm.is_some_and(|comm| comm.id == 0)
    }

    /// Exports a name, and returns its id.
    fn comm(&mut self, index: ThreadIndex, position: usize) -> u64 {
        let next = self.last_comm + 1;
        let Some(thread) = self.tasks.get_mut(index) else {
            return 0;
        };
        let thread_id = thread.id;
        let Some(comm) = thread.comm_mut(position) else {
            return 0;
        };
        if comm.id != 0 {
            return comm.id;
        }
        comm.id = next;
        let (name, start, is_exec) = (comm.name.clone(), comm.start, comm.is_exec);
        self.last_comm = next;
        if let Some(to) = self.row(Table::Comm, 5) {
            to.unsigned(next);
            to.text(name.as_bytes());
            to.unsigned(thread_id);
            to.signed(start.cast_signed());
            to.signed(is_exec.into());
        }
        next
    }

    fn comm_thread(&mut self, comm: u64, thread: ThreadIndex) {
        let thread = self.tasks.get(thread).map_or(0, |thread| thread.id);
        self.last_comm_thread += 1;
        let id = self.last_comm_thread;
        if let Some(to) = self.row(Table::CommThread, 3) {
            to.unsigned(id);
            to.unsigned(comm);
            to.unsigned(thread);
        }
    }

    /// Looks up the object and the symbol of an address; `None` if it has no object or mapping. As in perf, both addresses of
    /// a sample are looked up before either is exported, and all addresses of a callchain before any is exported: so no look-up
    /// finds the key of another address that is then exported without a symbol.
    fn look_up(&self, frame: &Frame) -> Option<Address> {
        let object = frame.dso.filter(|_| frame.mapping.is_some())?;
        let known = |key| self.symbols.get(&key).map(|_| key);
        let key = match frame.symbol {
            Some(id) => Some(SymbolKey::Known(id)),
            None => known(SymbolKey::Unknown(object, frame.address)),
        };
        Some(Address {
            object,
            key,
            address: frame.address,
            ip: frame.ip,
        })
    }

    /// Exports the object and the symbol of an address; without a symbol, an unknown one that begins at `unknown_start`.
    fn address(
        &mut self,
        address: Option<Address>,
        unknown_start: fn(&Address) -> u64,
        encoder: &EventEncoder<'_, '_>,
    ) -> AddressIds {
        let Some(address) = address else {
            return AddressIds::default();
        };
        let object = self.object(address.object, encoder);
        let (key, is_new) = match address.key {
            Some(key) => (key, !self.symbols.contains_key(&key)),
            None => {
                let start = unknown_start(&address);
                // Even if the key has been exported since the look-up.
                let is_new = true;
                (SymbolKey::Unknown(address.object, start), is_new)
            }
        };
        let symbol = match key {
            SymbolKey::Known(id) => encoder.resolver.symbol(id),
            SymbolKey::Unknown(..) => None,
        };
        let (start, end) = match (key, symbol) {
            (SymbolKey::Unknown(_, start), _) => (start, start),
            (_, Some(symbol)) => (symbol.start, symbol.end),
            _ => (0, 0),
        };
        let offset = address.address.wrapping_sub(start);
        if let Some(&symbol) = self.symbols.get(&key).filter(|_| !is_new) {
            return AddressIds {
                object,
                symbol,
                offset,
            };
        }
        self.last_symbol += 1;
        let id = self.last_symbol;
        self.symbols.entry(key).or_insert(id);
        if let Some(to) = self.row(Table::Symbol, 6) {
            to.unsigned(id);
            to.unsigned(object);
            to.signed(start.cast_signed());
            to.signed(end.cast_signed());
            to.unsigned(symbol.map_or(0, |symbol| binding(symbol.binding)));
            to.text(match key {
                SymbolKey::Known(id) => encoder.resolver.symbol_name(id).as_bytes(),
                SymbolKey::Unknown(..) => b"unknown",
            });
        }
        AddressIds {
            object,
            symbol: id,
            offset,
        }
    }

    fn object(&mut self, dso: DsoId, encoder: &EventEncoder<'_, '_>) -> u64 {
        if let Some(&id) = self.objects.get(&dso) {
            return id;
        }
        let id = self.objects.len() as u64 + 1;
        self.objects.insert(dso, id);
        let object = encoder.resolver.world().dso(dso);
        if let Some(to) = self.row(Table::Object, 5) {
            to.unsigned(id);
            to.signed(MACHINE);
            let short = match object.kind {
                DsoKind::KernelModule => &object.name, // as `script` shows it
                _ => &object.short_name,
            };
            to.text(short.as_bytes());
            to.text(object.long_name.as_bytes());
            to.text(encoder.build_id(dso).as_bytes());
        }
        id
    }

    /// Exports the path from the first (outermost) to the last of `callers`, and returns its id; 0 without a callchain.
    fn path(&mut self, callers: &[Frame], encoder: &EventEncoder<'_, '_>) -> u64 {
        if callers.is_empty() {
            return 0;
        }
        let addresses: Vec<Option<Address>> =
            callers.iter().map(|frame| self.look_up(frame)).collect();
        let unknown_start: fn(&Address) -> u64 = |address| address.ip;
        let mut nodes = Vec::with_capacity(callers.len());
        for (frame, mut address) in callers.iter().zip(addresses) {
            // perf also looks up the recorded address (`ip`) as if it were an address in the object.
            if let Some(address) = address.as_mut().filter(|address| address.key.is_none()) {
                let key = SymbolKey::Unknown(address.object, address.ip);
                address.key = self.symbols.get(&key).map(|_| key);
            }
            let ids = self.address(address, unknown_start, encoder);
            nodes.push(match ids.symbol {
                0 => (0, frame.ip),
                symbol => (symbol, 0),
            });
        }
        let root = self.path_node((0, 0, 0));
        nodes.into_iter().fold(root, |parent, (symbol, ip)| {
            self.path_node((parent, symbol, ip))
        })
    }

    fn path_node(&mut self, key: PathKey) -> u64 {
        if let Some(&id) = self.paths.get(&key) {
            return id;
        }
        let id = self.paths.len() as u64 + 1;
        self.paths.insert(key, id);
        let (parent, symbol, ip) = key;
        if let Some(to) = self.row(Table::CallPath, 4) {
            to.unsigned(id);
            to.unsigned(parent);
            to.unsigned(symbol);
            to.signed(ip.cast_signed());
        }
        id
    }

    fn switch(&mut self, switch: &DatabaseItem) {
        let &DatabaseItem::Switch {
            tid,
            cpu,
            time,
            other_tid,
            is_out,
            is_preempted,
        } = switch
        else {
            return;
        };
        self.machine();
        let own = self.switched(Some(tid));
        let other = self.switched(other_tid);
        // As in perf, a switch is not exported if each of its two threads is idle or unknown.
        if own.is_none_or(|own| own.is_idle) && other.is_none_or(|other| other.is_idle) {
            return;
        }
        self.last_switch += 1;
        let id = self.last_switch;
        let (from, to) = if is_out { (own, other) } else { (other, own) };
        if let Some(row) = self.row(Table::ContextSwitch, 9) {
            row.unsigned(id);
            row.signed(MACHINE);
            row.signed(time.cast_signed());
            row.signed(cpu.cast_signed().into());
            for task in [from, to] {
                row.unsigned(task.map_or(0, |task| task.thread));
                row.unsigned(task.map_or(0, |task| task.comm));
            }
            row.signed(i64::from(is_out) | i64::from(is_preempted) << 1);
        }
    }

    /// Exports a thread of a context switch; `None` if its name is unknown.
    fn switched(&mut self, tid: Option<u32>) -> Option<SwitchedTask> {
        let index = self.tasks.named(tid?)?;
        let comm = self.task(index);
        let thread = self.tasks.get(index)?;
        Some(SwitchedTask {
            thread: thread.id,
            comm,
            is_idle: thread.is_idle(),
        })
    }
}

/// A thread of a context switch: its id, the id of the name of its program, and whether it is the idle task.
#[derive(Debug, Clone, Copy)]
struct SwitchedTask {
    thread: u64,
    comm: u64,
    is_idle: bool,
}

/// The ids of the rows that a sample refers to.
struct SampleIds {
    sample: u64,
    event: u64,
    thread: u64,
    comm: u64,
    sampled: AddressIds,
    data: AddressIds,
    path: u64,
}

/// Writes the values of a sample's row.
fn write_sample(sample: &ExportedSample, ids: &SampleIds, ip: u64, to: &mut MarshalWriter) {
    to.unsigned(ids.sample);
    to.unsigned(ids.event);
    to.signed(MACHINE);
    let AddressIds {
        object,
        symbol,
        offset,
    } = ids.sampled;
    for value in [
        ids.thread,
        ids.comm,
        object,
        symbol,
        offset,
        ip,
        sample.time,
    ] {
        to.signed(value.cast_signed());
    }
    to.signed(sample.cpu.cast_signed().into());
    for value in [
        ids.data.object,
        ids.data.symbol,
        ids.data.offset,
        sample.addr,
        sample.period,
        sample.weight,
        sample.transaction,
        sample.data_source,
    ] {
        to.signed(value.cast_signed());
    }
    // The kind of branch, and whether it is in a transaction: 0, as decoded traces do not show that.
    to.unsigned(sample.branch.0.into());
    to.signed(0);
    to.unsigned(ids.path);
    // Numbers of instructions and cycles; traces that have them are not decoded.
    to.signed(0);
    to.signed(0);
    // All flags of the branch: decoded traces have only those of its kind.
    to.unsigned(sample.branch.0.into());
}
