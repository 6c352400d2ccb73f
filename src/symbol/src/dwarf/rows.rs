//! The line table of one unit: source lines of instructions.

use gimli::{IncompleteLineProgram, LineProgramHeader, UnitRef};

use super::sections::Slice;

/// The source line of the instructions from `address` up to the next row.
#[derive(Debug, Clone, Copy)]
struct LineRow {
    address: u64,
    /// Index in the unit's file table.
    file: u32,
    /// 0 for code without a line.
    line: u32,
}

/// Rows that cover the addresses from `start` to `end` without gaps.
#[derive(Debug)]
struct Sequence {
    start: u64,
    end: u64,
    /// Index of the first row.
    first: usize,
    /// Index after the last row.
    row_end: usize,
}

/// All rows of one unit.
#[derive(Debug, Default)]
pub(super) struct LineRows {
    rows: Vec<LineRow>,
    /// Sorted by start.
    sequences: Vec<Sequence>,
}

impl LineRows {
    /// Runs a line program. Stops at the first damaged part; the sequences that ended before it are kept.
    pub(super) fn read(program: IncompleteLineProgram<Slice<'_>>) -> Self {
        let mut table = Self::default();
        // Index of the first row of the current sequence.
        let mut first = 0;
        let mut machine = program.rows();
        while let Ok(Some((_, row))) = machine.next_row() {
            if row.end_sequence() {
                table.end_sequence(first, row.address());
                first = table.rows.len();
                continue;
            }
            let new = LineRow {
                address: row.address(),
                file: u32::try_from(row.file_index()).unwrap_or(u32::MAX),
                line: row
                    .line()
                    .map_or(0, |line| u32::try_from(line.get()).unwrap_or(0)),
            };
            // Of several rows at the same address, the last one applies.
            match table.rows.get_mut(first..).and_then(|rows| rows.last_mut()) {
                Some(last) if last.address == new.address => *last = new,
                _ => table.rows.push(new),
            }
        }
        // The rows of a sequence without an end are dropped.
        table.rows.truncate(first);
        table
            .sequences
            .sort_unstable_by_key(|sequence| (sequence.start, sequence.end));
        table.rows.shrink_to_fit();
        table
    }

    /// Adds the sequence of the rows from index `first` on. Drops these rows if they cover no address: if there are none, or if
    /// `end` is not after the lowest address.
    fn end_sequence(&mut self, first: usize, end: u64) {
        let rows = self.rows.get_mut(first..).unwrap_or_default();
        // Ascending already, unless the line program is damaged; `find` needs this order.
        rows.sort_by_key(|row| row.address);
        let Some(start) = rows
            .first()
            .map(|row| row.address)
            .filter(|&start| start < end)
        else {
            self.rows.truncate(first);
            return;
        };
        self.sequences.push(Sequence {
            start,
            end,
            first,
            row_end: self.rows.len(),
        });
    }

    /// File index and line of the instruction at `address`.
    pub(super) fn find(&self, address: u64) -> Option<(u32, u32)> {
        let after = self
            .sequences
            .partition_point(|sequence| sequence.start <= address);
        let sequence = self.sequences.get(after.checked_sub(1)?)?;
        if address >= sequence.end {
            return None;
        }
        let rows = self.rows.get(sequence.first..sequence.row_end)?;
        let after = rows.partition_point(|row| row.address <= address);
        let row = rows.get(after.checked_sub(1)?)?;
        Some((row.file, row.line))
    }

    /// Size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        self.rows.capacity() * size_of::<LineRow>()
            + self.sequences.capacity() * size_of::<Sequence>()
    }
}

/// The address ranges of the sequences of a line program.
pub(super) fn sequences(program: IncompleteLineProgram<Slice<'_>>) -> Vec<(u64, u64)> {
    let rows = LineRows::read(program);
    let ranges = rows
        .sequences
        .iter()
        .map(|sequence| (sequence.start, sequence.end));
    ranges.collect()
}

/// The paths of the files in a unit's table, by index.
pub(super) fn files(unit: UnitRef<'_, Slice<'_>>) -> Vec<String> {
    let Some(program) = &unit.line_program else {
        return Vec::new();
    };
    let header = program.header();
    let mut files: Vec<_> = (0..)
        .map(|index| header.file(index))
        .enumerate()
        // Before DWARF 5, index 0 may have no file. Any other index without a file is after the end of the table.
        .take_while(|(index, file)| *index == 0 || file.is_some())
        .map(|(_, file)| file.map_or_else(String::new, |file| path(unit, header, file)))
        .collect();
    files.shrink_to_fit();
    files
}

/// Returns a file's path: its directory and the compilation directory are prepended while it is relative.
fn path<'a>(
    unit: UnitRef<'_, Slice<'a>>,
    header: &LineProgramHeader<Slice<'a>>,
    file: &gimli::FileEntry<Slice<'a>>,
) -> String {
    let text = |value| {
        let text = unit.attr_string(value);
        text.map_or_else(
            |_| String::new(),
            |text| text.to_string_lossy().into_owned(),
        )
    };
    let name = text(file.path_name());
    if name.starts_with('/') {
        return name;
    }
    let compilation = unit.comp_dir.map(|dir| dir.to_string_lossy().into_owned());
    // Directory 0 is the compilation directory, which only DWARF 5 lists in the table.
    let directory = match file.directory_index() {
        0 => None,
        _ => file.directory(header).map(text),
    };
    let mut path = match &directory {
        Some(directory) if directory.starts_with('/') => String::new(),
        _ => compilation.unwrap_or_default(),
    };
    for part in directory.iter().chain([&name]) {
        if !path.is_empty() && !path.ends_with('/') {
            path.push('/');
        }
        path.push_str(part);
    }
    path
}
