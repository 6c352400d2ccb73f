//! `script -g python`: generates a script with a handler for each tracepoint of a recording, as a template.

use std::fmt::Write as _;

use rperf_tracepoint::{Field, Tracepoint, ValueNames};

/// The beginning of the script, up to the first handler.
const START: &str = r#"# Handlers for the events of a recording, written by script -g python: a template for your own script.
# Each handler gets the values that all events have, then the fields of its event. The functions of
# perf_trace_context get the context: common_pc(context), common_flags(context), common_lock_depth(context).
# The last parameter may be removed: the dict of the sample is passed only to handlers that take it.

from __future__ import print_function

import os
import sys

sys.path.append(os.environ['PERF_EXEC_PATH'] + '/scripts/python/Perf-Trace-Util/lib/Perf/Trace')

from perf_trace_context import *
from Core import *


def trace_begin():
    print("in trace_begin")


def trace_end():
    print("in trace_end")
"#;

/// The end of the script: the function for other events, and functions that the handlers call.
const END: &str = r#"

def trace_unhandled(event_name, context, event_fields_dict, perf_sample_dict):
    print(get_dict_as_string(event_fields_dict))
    print('Sample: {' + get_dict_as_string(perf_sample_dict['sample'], ', ') + '}')


def print_header(event_name, cpu, secs, nsecs, pid, comm):
    print("%-20s %5u %05u.%09u %8u %-20s " % (event_name, cpu, secs, nsecs, pid, comm), end="")


def print_sample(perf_sample_dict, callchain):
    print('Sample: {' + get_dict_as_string(perf_sample_dict['sample'], ', ') + '}')
    for frame in callchain:
        text = "\t[%x]" % frame['ip']
        if 'sym' in frame:
            text += " " + frame['sym']['name']
            text += "+0x%x" % frame['sym_off'] if 'sym_off' in frame else ""
            text += " (%s)" % frame['dso'] if 'dso' in frame else ""
        print(text)
    print()


def get_dict_as_string(a_dict, delimiter=' '):
    return delimiter.join('%s=%s' % pair for pair in sorted(a_dict.items()))
"#;

/// The parameters before those of an event's fields.
pub(crate) const PARAMETERS: [&str; 8] = [
    "event_name",
    "context",
    "common_cpu",
    "common_secs",
    "common_nsecs",
    "common_pid",
    "common_comm",
    "common_callchain",
];
/// The last parameter.
const SAMPLE: &str = "perf_sample_dict";
/// Keywords of Python, which cannot be names of parameters.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Returns a script in Python with a handler for each tracepoint.
#[must_use]
pub fn python_script<'t>(tracepoints: impl IntoIterator<Item = &'t Tracepoint>) -> String {
    let mut text = START.to_owned();
    for tracepoint in tracepoints {
        text += &handler(tracepoint);
    }
    text + END
}

fn handler(tracepoint: &Tracepoint) -> String {
    let event = tracepoint.name().replacen(':', "__", 1);
    let function = identifier(&event);
    let fields = &tracepoint.format.fields;
    let is_taken =
        |name: &str| KEYWORDS.contains(&name) || PARAMETERS.contains(&name) || name == SAMPLE;
    let fields: Vec<(&Field, String)> = fields.iter().zip(parameters(fields, is_taken)).collect();
    let of_fields = fields.iter().map(|(_, parameter)| parameter.as_str());
    let names: Vec<&str> = PARAMETERS
        .into_iter()
        .chain(of_fields)
        .chain([SAMPLE])
        .collect();
    let mut text = String::new();
    let parameters = names.join(", ");
    let formats: Vec<String> = fields
        .iter()
        .map(|(field, _)| format!("{}=%{}", field.name, conversion(tracepoint, field)))
        .collect();
    let values: Vec<String> = fields
        .iter()
        .map(|(field, parameter)| value(tracepoint, field, parameter, &event))
        .collect();
    // Writing to a String does not fail.
    let _ = write!(text, "\n\ndef {function}({parameters}):\n");
    text += "    print_header(event_name, common_cpu, common_secs, common_nsecs, common_pid, common_comm)\n";
    let _ = match values.is_empty() {
        true => writeln!(text, "    print()"),
        false => writeln!(
            text,
            "    print(\"{}\" % ({},))",
            formats.join(", "),
            values.join(", ")
        ),
    };
    text += "    print_sample(perf_sample_dict, common_callchain)\n";
    if function != event {
        // The event's name is not a valid name of a function, but handlers are looked up in the module's dict.
        let _ = write!(text, "\n\nglobals()[\"{event}\"] = {function}\n");
    }
    text
}

