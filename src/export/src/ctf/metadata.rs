//! The metadata of a trace in TSDL, the Trace Stream Description Language of CTF 1.8.

use std::io::{self, Write};

use super::CtfLayout;
use super::fields::CtfType;

/// Nanoseconds per second: the frequency of the clock.
const NS_PER_SECOND: i64 = 1_000_000_000;

/// Properties of the recording in the trace's environment.
#[derive(Debug, Clone, Default)]
pub struct CtfEnvironment<'e> {
    /// Name and value of each property, such as `host`, `release` and `machine`.
    pub properties: Vec<(&'static str, String)>,
    /// The time at which the recording's clock is 0, in nanoseconds since 1970; readers add it to each time. With 0, they show
    /// times of the recording's clock.
    pub clock_offset: i64,
    /// Name and version of the program that writes the trace.
    pub exporter: &'e str,
}

/// Writes the metadata.
///
/// # Errors
/// Errors of `out`.
pub fn write_metadata(
    layout: &CtfLayout,
    environment: &CtfEnvironment<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_types_and_trace(out)?;
    write_environment(environment, out)?;
    write_clock_and_stream(environment.clock_offset, out)?;
    for (number, class) in layout.classes.iter().enumerate() {
        writeln!(
            out,
            "\nevent {{\n\tname = {};\n\tid = {number};\n\tstream_id = 0;\n\tfields := struct {{",
            quoted(&class.name)
        )?;
        for field in &class.fields {
            let (alias, name) = (field.kind.alias(), &field.name);
            match field.kind {
                CtfType::Sequence { .. } => {
                    let count = &field.count_name;
                    writeln!(out, "\t\tu32 {count};\n\t\t{alias} {name}[{count}];")?;
                }
                _ => writeln!(out, "\t\t{alias} {name};")?,
            }
        }
        writeln!(out, "\t}};\n}};")?;
    }
    Ok(())
}

/// Declares the aliases of integers (unsigned `u`, signed `s`, hexadecimal `x`) and text, and the layout of the
/// packet headers that [`super::CtfWriter`] writes.
fn write_types_and_trace(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "/* CTF 1.8 */\n")?;
    for size in [8, 16, 32, 64] {
        for (letter, sign, base) in [("u", "false", 10), ("s", "true", 10), ("x", "false", 16)] {
            writeln!(
                out,
                "typealias integer {{ size = {size}; align = 8; signed = {sign}; base = {base}; }} := {letter}{size};"
            )?;
        }
    }
    out.write_all(
        b"typealias string { encoding = UTF8; } := utf8;

trace {
	major = 1;
	minor = 8;
	byte_order = le;
	packet.header := struct {
		u32 magic;
		u32 stream_id;
	};
};
",
    )
}

/// Writes the environment.
fn write_environment(environment: &CtfEnvironment<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nenv {{")?;
    for (name, text) in &environment.properties {
        writeln!(out, "\t{name} = {};", quoted(text))?;
    }
    // As in perf, the domain is `kernel` even for events of user space.
    writeln!(
        out,
        "\tdomain = \"kernel\";\n\ttracer_name = {};\n}};",
        quoted(environment.exporter)
    )
}

/// Declares the clock, which is 0 at `offset` nanoseconds since 1970, and the layouts of the packet contexts and event headers
/// that [`super::CtfWriter`] writes.
fn write_clock_and_stream(offset: i64, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "
clock {{
	name = perf_clock;
	description = \"clock of the recording\";
	freq = {NS_PER_SECOND};
	offset_s = {};
	offset = {};
}};",
        offset.div_euclid(NS_PER_SECOND),
        offset.rem_euclid(NS_PER_SECOND)
    )?;
    out.write_all(
        b"
typealias integer {
	size = 64; align = 8; signed = false; map = clock.perf_clock.value;
} := timestamp_t;

stream {
	id = 0;
	packet.context := struct {
		timestamp_t timestamp_begin;
		timestamp_t timestamp_end;
		u64 content_size;
		u64 packet_size;
		u64 events_discarded;
		u32 cpu_id;
	};
	event.header := struct {
		u32 id;
		timestamp_t timestamp;
	};
};
",
    )
}

/// Text as a string literal.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            letter if letter.is_control() => quoted.push('?'),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
