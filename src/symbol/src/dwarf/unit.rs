//! All that is known of one unit, read when the first address falls into it.

use std::path::PathBuf;

use gimli::{DebugInfoOffset, Unit, UnitRef};

use super::functions::{Function, Functions};
use super::index::UnitNumber;
use super::interner::Interner;
use super::name::{self, Home};
use super::rows::{self, Rows};
use super::sections::Slice;
use super::split::Split;
use super::units::{Basics, Entries, Object, Units};
use super::{FileId, FunctionId, SourceFrame};
use crate::demangle::demangle;
use crate::files::Files;

/// One unit in plain numbers.
#[derive(Debug, Default)]
pub(super) struct ReadUnit {
    functions: Functions,
    rows: Rows,
    files: Vec<Option<FileId>>,
    split: Option<SplitUnit>,
}

/// The entries of a skeleton unit in another file.
#[derive(Debug)]
struct SplitUnit {
    file: Split,
    /// Where the unit is in that file's `.debug_info`.
    offset: DebugInfoOffset,
    basics: Basics,
}

/// What a unit's texts are kept in.
pub(super) struct Texts<'a> {
    pub(super) functions: &'a Interner,
    pub(super) files: &'a Interner,
    pub(super) demangle: bool,
}

impl ReadUnit {
    /// Reads a unit. With it comes the `.dwo` file that should be there and isn't.
    pub(super) fn read(
        files: &dyn Files,
        object: &Object,
        number: UnitNumber,
        texts: &Texts<'_>,
    ) -> (Self, Option<PathBuf>) {
        let units = Units::new(object);
        let Some(unit) = units.numbered(number) else {
            return (Self::default(), None);
        };
        let here = UnitRef::new(&units.main, &unit);
        let program = unit.line_program.clone();
        let paths = rows::files(here);
        let mut read = Self {
            functions: Functions::default(),
            rows: program.map(Rows::read).unwrap_or_default(),
            files: paths.iter().map(|path| texts.file(path)).collect(),
            split: None,
        };
        let mut missing = None;
        match unit.dwo_id {
            None => read.functions = Functions::read(here),
            Some(id) => match Split::find(files, object, &units, &unit, id) {
                Ok(split) => read.read_split(split, object, &units, &unit),
                Err(path) => missing = Some(path),
            },
        }
        (read, missing)
    }

    /// Appends the frames at `address`, innermost first. Whether there are any.
    pub(super) fn frames(
        &self,
        object: &Object,
        number: UnitNumber,
        texts: &Texts<'_>,
        address: u64,
        frames: &mut Vec<SourceFrame>,
    ) -> bool {
        let row = self.rows.find(address);
        let mut functions = self.functions.find(address).peekable();
        if functions.peek().is_none() {
            frames.extend(row.map(|row| self.frame(None, row)));
            return row.is_some();
        }
        let mut units = Units::new(object);
        let (entries, home) = self.open(object, &mut units, number).unzip();
        let name = |function: &Function| {
            let name = name::of(&units, entries.as_ref()?, home?, function.entry)?;
            texts.function(&name.to_string_lossy())
        };
        let mut line = row.unwrap_or((u32::MAX, 0));
        for function in functions {
            frames.push(self.frame(name(function), line));
            line = (function.call_file, function.call_line);
        }
        true
    }

    /// The unit that the entries are in.
    fn open<'a>(
        &'a self,
        object: &'a Object,
        units: &mut Units<'a, 'a>,
        number: UnitNumber,
    ) -> Option<(Entries<'a>, Home)> {
        let Some(split) = &self.split else {
            return Some((units.entries(number)?, Home::Main));
        };
        let dwarf = split.file.dwarf(object, &units.main)?;
        let entries = Entries::at(&dwarf, split.offset.0, split.basics.clone());
        units.split = Some(dwarf);
        Some((entries?, Home::Split))
    }

    fn read_split(
        &mut self,
        file: Split,
        object: &Object,
        units: &Units<'_, '_>,
        skeleton: &Unit<Slice<'_>>,
    ) {
        let Some((dwarf, mut unit)) = file.open(object, &units.main) else {
            return;
        };
        unit.copy_relocated_attributes(skeleton);
        self.functions = Functions::read(UnitRef::new(&dwarf, &unit));
        let (offset, basics) = (unit.header.debug_info_offset(), Basics::of(&unit));
        drop((unit, dwarf));
        self.split = offset.map(|offset| SplitUnit {
            file,
            offset,
            basics,
        });
    }

    fn frame(&self, function: Option<FunctionId>, (file, line): (u32, u32)) -> SourceFrame {
        SourceFrame {
            function,
            file: self.files.get(file as usize).copied().flatten(),
            line,
        }
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>()
            + self.functions.size()
            + self.rows.size()
            + self.files.capacity() * size_of::<Option<FileId>>()
            + self.split.as_ref().map_or(0, |split| split.file.size())
    }
}

impl Texts<'_> {
    fn function(&self, name: &str) -> Option<FunctionId> {
        let show = |name: &str| self.demangle.then(|| demangle(name)).flatten();
        self.functions.intern(name, show).map(FunctionId)
    }

    fn file(&self, path: &str) -> Option<FileId> {
        match path {
            "" => None,
            _ => self.files.intern(path, |_| None).map(FileId),
        }
    }
}
