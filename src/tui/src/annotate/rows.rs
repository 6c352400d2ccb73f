//! The lines of the view: instructions, and source positions between them.

use rperf_disasm::FunctionCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeRow {
    pub(super) kind: RowContent,
    /// Index of the instruction that the line shows or precedes.
    pub(super) instruction: usize,
}

/// The content of a line. Numbers are indices in `FunctionCode::sites`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowContent {
    /// The function's address and name.
    Start,
    /// The name of the function of a source position.
    Function(usize),
    /// The line of a source position.
    Source(usize),
    /// An instruction.
    Code,
}

/// Returns all lines of a function, with or without source.
pub(super) fn rows(code: &FunctionCode, with_source: bool) -> Vec<CodeRow> {
    let mut rows = Vec::with_capacity(code.instructions.len());
    if with_source {
        let (kind, instruction) = (RowContent::Start, 0);
        rows.push(CodeRow { kind, instruction });
    }
    let mut before = None;
    for (number, instruction) in code.instructions.iter().enumerate() {
        let mut push = |kind| {
            let instruction = number;
            rows.push(CodeRow { kind, instruction });
        };
        if let Some(site) = instruction.site.filter(|_| with_source) {
            site_rows(code, before.replace(site), site, &mut push);
        }
        push(RowContent::Code);
    }
    rows
}

/// Adds lines for the function and the line of the source position `number`, as far as they differ from those of `before`, the
/// position of the previous instruction.
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
    let after = rows.partition_point(|row| row.instruction <= instruction);
    after.saturating_sub(1)
}
