//! The rows of the view: instructions, and source locations (sites) between them.

use rperf_disasm::FunctionCode;

/// A row of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeRow {
    pub(super) kind: RowContent,
    /// Index of the instruction that the row shows or precedes.
    pub(super) instruction: usize,
}

/// What a row shows. Numbers are indices in `FunctionCode::sites`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowContent {
    /// The function's address and name.
    Start,
    /// The name of the function at a site.
    Function(usize),
    /// The source line of a site.
    Source(usize),
    /// An instruction.
    Code,
}

/// Returns all rows of a function, with or without source.
pub(super) fn rows(code: &FunctionCode, with_source: bool) -> Vec<CodeRow> {
    let mut rows = Vec::with_capacity(code.instructions.len());
    if with_source {
        rows.push(CodeRow {
            kind: RowContent::Start,
            instruction: 0,
        });
    }
    let mut last_site = None;
    for (index, instruction) in code.instructions.iter().enumerate() {
        let mut push = |kind| {
            let instruction = index;
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

/// Adds rows for the function and the source line of the site `site_index`, as far as they differ from those of the last shown
/// site.
fn site_rows(
    code: &FunctionCode,
    last_index: Option<usize>,
    site_index: usize,
    push: &mut impl FnMut(RowContent),
) {
    let Some(site) = code.sites.get(site_index) else {
        return;
    };
    let last = last_index.and_then(|index| code.sites.get(index));
    let is_same_function = last
        .is_some_and(|last| last.is_inlined == site.is_inlined && last.function == site.function);
    if !is_same_function {
        push(RowContent::Function(site_index));
    }
    if site.line.is_some() && last.and_then(|last| last.line) != site.line {
        push(RowContent::Source(site_index));
    }
}

/// Returns the index of the row that shows an instruction.
pub(super) fn row_of(rows: &[CodeRow], instruction: usize) -> usize {
    // The last row with this index: the rows that precede an instruction have its index, too.
    let after = rows.partition_point(|row| row.instruction <= instruction);
    after.saturating_sub(1)
}