/// The conversion of a field's value, as in printf(3): `s` for arrays and for numbers whose values have names.
pub(crate) fn conversion(tracepoint: &Tracepoint, field: &Field) -> char {
    let is_named = || ValueNames::of(&tracepoint.format, &field.name).is_some();
    match field {
        field if field.is_array || field.is_dynamic || is_named() => 's',
        field if field.is_signed => 'd',
        _ => 'u',
    }
}

/// The expression for a field's value, in Python and Perl: `parameter`, or a call that returns the name of its value if the
/// field's values have names.
pub(crate) fn value(
    tracepoint: &Tracepoint,
    field: &Field,
    parameter: &str,
    event: &str,
) -> String {
    let names = ValueNames::of(&tracepoint.format, &field.name);
    match names.filter(|_| !field.is_array && !field.is_dynamic) {
        None => parameter.to_owned(),
        Some(names) => {
            let function = if names.delimiter().is_some() {
                "flag_str"
            } else {
                "symbol_str"
            };
            format!("{function}(\"{event}\", \"{}\", {parameter})", field.name)
        }
    }
}

/// Returns a parameter name for each field: its identifier, with `_` appended until the name is unique and not taken.
pub(crate) fn parameters(fields: &[Field], is_taken: impl Fn(&str) -> bool) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(fields.len());
    for field in fields {
        let mut name = identifier(&field.name);
        while is_taken(&name) || names.contains(&name) {
            name.push('_');
        }
        names.push(name);
    }
    names
}

/// The name with `_` for each character that is not an ASCII letter or digit, and before a leading digit.
pub(crate) fn identifier(name: &str) -> String {
    let allowed = |character: char| match character.is_ascii_alphanumeric() {
        true => character,
        false => '_',
    };
    let begins_with_digit = name.starts_with(|first: char| first.is_ascii_digit());
    let prefix = begins_with_digit.then_some('_');
    prefix
        .into_iter()
        .chain(name.chars().map(allowed))
        .collect()
}

#[cfg(test)]
mod tests {
    use rperf_tracepoint::Abi;
    use rperf_wire::Endian;

    use super::*;

    const FORMAT: &[u8] = b"name: own-event\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:int in;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:char text[16];\toffset:12;\tsize:16;\tsigned:0;\n\
        \tfield:unsigned int vec;\toffset:28;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"%s\", __print_symbolic(REC->vec, { 0, \"HI\" }, { 1, \"TIMER\" })\n";

    #[test]
    fn parameter_names_are_unique() {
        let format = String::from_utf8_lossy(FORMAT).into_owned();
        let fields = "\tfield:int in_;\toffset:32;\tsize:4;\tsigned:1;\n\nprint fmt:";
        let format = format.replace("\nprint fmt:", fields);
        let abi = Abi {
            endian: Endian::Little,
            long_size: 8,
        };
        let tracepoint = Tracepoint::parse("sys", format.as_bytes(), abi).unwrap();
        let text = python_script([&tracepoint]);
        for part in [
            "common_callchain, in_, text, vec, in__, perf_sample_dict):\n",
            "\"in=%d, text=%s, vec=%s, in_=%d\" % (in_, text, ",
            ", vec), in__,))",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn handlers_have_the_fields_of_their_events() {
        let abi = Abi {
            endian: Endian::Little,
            long_size: 8,
        };
        let tracepoint = Tracepoint::parse("sys", FORMAT, abi).unwrap();
        let text = python_script([&tracepoint]);
        for part in [
            "def sys__own_event(event_name, context, common_cpu, common_secs, common_nsecs, common_pid, common_comm, \
             common_callchain, in_, text, vec, perf_sample_dict):\n",
            "print(\"in=%d, text=%s, vec=%s\" % (in_, text, symbol_str(\"sys__own-event\", \"vec\", vec),))",
            "\n\nglobals()[\"sys__own-event\"] = sys__own_event\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
