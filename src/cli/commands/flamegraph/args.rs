//! The options of `flamegraph`.

use std::ffi::OsString;

use clap::{Arg, Command};

use crate::cli::filter::args as choose;
use crate::cli::input;
use crate::cli::options::{number, switch, value};
use crate::cli::symbol_options::args as names;

const ABOUT: &str = "\
'flamegraph' draws the stacks of a recording as one picture: an SVG with nothing beside it, which a browser shows. The wider \
a frame, the more samples went through it; a click zooms, / searches, and the address keeps both, so that a link to the file \
shows the same. With a command it records that first (into perf.data, or what -i names) and draws it.

--folded writes text instead, a stack in each line with its weight at the end, which grep and other tools understand; such \
text can be read back with -i. With --diff the colours say where there is more (red) or less (blue) than in another recording.";

/// The options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("flamegraph")
        .long_about(ABOUT)
        .args(files())
        .args(looks())
        .args(selection())
        .args(names::all())
        .args(recording())
        .arg(
            Arg::new("workload")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(clap::value_parser!(OsString)),
        )
}

fn files() -> Vec<Arg> {
    vec![
        value("input", "file")
            .short('i')
            .help("the recording, or folded text (default: perf.data)"),
        value("output", "file")
            .short('o')
            .help("where to write; - is the standard output (default: flamegraph.svg, folded text to the standard output)"),
        input::force(),
        switch("quiet").short('q').help("no notes and no warnings"),
        switch("folded").help("write folded text, a stack in each line, instead of a picture"),
        value("format", "svg|json").help("a picture (the default), or its frames inside each other as JSON: n their name, l the kind of code, v what ends there, c the callees"),
        switch("marks").help("with --folded, names end in _[k] for the kernel, _[i] for inlined, _[j] for JIT code"),
        value("diff", "file").help("colour by the difference from this recording or folded text, the earlier of the two"),
        switch("normalize").help("with --diff, take both recordings for equally long"),
        value("widths", "before|after").help("with --diff, whose weights are the widths (default: after)"),
    ]
}

fn looks() -> Vec<Arg> {
    vec![
        value("title", "text").help("the line above the picture"),
        value("subtitle", "text").help("a smaller line below the title"),
        value("width", "pixels")
            .value_parser(number)
            .help("a width that does not follow the window"),
        value("min-width", "pixels").help("leave out narrower frames (default: 0.1)"),
        switch("inverted").help("the root at the top, an icicle graph"),
        switch("reverse").help("merge stacks from the innermost function outwards"),
        value("colors", "palette").help(
            "hot, kind (kernel, inlined, JIT), java, js, perl, mem, io, red, orange, yellow, green, aqua, blue, purple",
        ),
        value("root", "comm|pid|tid|none")
            .help("the outermost frame: the program, the program with its pid, with pid and tid, or none"),
        value("weight", "samples|period")
            .help("what widths are: samples (the default), or events, such as cycles or bytes"),
        value("max-depth", "frames")
            .value_parser(number)
            .help("leave out what is further from the root"),
        switch("idle").help("draw idle processors too (the default); --no-idle leaves them out"),
    ]
}

fn selection() -> Vec<Arg> {
    let mut options = vec![
        value("event", "name")
            .short('e')
            .help("the event to draw (default: the first that has samples); with a command, the event to record"),
    ];
    options.extend(choose::all());
    options.push(
        value("max-stack", "frames")
            .value_parser(number)
            .help("frames of a call chain that count, from the innermost (default: all)"),
    );
    options
}

/// What is passed on to `record`.
fn recording() -> Vec<Arg> {
    vec![
        value("freq", "Hz")
            .short('F')
            .help("with a command: samples a second"),
        switch("all-cpus")
            .short('a')
            .help("with a command: the whole machine while it runs"),
        value("call-graph", "fp|dwarf[,bytes]")
            .help("with a command: how stacks are taken (default: fp)"),
    ]
}
