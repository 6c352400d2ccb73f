//! The lines of the view: instructions, and source locations between them.

use rperf_disasm::FunctionCode;

/// A line of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeRow {
    pub(super) kind: RowContent,
    /// Index of the instruction that the line shows or precedes.
    pub(super) instruction: usize,
}

/// The kind of a line. Numbers are indices in `FunctionCode::sites`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowContent {
    /// The function's address and name.
    Start,
    /// The name of the function at a source location.
    Function(usize),
    /// The source line of a location.
    Source(usize),
    /// An instruction.
    Code,
}

/// Returns all lines of a function, with or without source.
pub(super) fn rows(code: &FunctionCode, with_source: bool) -> Vec<CodeRow> {
    let mut rows = Vec::with_capacity(code.instructions.len());
    if with_source {
        rows.push(CodeRow {
            kind: RowContent::Start,
            instruction: 0,
        });
    }
    let mut last_site = None;
    for (number, instruction) in code.instructions.iter().enumerate() {
        let mut push = |kind| {
            let instruction = number;
            rows.push(CodeRow { kind, instruction });
        };
        if let Some(site) = instruction.site.filter(|_| with_source) {
            site_rows(code, last_site, site, &mut push);
            last_site = Some(site);
        }
        push(RowContent::Code);
    }
    rows
}

/// Adds lines for the function and the source line of location `number`, as far as they differ from those of `before`, the
/// location shown last.
fn site_rows(
    code: &FunctionCode,
    before: Option<usize>,
    number: usize,
    push: &mut impl FnMut(RowContent),
) {
    let Some(site) = code.sites.get(number) else {
        return;
    };
    let before = before.and_then(|before| code.sites.get(before));
    let is_same = before.is_some_and(|before| {
        before.is_inlined == site.is_inlined && before.function == site.function
    });
    if !is_same {
        push(RowContent::Function(number));
    }
    if site.line.is_some() && before.and_then(|before| before.line) != site.line {
        push(RowContent::Source(number));
    }
}

/// Returns the index of the line that shows an instruction.
pub(super) fn row_of(rows: &[CodeRow], instruction: usize) -> usize {
    // The last row with this index: the lines that precede an instruction have its index, too.
    let after = rows.partition_point(|row| row.instruction <= instruction);
    after.saturating_sub(1)
}
