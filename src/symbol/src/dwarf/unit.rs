//! The parsed data of one compile unit, read when the first address in it is looked up.

use std::path::PathBuf;

use gimli::{DebugInfoOffset, Unit, UnitRef};

use super::functions::{UnitFunction, UnitFunctions};
use super::index::UnitNumber;
use super::interner::Interner;
use super::name::{self, DwarfFile};
use super::rows::{self, LineRows};
use super::sections::Slice;
use super::split::SplitEntries;
use super::units::{DebugObject, UnitBasics, UnitEntries, Units};
use super::{FileId, FunctionId, SourceFrame};
use crate::demangle::demangle;
use crate::files::Files;

/// A parsed unit.
#[derive(Debug, Default)]
pub(super) struct ReadUnit {
    functions: UnitFunctions,
    rows: LineRows,
    /// The source files, by the file numbers of rows and calls.
    files: Vec<Option<FileId>>,
    split: Option<SplitUnit>,
}

/// The split unit, in a `.dwo` or `.dwp` file, that has the entries of a skeleton unit.
#[derive(Debug)]
struct SplitUnit {
    file: SplitEntries,
    /// Offset of the unit in that file's `.debug_info`.
    offset: DebugInfoOffset,
    basics: UnitBasics,
}

/// The interned names and paths of all units of an object, and whether names are demangled.
pub(super) struct StringInterners<'a> {
    pub(super) functions: &'a Interner,
    pub(super) files: &'a Interner,
    pub(super) demangle: bool,
}

impl ReadUnit {
    /// Reads a unit. Also returns the path of its `.dwo` file if that is missing, damaged, or of another build.
    pub(super) fn read(
        files: &dyn Files,
        object: &DebugObject,
        number: UnitNumber,
        interners: &StringInterners<'_>,
    ) -> (Self, Option<PathBuf>) {
        let units = Units::new(object);
        let Some(unit) = units.numbered(number) else {
            return (Self::default(), None);
        };
        let unit_ref = UnitRef::new(&units.main, &unit);
        let program = unit.line_program.clone();
        let paths = rows::files(unit_ref);
        let mut read = Self {
            functions: UnitFunctions::default(),
            rows: program.map(LineRows::read).unwrap_or_default(),
            files: paths.iter().map(|path| interners.file(path)).collect(),
            split: None,
        };
        let mut missing = None;
        match unit.dwo_id {
            None => read.functions = UnitFunctions::read(unit_ref),
            Some(id) => match SplitEntries::find(files, object, &units, &unit, id) {
                Ok(split) => read.read_split(split, object, &units, &unit),
                Err(path) => missing = Some(path),
            },
        }
        (read, missing)
    }

    /// Appends the frames at `address`, innermost first. Returns whether there are any.
    pub(super) fn frames(
        &self,
        object: &DebugObject,
        number: UnitNumber,
        interners: &StringInterners<'_>,
        address: u64,
        frames: &mut Vec<SourceFrame>,
    ) -> bool {
        let row = self.rows.find(address);
        let mut functions = self.functions.find(address).peekable();
        if functions.peek().is_none() {
            let no_function = None;
            frames.extend(row.map(|(file, line)| self.frame(no_function, file, line)));
            return row.is_some();
        }
        let mut units = Units::new(object);
        let (entries, file_of_entries) = self.open(object, &mut units, number).unzip();
        let name = |function: &UnitFunction| {
            let name = name::of(&units, entries.as_ref()?, file_of_entries?, function.entry)?;
            interners.function(&name.to_string_lossy())
        };
        // Without a row, no file (an index beyond the table) and no line.
        let (mut file, mut line) = row.unwrap_or((u32::MAX, 0));
        for function in functions {
            frames.push(self.frame(name(function), file, line));
            // The next function is the caller, whose location is the call.
            (file, line) = (function.call_file, function.call_line);
        }
        true
    }

    /// Returns the unit with the entries (DIEs) of functions, which is this unit or its split unit, and the file that has them.
    /// Sets `units.split` to the sections of the split unit's file, if there is one.
    fn open<'a>(
        &'a self,
        object: &'a DebugObject,
        units: &mut Units<'a, 'a>,
        number: UnitNumber,
    ) -> Option<(UnitEntries<'a>, DwarfFile)> {
        let Some(split) = &self.split else {
            return Some((units.entries(number)?, DwarfFile::Main));
        };
        let dwarf = split.file.dwarf(object, &units.main)?;
        let entries = UnitEntries::at(&dwarf, split.offset.0, split.basics.clone());
        units.split = Some(dwarf);
        Some((entries?, DwarfFile::Split))
    }

    /// Reads the functions of the split unit in `file`.
    fn read_split(
        &mut self,
        file: SplitEntries,
        object: &DebugObject,
        units: &Units<'_, '_>,
        skeleton: &Unit<Slice<'_>>,
    ) {
        let Some((dwarf, mut unit)) = file.open(object, &units.main) else {
            return;
        };
        unit.copy_relocated_attributes(skeleton);
        self.functions = UnitFunctions::read(UnitRef::new(&dwarf, &unit));
        let (offset, basics) = (unit.header.debug_info_offset(), UnitBasics::of(&unit));
        // They borrow `file`.
        drop((unit, dwarf));
        self.split = offset.map(|offset| SplitUnit {
            file,
            offset,
            basics,
        });
    }

    fn frame(&self, function: Option<FunctionId>, file: u32, line: u32) -> SourceFrame {
        SourceFrame {
            function,
            file: self.files.get(file as usize).copied().flatten(),
            line,
        }
    }

    /// Approximate size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>()
            + self.functions.size()
            + self.rows.size()
            + self.files.capacity() * size_of::<Option<FileId>>()
            + self.split.as_ref().map_or(0, |split| split.file.size())
    }
}

impl StringInterners<'_> {
    fn function(&self, name: &str) -> Option<FunctionId> {
        let display = |name: &str| self.demangle.then(|| demangle(name)).flatten();
        self.functions.intern(name, display).map(FunctionId)
    }

    fn file(&self, path: &str) -> Option<FileId> {
        let displayed_as_is = |_: &str| None;
        match path {
            "" => None,
            _ => self.files.intern(path, displayed_as_is).map(FileId),
        }
    }
}
