# Runs a script for rperf: imports it, reports its functions, and calls them for the events that arrive on a pipe.
# The syntax is that of Python 2 and 3, so that an old interpreter reaches the check of its version.
import sys

if sys.path and sys.path[0] == "":
    del sys.path[0]
if sys.version_info < (3, 6):
    sys.stderr.write("rperf: scripts need Python 3.6 or later, this is %d.%d\n" % sys.version_info[:2])
    sys.exit(1)

import ast
import json
import marshal
import os
import signal
import types
from functools import partial
from importlib.machinery import ModuleSpec
from struct import unpack

SPECIAL = ("trace_unhandled", "process_event", "context_switch", "throttle", "unthrottle", "auxtrace_error",
           "aux_output_hw_id", "stat__interval")
# Functions that get rows of tables if the script sets perf_db_export_mode.
TABLES = ("evsel_table", "machine_table", "thread_table", "comm_table", "comm_thread_table", "dso_table",
          "symbol_table", "branch_type_table", "sample_table", "call_path_table", "context_switch_table", "synth_data")
# Names whose use makes it impossible to tell which variables a function reads.
OPAQUE = ("locals", "vars", "eval", "exec", "dir", "_getframe", "currentframe", "stack", "settrace", "setprofile")


class Stop(Exception):
    pass


class State(object):
    stopped = False
    # The calls of the current block that are left.
    remaining = []
    # Values of the current event for the functions of perf_trace_context.
    values = None


class Context(object):
    """The second argument of handlers, for the functions of perf_trace_context."""


CONTEXT = Context()


def read_block(pipe):
    size = pipe.read(4)
    if len(size) < 4:
        # A pipe that ends before the end of the events: rperf has failed, and has reported why.
        quit_now(1)
    size = int.from_bytes(size, "little")
    data = pipe.read(size)
    if len(data) < size:
        quit_now(1)
    return marshal.loads(data) if size else None


def flush():
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        return False
    return True


def quit_now(status):
    if not flush():
        status = status or 1
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
    os._exit(status)


def exit_status(error):
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xff
    sys.stderr.write("%s\n" % (code,))
    return 1


def script_frames(error):
    """The traceback without the frames of this file at its start."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    return trace


def report(error, message, status):
    """Prints the traceback without the frames of this file, and ends with this status, unless the script exited, was
    interrupted or lost its output."""
    if isinstance(error, SystemExit):
        leave(exit_status(error))
    if isinstance(error, BrokenPipeError) or isinstance(error, OSError) and error.errno == 32:
        os._exit(141)
    if isinstance(error, KeyboardInterrupt):
        leave(130)
    trace = script_frames(error)
    if trace is None and isinstance(error.__cause__, StopIteration):
        # The traceback of a handler that a generator calls.
        error = error.__cause__
        trace = script_frames(error)
    flush()
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)
    sys.stderr.write("%s\n" % message)
    leave(status)


def leave(status):
    """Ends as the interpreter does: functions registered with atexit run, and threads are joined."""
    if not flush():
        os._exit(status or 1)
    sys.stderr.flush()
    sys.exit(status)


class Finder(object):
    """Provides the modules of perf's scripts, unless the script's folder has its own."""

    def __init__(self, folder, sources, refused):
        self.folder = folder
        self.sources = sources
        self.refused = refused

    def find_spec(self, name, path=None, target=None):
        if name not in self.sources and name not in self.refused:
            return None
        if self.folder is not None and os.path.exists(os.path.join(self.folder, name + ".py")):
            return None
        if name in self.refused:
            raise ImportError(self.refused[name])
        return ModuleSpec(name, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__dict__["_state"] = State
        module.__dict__["_setup"] = SETUP
        module.__dict__["_context"] = CONTEXT
        exec(compile(self.sources[module.__name__], "<%s>" % module.__name__, "exec"), module.__dict__)


class DatabaseFinder(object):
    """Provides PySide's access to databases if PySide is not installed."""

    NAMES = ("PySide2", "PySide2.QtSql", "PySide", "PySide.QtSql")

    def __init__(self, source):
        self.source = source

    def find_spec(self, name, path=None, target=None):
        if name not in self.NAMES:
            return None
        return ModuleSpec(name, self, is_package="." not in name)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        if module.__name__.endswith(".QtSql"):
            exec(compile(self.source, "<QtSql>", "exec"), module.__dict__)


SETUP = {}


def key_uses(name, node, read_key):
    """The keys of the dict `name` that a function reads: {key: keys or None}, or None for all of them."""
    parents = {}
    for parent in ast.walk(node):
        for child in ast.iter_child_nodes(parent):
            parents[child] = parent
    keys = {}
    for use in ast.walk(node):
        if not (isinstance(use, ast.Name) and use.id == name):
            continue
        key_use = read_key(use, parents)
        if key_use is None or not isinstance(use.ctx, ast.Load):
            return None
        keys[key_use[0]] = None if key_use[1] is None or keys.get(key_use[0], ()) is None \
            else sorted(set(keys.get(key_use[0], [])) | set(key_use[1]))
    return keys


