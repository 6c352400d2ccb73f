//! What stands in each line: instructions, and between them where they are in the source.

use rperf_disasm::Code;

/// A line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) kind: Kind,
    /// The number of the instruction that it shows or stands before.
    pub(super) instruction: usize,
}

/// What a line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The function's address and name.
    Start,
    /// The name of the function that a place in the source is in.
    Function(usize),
    /// The line of a place in the source.
    Source(usize),
    /// An instruction.
    Code,
}

/// All lines of a function, with those of its source or without.
pub(super) fn rows(code: &Code, with_source: bool) -> Vec<Row> {
    let mut rows = Vec::with_capacity(code.instructions.len());
    if with_source {
        let (kind, instruction) = (Kind::Start, 0);
        rows.push(Row { kind, instruction });
    }
    let mut before = None;
    for (number, instruction) in code.instructions.iter().enumerate() {
        let mut push = |kind| {
            let instruction = number;
            rows.push(Row { kind, instruction });
        };
        if let Some(site) = instruction.site.filter(|_| with_source) {
            site_rows(code, before.replace(site), site, &mut push);
        }
        push(Kind::Code);
    }
    rows
}

/// What changed since the instruction `before`: the function, the line.
fn site_rows(code: &Code, before: Option<usize>, number: usize, push: &mut impl FnMut(Kind)) {
    let Some(site) = code.sites.get(number) else {
        return;
    };
    let before = before.and_then(|before| code.sites.get(before));
    let is_same = before.is_some_and(|before| {
        before.is_inlined == site.is_inlined && before.function == site.function
    });
    if !is_same {
        push(Kind::Function(number));
    }
    if site.line.is_some() && before.and_then(|before| before.line) != site.line {
        push(Kind::Source(number));
    }
}

/// The line of an instruction.
pub(super) fn row_of(rows: &[Row], instruction: usize) -> usize {
    let behind = rows.partition_point(|row| row.instruction <= instruction);
    behind.saturating_sub(1)
}
