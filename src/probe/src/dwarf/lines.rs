//! The line table of a unit, every row of it, by address.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use gimli::{FileEntry, IncompleteLineProgram, LineProgramHeader, UnitRef};
use rperf_symbol::dwarf::Slice;

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) address: u64,
    /// Position among the files.
    pub(crate) file: u64,
    /// 0 for code that belongs to none.
    pub(crate) line: u32,
    /// A place where a statement begins.
    pub(crate) is_statement: bool,
    /// Behind the last instruction of a sequence.
    pub(crate) is_end: bool,
    /// The compiler says that the prologue ends here.
    pub(crate) ends_prologue: bool,
}

/// The files of a unit, and the rows, which are read when they are asked for.
#[derive(Debug, Default)]
pub(crate) struct LineTable<'u> {
    program: Option<IncompleteLineProgram<Slice<'u>>>,
    /// By address; those of one address in the order of the table, ends of sequences first.
    rows: OnceCell<Vec<Row>>,
    files: Vec<String>,
}

impl<'u> LineTable<'u> {
    /// Reads the head of a line program.
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

    pub(crate) fn rows(&self) -> &[Row] {
        self.rows
            .get_or_init(|| self.program.clone().map(run).unwrap_or_default())
    }

    /// The path of the file at this position.
    pub(crate) fn file(&self, index: u64) -> Option<&str> {
        let path = self.files.get(usize::try_from(index).ok()?)?;
        Some(path.as_str()).filter(|path| !path.is_empty())
    }

    /// The positions of the files that `is_wanted` says yes to; one file may have several.
    pub(crate) fn positions(&self, is_wanted: &dyn Fn(&str) -> bool) -> BTreeSet<u64> {
        let named = (0..).zip(&self.files).filter(|(_, path)| !path.is_empty());
        let wanted = named.filter(|(_, path)| is_wanted(path));
        wanted.map(|(index, _)| index).collect()
    }

    /// The files of the unit.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        let files = self.files.iter().map(String::as_str);
        files.filter(|path| !path.is_empty())
    }

    /// The rows of `address` and those before it: the first that begins a statement at the last address not above.
    pub(crate) fn at(&self, address: u64) -> Option<Row> {
        let rows = self.rows();
        let behind = rows.partition_point(|row| row.address <= address);
        let last = rows.get(behind.checked_sub(1)?)?.address;
        let first = rows.partition_point(|row| row.address < last);
        let rows = rows.get(first..)?;
        let rows = rows.iter().take_while(|row| row.address <= address);
        rows.copied().find(|row| row.is_statement && !row.is_end)
    }

    /// Where the body of the function at `entry` begins: at the second row, or where the compiler says; below `end`.
    pub(crate) fn behind_prologue(&self, entry: u64, end: u64) -> Option<u64> {
        let rows = self.rows();
        let first = rows
            .iter()
            .position(|row| row.address == entry && !row.is_end)?;
        if rows.get(first)?.ends_prologue {
            return Some(entry);
        }
        let second = rows.get(first + 1).map(|row| row.address);
        Some(second.filter(|address| *address < end).unwrap_or(entry))
    }
}

/// Runs a line program. What comes before damage is kept.
fn run(program: IncompleteLineProgram<Slice<'_>>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut machine = program.rows();
    while let Ok(Some((_, row))) = machine.next_row() {
        let line = row.line().map_or(0, |line| line.get());
        rows.push(Row {
            address: row.address(),
            file: row.file_index(),
            line: u32::try_from(line).unwrap_or(0),
            is_statement: row.is_stmt(),
            is_end: row.end_sequence(),
            ends_prologue: row.prologue_end(),
        });
    }
    rows.sort_by_key(|row: &Row| (row.address, !row.is_end));
    rows
}

/// Whether one of the unit's files is called `name` in its folder and has a path that `is_wanted` says yes to.
pub(super) fn has_file<'u>(
    unit: UnitRef<'_, Slice<'u>>,
    name: &str,
    is_wanted: &dyn Fn(&str) -> bool,
) -> bool {
    let Some(program) = &unit.line_program else {
        return false;
    };
    let header = program.header();
    // A path is much more work than the end of one.
    let is_called = |file: &FileEntry<Slice<'u>>| {
        let path = unit.attr_string(file.path_name());
        path.is_ok_and(|path| {
            let folder = path.slice().strip_suffix(name.as_bytes());
            folder.is_some_and(|folder| folder.is_empty() || folder.ends_with(b"/"))
        })
    };
    let called = files(header).flatten().filter(|file| is_called(file));
    let mut paths = called.filter_map(|file| file_path(unit, header, file));
    paths.any(|path| is_wanted(&path))
}

/// The files of a line table by their numbers. Before DWARF 5 there may be none with the number 0.
fn files<'h, 'u>(
    header: &'h LineProgramHeader<Slice<'u>>,
) -> impl Iterator<Item = Option<&'h FileEntry<Slice<'u>>>> {
    let numbered = (0..).map(|number| (number, header.file(number)));
    let present = numbered.take_while(|(number, file)| *number == 0 || file.is_some());
    present.map(|(_, file)| file)
}

/// A file's path: below its directory, which is below that of the compilation, unless it is absolute itself.
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
    let compilation = unit.comp_dir.map(|dir| dir.to_string_lossy().into_owned());
    // Directory 0 is that of the compilation, whether it is listed or not.
    let directory = match file.directory_index() {
        0 => None,
        _ => file.directory(header).and_then(text),
    };
    let mut path = String::new();
    for part in compilation.iter().chain(&directory).chain([&name]) {
        if part.starts_with('/') {
            path.clear();
        } else if !path.is_empty() && !path.ends_with('/') {
            path.push('/');
        }
        path.push_str(part);
    }
    Some(path)
}
