# The script export-to-sqlite: a recording as a database, with the tables and views of perf's script.

import sqlite3
import sys

perf_db_export_mode = True
perf_db_export_calls = "calls" in sys.argv[3:]
perf_db_export_callchains = "callchains" in sys.argv[3:]

BATCH = 10000
ONLY_BRANCHES = sys.argv[2:3] == ["branches"]
HAS_PATHS = perf_db_export_calls or perf_db_export_callchains

# Columns after the id, each with the initial of its type, or the size of a text.
TYPES = {"b": "bigint", "i": "integer", "?": "boolean"}
SAMPLE = ("evsel_id:b machine_id:b thread_id:b comm_id:b dso_id:b symbol_id:b sym_offset:b ip:b time:b cpu:i to_dso_id:b "
          "to_symbol_id:b to_sym_offset:b to_ip:b ")
SAMPLE_VALUES = "period:b weight:b transaction_:b data_src:b "
SAMPLE_BRANCH = "branch_type:i in_tx:? call_path_id:b insn_count:b cyc_count:b flags:i"
TABLES = {
    "selected_events": "name:80",
    "machines": "pid:i root_dir:4096",
    "threads": "machine_id:b process_id:b pid:i tid:i",
    "comms": "comm:16 c_thread_id:b c_time:b exec_flag:?",
    "comm_threads": "comm_id:b thread_id:b",
    "dsos": "machine_id:b short_name:256 long_name:4096 build_id:64",
    "symbols": "dso_id:b sym_start:b sym_end:b binding:i name:2048",
    "branch_types": "name:80",
    "samples": SAMPLE + ("" if ONLY_BRANCHES else SAMPLE_VALUES) + SAMPLE_BRANCH,
    "context_switches": "machine_id:b time:b cpu:i thread_out_id:b comm_out_id:b thread_in_id:b comm_in_id:b flags:i",
}
if HAS_PATHS:
    TABLES["call_paths"] = "parent_id:b symbol_id:b ip:b"
if perf_db_export_calls:
    TABLES["calls"] = ("thread_id:b comm_id:b call_path_id:b call_time:b return_time:b branch_count:b call_id:b "
                       "return_id:b parent_call_path_id:b flags:i parent_id:b insn_count:b cyc_count:b")


def column_of(table, column, key):
    """The value of a column in the row of another table with the id `key`."""
    return "(SELECT %s FROM %s WHERE id = %s)" % (column, table, key)


def hexadecimal(column):
    return "printf('%%x', %s)" % column


def choice(column, names, otherwise=None):
    cases = " ".join("WHEN %s THEN '%s'" % item for item in names.items())
    return "CASE %s %s ELSE %s END" % (column, cases, otherwise or column)


IPC = "CASE WHEN cyc_count = 0 THEN 0.0 ELSE ROUND(CAST(insn_count AS FLOAT) / cyc_count, 2) END"
THREAD = [("pid", column_of("threads", "pid", "thread_id")), ("tid", column_of("threads", "tid", "thread_id"))]
COMMAND = ("command", column_of("comms", "comm", "comm_id"))
HOST = ("host_or_guest", column_of("machines_view", "host_or_guest", "machine_id"))

# Columns of views, with their expressions if they are not columns of the table.
VIEWS = {
    "machines_view": ("machines", [
        "id", "pid", "root_dir",
        ("host_or_guest", "CASE WHEN id = 0 THEN 'unknown' WHEN pid = -1 THEN 'host' ELSE 'guest' END")]),
    "dsos_view": ("dsos", ["id", "machine_id", HOST, "short_name", "long_name", "build_id"]),
    "symbols_view": ("symbols", [
        "id", "name", ("dso", column_of("dsos", "short_name", "dso_id")), "dso_id", "sym_start", "sym_end",
        ("binding", choice("binding", {0: "local", 1: "global"}, "'weak'"))]),
    "threads_view": ("threads", ["id", "machine_id", HOST, "process_id", "pid", "tid"]),
    "comm_threads_view": ("comm_threads", ["comm_id", COMMAND, "thread_id"] + THREAD),
    "samples_view": ("samples", ["id", "time", "cpu"] + THREAD + [
        COMMAND, ("event", column_of("selected_events", "name", "evsel_id")), ("ip_hex", hexadecimal("ip")),
        ("symbol", column_of("symbols", "name", "symbol_id")), "sym_offset",
        ("dso_short_name", column_of("dsos", "short_name", "dso_id")), ("to_ip_hex", hexadecimal("to_ip")),
        ("to_symbol", column_of("symbols", "name", "to_symbol_id")), "to_sym_offset",
        ("to_dso_short_name", column_of("dsos", "short_name", "to_dso_id")),
        ("branch_type_name", column_of("branch_types", "name", "branch_type")),
        "in_tx", "insn_count", "cyc_count", ("IPC", IPC), "flags"]),
    "context_switches_view": (
        "context_switches AS switches"
        " JOIN threads AS went ON went.id = thread_out_id JOIN threads AS came ON came.id = thread_in_id"
        " JOIN comms AS went_comm ON went_comm.id = comm_out_id JOIN comms AS came_comm ON came_comm.id = comm_in_id", [
            ("id", "switches.id"), ("machine_id", "switches.machine_id"), ("time", "switches.time"),
            ("cpu", "switches.cpu"), ("pid_out", "went.pid"), ("tid_out", "went.tid"), ("comm_out", "went_comm.comm"),
            ("pid_in", "came.pid"), ("tid_in", "came.tid"), ("comm_in", "came_comm.comm"),
            ("flags", choice("switches.flags", {0: "in", 1: "out", 3: "out preempt"}))]),
}
if HAS_PATHS:
    ends = []
    for prefix, end in (("", "own"), ("parent_", "caller")):
        symbol = end + ".symbol_id"
        ends += [(prefix + "id" if prefix else "id", end + ".id")] + [
            (prefix + "ip", hexadecimal(end + ".ip")), (prefix + "symbol_id", symbol),
            (prefix + "symbol", column_of("symbols", "name", symbol)),
            (prefix + "dso_id", column_of("symbols", "dso_id", symbol)),
            (prefix + "dso_short_name", column_of("symbols_view", "dso", symbol))]
    VIEWS["call_paths_view"] = ("call_paths AS own JOIN call_paths AS caller ON caller.id = own.parent_id", ends)