def constant_of(node):
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        index = node.slice
        if type(index).__name__ == "Index":
            index = index.value
        text = getattr(index, "value", getattr(index, "s", None))
        if type(index).__name__ in ("Constant", "Str") and isinstance(text, str):
            return text
    return None


def key_of(use, parents):
    """The key of `use["key"]`, `"key" in use` and `use.get("key")`, with the keys read in its value."""
    parent = parents.get(use)
    if isinstance(parent, ast.Compare) and len(parent.ops) == 1 and isinstance(parent.ops[0], (ast.In, ast.NotIn)):
        text = getattr(parent.left, "value", getattr(parent.left, "s", None))
        return (text, []) if parent.comparators[0] is use and isinstance(text, str) else None
    if isinstance(parent, ast.Subscript) and parent.value is use:
        key = constant_of(parent)
        if key is None:
            return None
        inner = parents.get(parent)
        if isinstance(inner, ast.Subscript) and inner.value is parent:
            within = constant_of(inner)
            if within is not None:
                return (key, [within])
        return (key, None)
    if isinstance(parent, ast.Attribute) and parent.attr == "get":
        call = parents.get(parent)
        if isinstance(call, ast.Call) and call.func is parent and call.args:
            text = getattr(call.args[0], "value", getattr(call.args[0], "s", None))
            return (text, None) if isinstance(text, str) else None
    return None


def describe(name, function, nodes, path):
    """The parameters that the function reads, and the keys of its last one."""
    code = getattr(function, "__code__", None)
    known = {"name": name, "arguments": code.co_argcount if code is not None else -1, "read": None, "keys": None}
    if code is not None:
        known["parameters"] = code.co_varnames[:code.co_argcount]
    node = nodes.get(name)
    if code is None or node is None or code.co_filename != path or code.co_firstlineno != node.lineno \
            or node.decorator_list or node.args.vararg or node.args.kwarg or node.args.kwonlyargs:
        return known
    names = {use.id for use in ast.walk(node) if isinstance(use, ast.Name)}
    names |= {use.attr for use in ast.walk(node) if isinstance(use, ast.Attribute)}
    if names.intersection(OPAQUE):
        return known
    parameters = [argument.arg for argument in node.args.args]
    known["read"] = [parameter in names for parameter in parameters]
    if parameters:
        known["keys"] = key_uses(parameters[-1], node, key_of)
    return known


def context_names(tree, main):
    """The functions of perf_trace_context that the script may call."""
    module = sys.modules.get("perf_trace_context")
    if module is None:
        return []
    names = [name for name in module.__all__ if name.startswith(("common_", "perf_sample_"))]
    own = {id(module)} | {id(getattr(module, name)) for name in names}
    for other in list(sys.modules.values()):
        if other is main or other is module or not getattr(other, "__file__", None):
            continue
        if any(id(value) in own for value in list(vars(other).values())):
            return names
    used = {use.id for use in ast.walk(tree) if isinstance(use, ast.Name)}
    used |= {use.attr for use in ast.walk(tree) if isinstance(use, ast.Attribute)}
    return names if used.intersection(OPAQUE + ("getattr", "globals")) else [n for n in names if n in used]


def find_functions(main, tree, path):
    nodes = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            nodes[node.name] = node
    functions = []
    for name, value in list(main.__dict__.items()):
        if callable(value) and not name.startswith("__") and \
                ("__" in name or name in SPECIAL or name in TABLES):
            functions.append(describe(name, value, nodes, path))
    return functions


def convert(function, arrays):
    """Arrays of a tracepoint arrive as bytes, handlers get them as bytearray."""
    def call(*values):
        values = list(values)
        for index in arrays:
            if type(values[index]) is bytes:
                values[index] = bytearray(values[index])
        function(*values)
    return call


def convert_fields(function):
    def call(fields, *rest):
        for name, value in fields.items():
            if type(value) is bytes:
                fields[name] = bytearray(value)
        function(fields, *rest)
    return call


def with_context(function):
    def call(values, *rest):
        State.values = values
        function(*rest)
    return call


