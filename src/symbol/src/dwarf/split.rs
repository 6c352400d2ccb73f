//! Split DWARF: entries of a unit in a `.dwo` file or a package of such files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{Dwarf, DwoId, Unit};

use super::sections::{DebugFile, SectionSet, Slice};
use super::units::{DebugObject, Units};
use crate::files::Files;

/// Location of the entries of a skeleton unit.
#[derive(Debug, Clone)]
pub(super) enum SplitEntries {
    /// In the object's package, see [`DebugObject::package`].
    Package(DwoId),
    /// In this `.dwo` file.
    File(DwoId, Arc<DebugFile>),
}

impl SplitEntries {
    /// Locates the entries of `skeleton`: in the package next to the object, otherwise in the
    /// `.dwo` file at its recorded path or next to the object. The error is the recorded path of the
    /// `.dwo` file, which is missing, damaged, or of another build.
    pub(super) fn find(
        files: &dyn Files,
        object: &DebugObject,
        units: &Units<'_, '_>,
        skeleton: &Unit<Slice<'_>>,
        id: DwoId,
    ) -> Result<Self, PathBuf> {
        if let Some(package) = object.package.as_ref().and_then(|file| file.package().ok())
            && let Ok(Some(_)) = package.find_cu(id, &units.main)
        {
            return Ok(Self::Package(id));
        }
        let name = path(units, skeleton);
        for candidate in candidates(&object.main.path, skeleton, &name) {
            let Ok(bytes) = files.read(&candidate) else {
                continue;
            };
            let Ok(file) = DebugFile::parse(&candidate, bytes, SectionSet::Split) else {
                continue;
            };
            let entries = Self::File(id, Arc::new(file));
            if entries.open(object, &units.main).is_some() {
                return Ok(entries);
            }
        }
        Err(name)
    }

    /// The sections of the entries. `main` has the sections of the object itself, with the skeleton unit.
    pub(super) fn dwarf<'a>(
        &'a self,
        object: &'a DebugObject,
        main: &Dwarf<Slice<'a>>,
    ) -> Option<Dwarf<Slice<'a>>> {
        match self {
            Self::Package(id) => {
                let package = object.package.as_ref()?.package().ok()?;
                package.find_cu(*id, main).ok()?
            }
            Self::File(_, file) => {
                let no_alternate = None;
                let mut dwarf = file.dwarf(no_alternate);
                dwarf.make_dwo(main);
                Some(dwarf)
            }
        }
    }

    /// Sections and unit of the entries; `main` as for [`Self::dwarf`].
    pub(super) fn open<'a>(
        &'a self,
        object: &'a DebugObject,
        main: &Dwarf<Slice<'a>>,
    ) -> Option<(Dwarf<Slice<'a>>, Unit<Slice<'a>>)> {
        let dwarf = self.dwarf(object, main)?;
        let (Self::Package(id) | Self::File(id, _)) = self;
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            if let Ok(unit) = dwarf.unit(header)
                && unit.dwo_id == Some(*id)
            {
                return Some((dwarf, unit));
            }
        }
        None
    }

    /// Memory used by the decompressed sections of a `.dwo` file, in bytes. Those of a package are counted with the object.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Package(_) => 0,
            Self::File(_, file) => file.unpacked_len(),
        }
    }
}

/// The path in `DW_AT_dwo_name`; empty if there is none.
fn path(units: &Units<'_, '_>, skeleton: &Unit<Slice<'_>>) -> PathBuf {
    let name = skeleton.dwo_name().ok().flatten();
    let name = name.and_then(|name| units.main.attr_string(skeleton, name).ok());
    name.map_or_else(PathBuf::new, |name| to_path(name))
}

fn candidates(object: &Path, skeleton: &Unit<Slice<'_>>, name: &Path) -> Vec<PathBuf> {
    let compilation_dir = skeleton.comp_dir.map(to_path).unwrap_or_default();
    let beside = object.parent().zip(name.file_name());
    [compilation_dir.join(name)]
        .into_iter()
        .chain(beside.map(|(dir, file)| dir.join(file)))
        .collect()
}

fn to_path(text: Slice<'_>) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(text.slice()))
}
