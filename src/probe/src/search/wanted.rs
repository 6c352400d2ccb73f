//! Which units are searched: those with a function of some name, a source file, or both.

use std::ops::ControlFlow;

use rperf_events::is_pattern;
use rperf_symbol::dwarf::Mentioned;
use rperf_symbol::{DebugInfo, Sift};

use super::source::is_path_end;
use super::{Options, is_wanted};
use crate::dwarf::{Functions, World};
use crate::object::Object;

/// What a unit must have to be searched.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted<'d> {
    /// The name of a function, or a pattern.
    pub(crate) function: Option<&'d str>,
    /// The end of a source file's path.
    pub(crate) file: Option<&'d str>,
}

impl Wanted<'_> {
    /// Hands such units to `visit`, in file order, until that breaks off. How many units have their entries in files that
    /// are missing is returned.
    pub(crate) fn for_each(
        self,
        info: &DebugInfo,
        object: &Object<'_>,
        options: &Options,
        visit: &mut dyn FnMut(&World<'_>) -> ControlFlow<()>,
    ) -> usize {
        let sift = Sift {
            threads: options.threads,
            // What is no name by itself is compared with each.
            name: self
                .function
                .filter(|name| !is_pattern(name) && !name.contains("::")),
            keep: &|unit, mentioned| self.is_in(&World::new(unit), mentioned),
        };
        info.for_each_unit(object.sources.files, &sift, &mut |unit| {
            visit(&World::new(unit))
        })
    }

    fn is_in(self, world: &World<'_>, mentioned: Option<&Mentioned<'_>>) -> bool {
        let has_file = |end: &str| {
            let name = end.rsplit('/').next().unwrap_or_default();
            world.has_file(name, &|path| is_path_end(path, end))
        };
        let has_function = |name: &str| {
            let wanted = |other: &str| is_wanted(name, other);
            match mentioned {
                Some(mentioned) => Functions::any_mentioned(world, &wanted, mentioned),
                None => Functions::any_named(world, &wanted),
            }
        };
        self.file.is_none_or(has_file) && self.function.is_none_or(has_function)
    }
}
