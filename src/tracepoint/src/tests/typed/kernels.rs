//! Kernels with synthetic formats, and raw data in their layout.

use std::fs;
use std::path::Path;

use rperf_testkit::skip;
use rperf_wire::Endian;

use super::descriptions::{ALL, LONG, TracepointCase};
use crate::{Abi, Tracepoint};

/// A synthetic kernel.
#[derive(Debug, Clone, Copy)]
struct Kernel {
    endian: Endian,
    long_size: u8,
    /// Whether formats are those of old kernels: they lack `signed:`, and have the common field `common_lock_depth`.
    is_old: bool,
}

/// The `print fmt` of formats in which only the fields are of interest.
pub(super) const NO_PRINT_FMT: &str = "";

const KERNELS: [Kernel; 4] = [
    Kernel {
        endian: Endian::Little,
        long_size: 8,
        is_old: true,
    },
    Kernel {
        endian: Endian::Big,
        long_size: 8,
        is_old: false,
    },
    Kernel {
        endian: Endian::Little,
        long_size: 4,
        is_old: false,
    },
    Kernel {
        endian: Endian::Big,
        long_size: 4,
        is_old: true,
    },
];

impl Kernel {
    /// A tracepoint of this kernel with these fields and this `print fmt`.
    fn describe(self, name: &str, fields: &[(&str, usize)], print_fmt: &str) -> Tracepoint {
        let mut common = vec![
            ("unsigned short common_type", 2),
            ("unsigned char common_flags", 1),
            ("unsigned char common_preempt_count", 1),
            ("int common_pid", 4),
        ];
        if self.is_old {
            common.push(("int common_lock_depth", 4));
        }
        let (system, event) = name.split_once(':').expect("a whole name");
        let mut text = format!("name: {event}\nID: 77\nformat:\n");
        let mut offset = 0;
        self.write_fields(&common, &mut offset, &mut text);
        text.push('\n');
        self.write_fields(fields, &mut offset, &mut text);
        text.push_str(&format!("\nprint fmt: {print_fmt}\n"));
        let abi = Abi {
            endian: self.endian,
            long_size: self.long_size,
        };
        Tracepoint::parse(system, text.as_bytes(), abi).expect("a description")
    }

    fn write_fields(self, fields: &[(&str, usize)], offset: &mut usize, text: &mut String) {
        let long = usize::from(self.long_size);
        for (declaration, size) in fields {
            // The only array of longs has six elements.
            let count = if declaration.contains("long args[") {
                6
            } else {
                1
            };
            let size = if *size == LONG { long * count } else { *size };
            // Numbers, pointers and location words are aligned to their size, other fields to at most 4 bytes.
            let is_scalar = matches!(size, 2 | 4 | 8) && !declaration.ends_with(']');
            *offset = offset.next_multiple_of(if is_scalar { size } else { 4.min(size) });
            let is_signed = ["int ", "long ", "pid_t ", "s64 "]
                .iter()
                .any(|start| declaration.starts_with(start));
            let sign = match self.is_old {
                true => String::new(),
                false => format!("\tsigned:{};", u8::from(is_signed)),
            };
            text.push_str(&format!(
                "\tfield:{declaration};\toffset:{offset};\tsize:{size};{sign}\n"
            ));
            *offset += size;
        }
    }
}

/// Returns the synthetic format of a tracepoint.
fn case_of(name: &str) -> &'static TracepointCase {
    let case = ALL.iter().find(|case| case.names.contains(&name));
    case.unwrap_or_else(|| panic!("{name} is not in the list"))
}

/// The format of a tracepoint of this machine's kernel; `None` if it cannot be read.
pub(super) fn of_machine(name: &str) -> Option<Tracepoint> {
    let events = Path::new("/sys/kernel/tracing/events");
    let (system, event) = name.split_once(':')?;
    let text = fs::read(events.join(system).join(event).join("format")).ok()?;
    Some(Tracepoint::parse(system, &text, Abi::NATIVE).expect("the kernel's description"))
}

/// A tracepoint of each synthetic kernel with these fields and this `print fmt`.
fn synthetic(name: &str, fields: &[(&str, usize)], print_fmt: &str) -> Vec<Tracepoint> {
    let kernels = KERNELS.iter();
    kernels
        .map(|kernel| kernel.describe(name, fields, print_fmt))
        .collect()
}

