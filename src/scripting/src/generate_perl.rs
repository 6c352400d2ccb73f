//! `script -g perl`: generates a script with a handler for each tracepoint of a recording, as a template.

use std::fmt::Write as _;

use rperf_tracepoint::Tracepoint;

use crate::generate::{PARAMETERS, conversion, identifier, parameters, value};

/// The beginning of the script, up to the first handler.
const START: &str = r#"# Handlers for the events of a recording, written by script -g perl: a template for your own script.
# Each handler gets the values that all events have, then the fields of its event. The functions of
# Perf::Trace::Context get the context: common_pc($context), common_flags($context), common_lock_depth($context).
# A function process_event($record, $attr, $sample, $raw) would get the bytes of every sample.

use lib "$ENV{'PERF_EXEC_PATH'}/scripts/perl/Perf-Trace-Util/lib";
use Perf::Trace::Core;
use Perf::Trace::Context;
use Perf::Trace::Util;

sub trace_begin
{
}

sub trace_end
{
}
"#;

/// The end of the script: the function for other events, and functions that the handlers call.
const END: &str = r#"
sub trace_unhandled
{
    my ($event_name, $context, $common_cpu, $common_secs, $common_nsecs, $common_pid, $common_comm,
        $common_callchain) = @_;

    print_header($event_name, $common_cpu, $common_secs, $common_nsecs, $common_pid, $common_comm);
    print "\n";
    print_callchain($common_callchain);
}

sub print_header
{
    printf("%-20s %5u %05u.%09u %8u %-20s ", @_);
}

sub print_callchain
{
    my ($callchain) = @_;

    for my $frame (@$callchain) {
        my $text = sprintf("\t[%x]", $frame->{ip});
        $text .= " $frame->{sym}{name}" if exists $frame->{sym};
        $text .= " ($frame->{dso})" if exists $frame->{dso};
        print "$text\n";
    }
}
"#;

/// Returns a script in Perl with a handler for each tracepoint.
#[must_use]
pub fn perl_script<'t>(tracepoints: impl IntoIterator<Item = &'t Tracepoint>) -> String {
    let mut text = START.to_owned();
    for tracepoint in tracepoints {
        text += &handler(tracepoint);
    }
    text + END
}

fn handler(tracepoint: &Tracepoint) -> String {
    // The name of the event's handler in perf: `system::name`.
    let event = tracepoint.name().replacen(':', "::", 1);
    let fields = &tracepoint.format.fields;
    // `_` is appended to the names of fields that are taken by common parameters.
    let is_taken = |name: &str| PARAMETERS.contains(&name);
    let field_parameters = parameters(fields, is_taken);
    let field_parameters: Vec<String> = field_parameters
        .iter()
        .map(|name| format!("${name}"))
        .collect();
    let common = PARAMETERS.map(|name| format!("${name}"));
    let parameters: Vec<&str> = common
        .iter()
        .chain(&field_parameters)
        .map(String::as_str)
        .collect();
    let formats: Vec<String> = fields
        .iter()
        .map(|field| format!("{}=%{}", field.name, conversion(tracepoint, field)))
        .collect();
    let values: String = fields
        .iter()
        .zip(&field_parameters)
        .map(|(field, parameter)| format!(", {}", value(tracepoint, field, parameter, &event)))
        .collect();
    let sub_name = event.split("::").map(identifier).collect::<Vec<_>>();
    let sub_name = sub_name.join("::");
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write!(
        text,
        "\nsub {}\n{{\n    my ({}) = @_;\n\n    \
         print_header($event_name, $common_cpu, $common_secs, $common_nsecs, $common_pid, $common_comm);\n    \
         printf(\"{}\\n\"{values});\n    print_callchain($common_callchain);\n}}\n",
        sub_name,
        parameters.join(", "),
        formats.join(", "),
    );
    if sub_name != event {
        // A sub cannot be declared with the event's name, such as `sys::own-event`. But handlers are looked up in the symbol
        // table, where a name can have any characters: the event's name becomes an alias.
        let _ = write!(
            text,
            "\n{{\n    no strict 'refs';\n    *{{\"{event}\"}} = \\&{sub_name};\n}}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use rperf_tracepoint::Abi;
    use rperf_wire::Endian;

    use super::*;

    const FORMAT: &[u8] = b"name: own-event\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:int context;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:char text[16];\toffset:12;\tsize:16;\tsigned:0;\n\
        \tfield:unsigned int vec;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:int context_;\toffset:32;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"%s\", __print_symbolic(REC->vec, { 0, \"HI\" }, { 1, \"TIMER\" })\n";

    #[test]
    fn handlers_have_the_fields_of_their_events() {
        let abi = Abi {
            endian: Endian::Little,
            long_size: 8,
        };
        let tracepoint = Tracepoint::parse("sys", FORMAT, abi).unwrap();
        let text = perl_script([&tracepoint]);
        for part in [
            "sub sys::own_event\n{\n    my ($event_name, $context, ",
            "$common_callchain, $context_, $text, $vec, $context__) = @_;\n",
            "printf(\"context=%d, text=%s, vec=%s, context_=%d\\n\", $context_, $text, \
             symbol_str(\"sys::own-event\", \"vec\", $vec), $context__);\n",
            "    *{\"sys::own-event\"} = \\&sys::own_event;\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
