//! The complete line table of a unit, sorted by address.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use gimli::{FileEntry, IncompleteLineProgram, LineProgramHeader, UnitRef};
use rperf_symbol::dwarf::Slice;

/// A row of the line table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineRow {
    pub(crate) address: u64,
    /// The index of the file in the unit's line table.
    pub(crate) file: u64,
    /// 0 for code without a line.
    pub(crate) line: u32,
    /// Whether a statement starts here (`is_stmt`).
    pub(crate) is_statement: bool,
    /// Whether it ends a sequence (`end_sequence`).
    pub(crate) ends_sequence: bool,
    /// Whether the prologue ends here (`prologue_end`).
    pub(crate) ends_prologue: bool,
}

/// The files of a unit, and the rows, which are read on demand.
#[derive(Debug, Default)]
pub(crate) struct LineTable<'u> {
    program: Option<IncompleteLineProgram<Slice<'u>>>,
    /// Sorted by address; of rows with the same address, ends of sequences are first, and otherwise the table's order is kept.
    rows: OnceCell<Vec<LineRow>>,
    files: Vec<String>,
}

impl<'u> LineTable<'u> {
    /// Reads the files from the header of the unit's line program.
    pub(super) fn read(unit: UnitRef<'_, Slice<'u>>) -> Self {
        let Some(program) = unit.line_program.clone() else {
            return Self::default();
        };
        let header = program.header();
        let path = |file: Option<&FileEntry<_>>| file_path(unit, header, file?);
        let files = files(header).map(|file| path(file).unwrap_or_default());
        Self {
            files: files.collect(),
            program: Some(program),
            rows: OnceCell::new(),
        }
    }

    pub(crate) fn rows(&self) -> &[LineRow] {
        self.rows
            .get_or_init(|| self.program.clone().map(run).unwrap_or_default())
    }

    /// Returns the path of the file with this index; `None` if it is unknown.
    pub(crate) fn file(&self, index: u64) -> Option<&str> {
        let path = self.files.get(usize::try_from(index).ok()?)?;
        Some(path.as_str()).filter(|path| !path.is_empty())
    }

    /// Returns the indices of the files that pass `is_wanted`; a file may have several.
    pub(crate) fn file_indices(&self, is_wanted: &dyn Fn(&str) -> bool) -> BTreeSet<u64> {
        let named = (0..).zip(&self.files).filter(|(_, path)| !path.is_empty());
        let wanted = named.filter(|(_, path)| is_wanted(path));
        wanted.map(|(index, _)| index).collect()
    }

    /// Returns the paths of the unit's files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        let files = self.files.iter().map(String::as_str);
        files.filter(|path| !path.is_empty())
    }

    /// Returns the row for `address`: of the rows with the highest address not above `address`, the first that starts a
    /// statement and does not end a sequence. `None` if none of them does: rows at lower addresses are not considered.
    pub(crate) fn at(&self, address: u64) -> Option<LineRow> {
        let rows = self.rows();
        let after = rows.partition_point(|row| row.address <= address);
        let last = rows.get(after.checked_sub(1)?)?.address;
        let first = rows.partition_point(|row| row.address < last);
        let candidates = rows.get(first..after)?;
        let row = candidates
            .iter()
            .find(|row| row.is_statement && !row.ends_sequence);
        row.copied()
    }

    /// Returns the end of the prologue of the function at `entry`: the address of its second row, or `entry` if its first row
    /// has `prologue_end` or the second row is not below `end`. `None` if no row begins at `entry`.
    pub(crate) fn after_prologue(&self, entry: u64, end: u64) -> Option<u64> {
        let rows = self.rows();
        let first = rows
            .iter()
            .position(|row| row.address == entry && !row.ends_sequence)?;
        if rows.get(first)?.ends_prologue {
            return Some(entry);
        }
        let second = rows.get(first + 1).map(|row| row.address);
        Some(second.filter(|address| *address < end).unwrap_or(entry))
    }
}

/// Runs a line program and returns the sorted rows, up to the first damaged one.
fn run(program: IncompleteLineProgram<Slice<'_>>) -> Vec<LineRow> {
    let mut rows = Vec::new();
    let mut machine = program.rows();
    while let Ok(Some((_, row))) = machine.next_row() {
        let line = row.line().map_or(0, |line| line.get());
        rows.push(LineRow {
            address: row.address(),
            file: row.file_index(),
            line: u32::try_from(line).unwrap_or(0),
            is_statement: row.is_stmt(),
            ends_sequence: row.end_sequence(),
            ends_prologue: row.prologue_end(),
        });
    }
    rows.sort_by_key(|row: &LineRow| (row.address, !row.ends_sequence));
    rows
}

/// Whether a file of the unit has the file name `name` and a path that passes `is_wanted`.
pub(super) fn has_file<'u>(
    unit: UnitRef<'_, Slice<'u>>,
    name: &str,
    is_wanted: &dyn Fn(&str) -> bool,
) -> bool {
    let Some(program) = &unit.line_program else {
        return false;
    };
    let header = program.header();
    // Building a path is much slower than comparing the file name.
    let has_name = |file: &FileEntry<Slice<'u>>| {
        let path = unit.attr_string(file.path_name());
        path.is_ok_and(|path| {
            let directory = path.slice().strip_suffix(name.as_bytes());
            directory.is_some_and(|directory| directory.is_empty() || directory.ends_with(b"/"))
        })
    };
    let named = files(header).flatten().filter(|file| has_name(file));
    let mut paths = named.filter_map(|file| file_path(unit, header, file));
    paths.any(|path| is_wanted(&path))
}

/// Returns the files of a line table by index. The item is `None` only for index 0, which may be missing before DWARF 5.
fn files<'h, 'u>(
    header: &'h LineProgramHeader<Slice<'u>>,
) -> impl Iterator<Item = Option<&'h FileEntry<Slice<'u>>>> {
    let numbered = (0..).map(|number| (number, header.file(number)));
    let present = numbered.take_while(|(number, file)| *number == 0 || file.is_some());
    present.map(|(_, file)| file)
}

/// Returns a file's path: a relative name is in the file's directory, a relative directory in the compilation directory.
pub(super) fn file_path<'u>(
    unit: UnitRef<'_, Slice<'u>>,
    header: &LineProgramHeader<Slice<'u>>,
    file: &FileEntry<Slice<'u>>,
) -> Option<String> {
    let text = |value| {
        let text = unit.attr_string(value).ok()?;
        Some(text.to_string_lossy().into_owned())
    };
    let name = text(file.path_name())?;
    let compilation_directory = unit.comp_dir.map(|dir| dir.to_string_lossy().into_owned());
    // Directory 0 is the compilation directory, whether listed or not.
    let directory = match file.directory_index() {
        0 => None,
        _ => file.directory(header).and_then(text),
    };
    let mut path = String::new();
    for part in compilation_directory
        .iter()
        .chain(&directory)
        .chain([&name])
    {
        if part.starts_with('/') {
            path.clear();
        } else if !path.is_empty() && !path.ends_with('/') {
            path.push('/');
        }
        path.push_str(part);
    }
    Some(path)
}