/// Formats of a tracepoint: those of synthetic kernels with all fields, and that of this machine's kernel, if it can be read.
pub(super) fn variants(name: &str) -> Vec<Tracepoint> {
    let case = case_of(name);
    let mut tracepoints = synthetic(name, case.fields, case.print_fmt);
    match of_machine(name) {
        Some(tracepoint) => tracepoints.push(tracepoint),
        // This machine's kernel does not have the tracepoint.
        None if Path::new("/sys/kernel/tracing/events").exists() => {}
        // Only this machine's format is skipped, not the synthetic ones.
        None => skip(name, "tracefs is not mounted at /sys/kernel/tracing"),
    }
    tracepoints
}

/// The formats of synthetic kernels without the fields `lacking`, which only some kernels have.
pub(super) fn variants_without(name: &str, lacking: &[&str]) -> Vec<Tracepoint> {
    let case = case_of(name);
    let fields = case.fields.iter().filter(|(declaration, _)| {
        let field = declaration.rsplit(' ').next().unwrap_or_default();
        let field = field.split('[').next().unwrap_or_default();
        !lacking.contains(&field)
    });
    let fields: Vec<(&str, usize)> = fields.copied().collect();
    assert_eq!(
        fields.len() + lacking.len(),
        case.fields.len(),
        "{lacking:?}"
    );
    synthetic(name, &fields, case.print_fmt)
}

/// The formats of synthetic kernels with another `print fmt` and other declarations: each pair in `replaced` is the usual
/// declaration and the one in its place.
pub(super) fn variants_with(
    name: &str,
    replaced: &[(&str, &str)],
    print_fmt: &str,
) -> Vec<Tracepoint> {
    let fields = case_of(name).fields.iter().map(|(declaration, size)| {
        let pair = replaced.iter().find(|(usual, _)| usual == declaration);
        (pair.map_or(*declaration, |(_, other)| *other), *size)
    });
    let fields: Vec<(&str, usize)> = fields.collect();
    synthetic(name, &fields, print_fmt)
}

/// Content of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content<'p> {
    Number(i64),
    Text(&'p str),
    /// The elements of an array.
    Words(&'p [u64]),
}

/// Builds the raw data of a sample; fields without a value are 0. Values of fields that the kernel lacks are skipped.
pub(super) fn raw(tracepoint: &Tracepoint, values: &[(&str, Content<'_>)]) -> Vec<u8> {
    let format = &tracepoint.format;
    let fields = format.common_fields.iter().chain(&format.fields);
    let mut raw = vec![
        0;
        fields
            .map(|field| field.offset + field.size)
            .max()
            .unwrap_or(0)
    ];
    for (name, value) in values {
        let Some(field) = format.field(name) else {
            continue;
        };
        let at = field.offset..field.offset + field.size;
        match value {
            Content::Number(number) => {
                raw[at].copy_from_slice(&bytes(tracepoint.abi, number.cast_unsigned(), field.size));
            }
            Content::Text(text) if field.is_dynamic => {
                let (start, length) = (raw.len() as u64, text.len() as u64 + 1);
                raw[at].copy_from_slice(&bytes(tracepoint.abi, length << 16 | start, 4));
                raw.extend(text.bytes().chain([0]));
            }
            Content::Text(text) => {
                raw[at.start..at.start + text.len()].copy_from_slice(text.as_bytes())
            }
            Content::Words(words) => {
                let size = field.size / words.len();
                let words = words
                    .iter()
                    .flat_map(|word| bytes(tracepoint.abi, *word, size));
                raw[at].copy_from_slice(&words.collect::<Vec<u8>>());
            }
        }
    }
    raw
}

/// The lower `size` bytes of `number`, in the kernel's byte order.
fn bytes(abi: Abi, number: u64, size: usize) -> Vec<u8> {
    match abi.endian {
        Endian::Little => number.to_le_bytes()[..size].to_vec(),
        Endian::Big => number.to_be_bytes()[8 - size..].to_vec(),
    }
}

/// Asserts that an event can be read if and only if `raw` contains its fields up to `last`, the last required field.
pub(super) fn assert_truncation_is_detected(
    raw: &[u8],
    last: &str,
    tracepoint: &Tracepoint,
    reads: impl Fn(&[u8]) -> bool,
) {
    let field = tracepoint
        .format
        .field(last)
        .expect("a field of all kernels");
    let end = field.offset + field.size;
    for length in 0..raw.len() {
        assert_eq!(
            reads(&raw[..length]),
            length >= end,
            "{} at {length}",
            tracepoint.name()
        );
    }
}
