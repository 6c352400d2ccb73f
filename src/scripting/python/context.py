# perf_trace_context: values of the current event, by the second argument of its handler.

__all__ = ["common_pc", "common_flags", "common_lock_depth", "perf_sample_insn", "perf_sample_srcline",
           "perf_sample_srccode", "perf_set_itrace_options", "perf_config_get", "perf_script_context"]

perf_script_context = _context


def _value(context, index, absent):
    values = _state.values
    if type(context).__name__ != "Context" or values is None:
        return absent
    value = values[index]
    return absent if value is None else value


def common_pc(context):
    return _value(context, 0, 0)


def common_flags(context):
    return _value(context, 1, 0)


def common_lock_depth(context):
    return _value(context, 2, 0)


def perf_sample_insn(context):
    return _value(context, 3, None)


def perf_sample_srcline(context):
    return _value(context, 4, (None, 0))


def perf_sample_srccode(context):
    return _value(context, 5, (None, 0, None))


def perf_set_itrace_options(context, options):
    if not _setup["traced"]:
        return 0
    raise NotImplementedError("perf_set_itrace_options: use the option --itrace=%s of script instead" % options)


def perf_config_get(name):
    return _setup["config"].get(name)
