//! Which units are searched: those with a function of some name, a source file, or both.

use std::ops::ControlFlow;

use rperf_events::is_pattern;
use rperf_symbol::{DebugInfo, DebugUnit, Sift, Sought};

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
        let is_name = |other: &str| self.function.is_some_and(|name| is_wanted(name, other));
        let is_in = |unit: DebugUnit<'_>| {
            let world = World::new(unit);
            let functions = Functions::with_names(&world, &is_name);
            functions.named().next().is_some()
        };
        let has_file = |unit: DebugUnit<'_>| {
            let end = self.file.unwrap_or_default();
            let name = end.rsplit('/').next().unwrap_or_default();
            World::new(unit).has_file(name, &|path| is_path_end(path, end))
        };
        let sift = Sift {
            threads: options.threads,
            function: self.function.map(|name| Sought {
                start: beginning(name),
                is_name: &is_name,
                is_in: &is_in,
            }),
            keep: self.file.map(|_| &has_file as _),
        };
        info.for_each_unit(object.sources.files, &sift, &mut |unit| {
            visit(&World::new(unit))
        })
    }
}

/// How all names begin that are meant by `name`.
fn beginning(name: &str) -> &str {
    match name.contains("::") && !is_pattern(name) {
        // It is compared with what linkers call functions, too.
        true => "",
        false => name.split(['*', '?', '[', '\\']).next().unwrap_or_default(),
    }
}