if perf_db_export_calls:
    VIEWS["calls_view"] = ("calls JOIN call_paths ON call_paths.id = call_path_id", [
        ("id", "calls.id"), "thread_id"] + THREAD + [
        COMMAND, "call_path_id", ("ip", hexadecimal("ip")), "symbol_id",
        ("symbol", column_of("symbols", "name", "symbol_id")),
        "call_time", "return_time", ("elapsed_time", "return_time - call_time"), "branch_count", "insn_count", "cyc_count",
        ("IPC", IPC), "call_id", "return_id",
        ("flags", choice("flags", {0: "", 1: "no call", 2: "no return", 3: "no call/return", 6: "jump"})),
        "parent_call_path_id", ("parent_id", "calls.parent_id")])


def column(text):
    name, kind = text.split(":")
    return "%s %s" % (name, TYPES.get(kind) or "varchar(%s)" % kind)


database = sqlite3.connect(sys.argv[1], isolation_level=None)
# A run that fails leaves an incomplete file, which is not used again.
database.execute("PRAGMA journal_mode = OFF")
database.execute("BEGIN")
for table, columns in TABLES.items():
    columns = ", ".join(map(column, columns.split()))
    database.execute("CREATE TABLE %s (id integer NOT NULL PRIMARY KEY, %s)" % (table, columns))
for view, (source, columns) in VIEWS.items():
    columns = [text if isinstance(text, str) else "%s AS %s" % text[::-1] for text in columns]
    database.execute("CREATE VIEW %s AS SELECT %s FROM %s" % (view, ", ".join(columns), source))


class Table(object):
    """Rows that are inserted many at a time."""

    all = []

    def __init__(self, name):
        self.width = 1 + len(TABLES[name].split())
        self.text = "INSERT INTO %s VALUES (%s)" % (name, ", ".join("?" * self.width))
        self.rows, self.count = [], 0
        Table.all.append(self)

    def add(self, *values):
        self.rows.append(values[:self.width])
        if len(self.rows) == BATCH:
            self.flush()

    def flush(self):
        self.count += len(self.rows)
        database.executemany(self.text, self.rows)
        self.rows = []


evsel_table = Table("selected_events").add
machine_table = Table("machines").add
thread_table = Table("threads").add
comm_table = Table("comms").add
comm_thread_table = Table("comm_threads").add
dso_table = Table("dsos").add
symbol_table = Table("symbols").add
branch_type_table = Table("branch_types").add
samples = Table("samples")
sample_table = samples.add
switches = Table("context_switches")
context_switch_table = switches.add
if HAS_PATHS:
    call_path_table = Table("call_paths").add
if ONLY_BRANCHES:
    def sample_table(*values):
        samples.add(*values[:15], *values[19:])


def trace_begin():
    # The rows with id 0, for unknown items.
    evsel_table(0, "unknown")
    machine_table(0, 0, "unknown")
    thread_table(0, 0, 0, -1, -1)
    comm_table(0, "unknown", 0, 0, 0)
    dso_table(0, 0, "unknown", "unknown", "")
    symbol_table(0, 0, 0, 0, 0, "unknown")
    sample_table(*[0] * 25)
    if HAS_PATHS:
        call_path_table(0, 0, 0, 0)
    if perf_db_export_calls:
        Table("calls").add(*[0] * 14)


def trace_end():
    for table in Table.all:
        table.flush()
    if perf_db_export_calls:
        database.execute("CREATE INDEX pcpid_idx ON calls (parent_call_path_id)")
        database.execute("CREATE INDEX pid_idx ON calls (parent_id)")
        database.execute("ALTER TABLE comms ADD has_calls boolean")
        database.execute("UPDATE comms SET has_calls = 1 WHERE id IN (SELECT comm_id FROM calls)")
    if switches.count == 0:
        database.execute("DROP VIEW context_switches_view")
        database.execute("DROP TABLE context_switches")
    database.execute("COMMIT")
    database.close()
    print("%s: %d samples" % (sys.argv[1], samples.count - 1))