class ColumnCalls(object):
    """Calls of a handler whose arguments arrive as columns: only those that it reads, the others are None."""

    SOURCE = """
def run(columns, function=function, event=event, context=context):
    for {targets} in {rows}:
        function({arguments})
def steps(columns, function=function, event=event, context=context):
    for {targets} in {rows}:
        function({arguments})
        yield
"""

    def __init__(self, function, event, count, columns):
        arguments = ["event", "context"] + ["None"] * (count - 2)
        self.codes = []
        for position, code in columns:
            arguments[position] = "value%d" % position
            self.codes.append(code)
        targets = ", ".join(arguments[position] for position, _ in columns)
        source = self.SOURCE.format(targets=targets or "_", arguments=", ".join(arguments),
                                    rows="zip(*columns)" if len(columns) > 1 else "columns[0]")
        own = {"function": function, "event": event, "context": CONTEXT}
        exec(compile(source, "<calls>", "exec"), globals(), own)
        self.run, self.steps = own["run"], own["steps"]

    def decode(self, count, columns):
        values = [self.array(column) if code is None else unpack("%d%s" % (count, code), column)
                  for code, column in zip(self.codes, columns)]
        return values or [[None] * count]

    def array(self, column):
        # Arrays of a tracepoint arrive as bytes, handlers get them as bytearray.
        return [bytearray(value) if type(value) is bytes else value for value in column]


def callee(main, kind, name, event, arrays, has_context):
    if kind == "none":
        return None
    if kind == "columns":
        argument_count, columns = arrays, has_context
        return ColumnCalls(main.__dict__[name], event, argument_count, columns)
    function = main.__dict__[name]
    if kind == "direct":
        call = function
    else:
        call = partial(function, event, CONTEXT)
        if kind == "unhandled":
            call = convert_fields(call) if arrays else call
        elif arrays:
            call = convert(call, arrays)
    return with_context(call) if has_context else call


def call_each(calls, block):
    for index, values in block:
        calls[index](*values)
        yield


def call_in_columns(calls, block):
    """Makes the calls of a block. Ctrl-C empties the list of calls that are left, which ends the loop."""
    groups, order = block["groups"], block["order"]
    decoded = [(calls[number], calls[number].decode(count, columns)) for number, count, columns in groups]
    if order is None and groups:
        call, columns = decoded[0]
        columns[0] = State.remaining = list(columns[0])
        if not State.stopped:
            call.run(columns)
        return
    steps = [call_each(calls, block["calls"]).__next__]
    steps += [call.steps(columns).__next__ for call, columns in decoded]
    order = unpack("%dH" % (len(order) // 2), order) if order is not None else [0] * len(block["calls"])
    State.remaining = remaining = [steps[place] for place in order]
    if not State.stopped:
        for step in remaining:
            step()


def call_for_all(main, pipe):
    calls = []
    while not State.stopped:
        block = read_block(pipe)
        if block is None:
            break
        if type(block) is tuple:
            # A stream may describe further events later.
            calls = [callee(main, *entry) for entry in block]
        elif type(block) is dict and block["groups"]:
            call_in_columns(calls, block)
        else:
            for index, values in block["calls"] if type(block) is dict else block:
                calls[index](*values)
                if State.stopped:
                    break


def interrupted(number, frame):
    if State.stopped:
        raise KeyboardInterrupt
    State.stopped = True
    del State.remaining[:]


def run():
    incoming, outgoing = int(sys.argv[1]), int(sys.argv[2])
    pipe = os.fdopen(incoming, "rb", 1 << 18)
    hello = read_block(pipe)
    SETUP.update(hello)
    path = hello["script"]
    for number in (incoming, outgoing):
        os.set_inheritable(number, False)
    sys.argv = [path] + hello["arguments"]
    source, folder = hello["source"], None
    if source is None:
        folder = os.path.dirname(os.path.realpath(path))
        sys.path.insert(0, folder)
    modules = dict(hello["modules"])
    # Installed packages are found first.
    sys.meta_path.append(DatabaseFinder(modules.pop("QtSql")))
    sys.meta_path.insert(0, Finder(folder, modules, hello["refused"]))
    main = types.ModuleType("__main__")
    main.__file__ = path
    sys.modules["__main__"] = main
    main.perf_script_context = CONTEXT
    signal.signal(signal.SIGINT, interrupted)
    # rperf blocks SIGINT, and its children inherit the signal mask.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    failed = "Error running python script %s" % path
    try:
        if source is None:
            with open(path, "rb") as file:
                source = file.read()
        tree = ast.parse(source, path)
        code = compile(tree, path, "exec", 0, True)
    except (OSError, SyntaxError, ValueError) as error:
        error.__traceback__ = None
        report(error, failed, 255)
    try:
        exec(code, main.__dict__)
    except BaseException as error:
        report(error, failed, 255)
    answer = {"functions": find_functions(main, tree, path), "context": context_names(tree, main),
              "database": {name: bool(main.__dict__.get("perf_db_export_" + name))
                           for name in ("mode", "calls", "callchains")}}
    with os.fdopen(outgoing, "w") as file:
        # The end of the line ends the answer: a program that started this one may keep the pipe open.
        file.write(json.dumps(answer) + "\n")
    try:
        for name in ("trace_begin", None, "trace_end"):
            if name is None:
                call_for_all(main, pipe)
            elif name in main.__dict__:
                main.__dict__[name]()
    except BaseException as error:
        # The status that a shell shows for an interpreter that aborts, as perf's does.
        report(error, "problem in Python trace event handler", 134)
    leave(0)


run()
