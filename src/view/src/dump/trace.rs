//! Hardware traces: AUXTRACE_INFO and the branches of Intel BTS.

use std::io::{self, Write};

use rperf_wire::{AuxTraceInfo, Endian};

/// Size of a branch in bytes.
const BRANCH: usize = AuxTraceInfo::BTS_BRANCH;
/// The flag of predicted branches.
const PREDICTED: u64 = 0x10;
/// The names of the words that follow the trace type in an AUXTRACE_INFO record of Intel BTS, as perf spells them.
const NAMES: [&str; 6] = [
    "PMU Type",
    "Time Shift",
    "Time Muliplier",
    "Time Zero",
    "Cap Time Zero",
    "Snapshot mode",
];

/// The text after the record's name.
pub(super) fn info(info: &AuxTraceInfo<'_>) -> String {
    let mut text = format!(" type: {}\n", info.kind);
    if info.kind == AuxTraceInfo::INTEL_BTS {
        for (name, word) in NAMES.iter().zip(info.private.iter()) {
            text += &format!("  {name:<18} {word}\n");
        }
    }
    text
}

/// Whether traces of this type are printed.
pub(super) fn is_printed(kind: Option<u32>) -> bool {
    kind == Some(AuxTraceInfo::INTEL_BTS)
}

/// Writes the branches of an Intel BTS trace, one per line.
pub(super) fn write(out: &mut dyn Write, trace: &[u8], endian: Endian) -> io::Result<()> {
    writeln!(out, ".\n. ... Intel BTS data: size {} bytes", trace.len())?;
    for (index, branch) in trace.chunks(BRANCH).enumerate() {
        write!(out, ".  {:08x}: ", index * BRANCH)?;
        for byte in branch {
            write!(out, " {byte:02x}")?;
        }
        let words = [0, 8, 16].map(|at| endian.u64_at(branch, at));
        let [Some(from), Some(to), Some(flags)] = words else {
            let missing = 3 * (BRANCH - branch.len());
            writeln!(out, "{:missing$} Bad record!", "")?;
            continue;
        };
        let predicted = if flags & PREDICTED != 0 {
            "pred"
        } else {
            "miss"
        };
        writeln!(out, " {from:x} -> {to:x} {predicted}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::U64s;

    #[test]
    fn branches_are_lines_and_incomplete_ones_are_marked() {
        let mut trace = Vec::new();
        for word in [0x1000_u64, 0x2000, 0x10, 1, 2, 0, 7] {
            trace.extend(word.to_le_bytes());
        }
        let mut out = Vec::new();
        write(&mut out, &trace, Endian::Little).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], [".", ". ... Intel BTS data: size 56 bytes"]);
        let first = ".  00000000:  00 10 00 00 00 00 00 00 00 20 00 00 00 00 00 00 10 00 00 00 00 00 00 00 1000 -> 2000 pred";
        assert_eq!(lines[2], first);
        assert!(lines[3].starts_with(".  00000018:  01 ") && lines[3].ends_with(" 1 -> 2 miss"));
        assert!(lines[4].starts_with(".  00000030:  07 ") && lines[4].ends_with(" Bad record!"));
    }

    #[test]
    fn words_of_a_known_trace_type_are_named() {
        let bytes: Vec<u8> = (1..=6_u64).flat_map(u64::to_le_bytes).collect();
        let private = U64s::new(&bytes, Endian::Little);
        let known = info(&AuxTraceInfo { kind: 2, private });
        assert!(known.starts_with(" type: 2\n  PMU Type           1\n  Time Shift         2\n"));
        assert_eq!(info(&AuxTraceInfo { kind: 9, private }), " type: 9\n");
    }
}
