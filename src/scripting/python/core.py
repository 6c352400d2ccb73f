# Core: names of values, and helpers for the handlers of scripts.

from collections import defaultdict


def autodict():
    return defaultdict(autodict)


flag_fields = autodict()
symbolic_fields = autodict()
trace_flags = {0: "NONE", 1: "IRQS_OFF", 2: "IRQS_NOSUPPORT", 4: "NEED_RESCHED", 8: "HARDIRQ", 16: "SOFTIRQ"}


def define_flag_field(event_name, field_name, delim):
    flag_fields[event_name][field_name]["delim"] = delim


def define_flag_value(event_name, field_name, value, field_str):
    flag_fields[event_name][field_name]["values"][value] = field_str


def define_symbolic_field(event_name, field_name):
    symbolic_fields[event_name][field_name]["values"]


def define_symbolic_value(event_name, field_name, value, field_str):
    symbolic_fields[event_name][field_name]["values"][value] = field_str


def _defined(fields, event_name, field_name):
    return fields.get(event_name, {}).get(field_name, {})


def _names(values, value):
    """The names of the bits of value, in order of the bits; the name of zero if value is 0."""
    if not value:
        return [values[0]] if 0 in values else []
    names = []
    for bits in sorted(values):
        if bits and value & bits == bits:
            names.append(values[bits])
            value &= ~bits
    return names


def flag_str(event_name, field_name, value):
    field = _defined(flag_fields, event_name, field_name)
    delim = field.get("delim")
    return (" %s " % delim if delim else "").join(_names(field.get("values", {}), value))


def symbol_str(event_name, field_name, value):
    return _defined(symbolic_fields, event_name, field_name).get("values", {}).get(value, "")


def trace_flag_str(value):
    return " | ".join(_names(trace_flags, value))


def taskState(state):
    return {0: "R", 1: "S", 2: "D", 64: "DEAD"}.get(state, "Unknown")


class EventHeaders:
    def __init__(self, common_cpu, common_secs, common_nsecs, common_pid, common_comm, common_callchain):
        self.cpu, self.secs, self.nsecs = common_cpu, common_secs, common_nsecs
        self.pid, self.comm, self.callchain = common_pid, common_comm, common_callchain

    def ts(self):
        return self.secs * 1000000000 + self.nsecs

    def ts_format(self):
        return "%d.%d" % (self.secs, self.nsecs // 1000)


for _event, _field, _delim, _values in _setup["flags"]:
    define_flag_field(_event, _field, _delim)
    for _number, _name in _values:
        define_flag_value(_event, _field, _number, _name)
for _event, _field, _values in _setup["symbols"]:
    define_symbolic_field(_event, _field)
    for _number, _name in _values:
        define_symbolic_value(_event, _field, _number, _name)
