//! Selects the units to search: by function name, source file, or both.

use std::ops::ControlFlow;

use rperf_names::is_pattern;
use rperf_symbol::{DebugInfo, DebugUnit, FunctionQuery, UnitPrefilter};

use super::source::is_path_end;
use super::{SearchOptions, is_wanted};
use crate::dwarf::{CompileUnit, Functions};
use crate::object::ProbeObject;

/// Conditions for units to search.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UnitQuery<'d> {
    /// A function name or pattern.
    pub(crate) function: Option<&'d str>,
    /// The end of a source file's path.
    pub(crate) file: Option<&'d str>,
}

impl UnitQuery<'_> {
    /// Passes the units that meet the conditions to `visit`, in file order, until it returns [`ControlFlow::Break`].
    /// Returns the number of units that could not be checked because their `.dwo` files are missing.
    pub(crate) fn for_each(
        self,
        info: &DebugInfo,
        object: &ProbeObject<'_>,
        options: &SearchOptions,
        visit: &mut dyn FnMut(&CompileUnit<'_>) -> ControlFlow<()>,
    ) -> usize {
        let is_name = |other: &str| self.function.is_some_and(|name| is_wanted(name, other));
        let is_in = |unit: DebugUnit<'_>| {
            let compile_unit = CompileUnit::new(unit);
            let functions = Functions::with_names(&compile_unit, &is_name);
            functions.named().next().is_some()
        };
        let has_file = |unit: DebugUnit<'_>| {
            let end = self.file.unwrap_or_default();
            let name = end.rsplit('/').next().unwrap_or_default();
            CompileUnit::new(unit).has_file(name, &|path| is_path_end(path, end))
        };
        let prefilter = UnitPrefilter {
            threads: options.threads,
            function: self.function.map(|name| FunctionQuery {
                start: beginning(name),
                is_name: &is_name,
                is_in: &is_in,
            }),
            keep: self.file.map(|_| &has_file as _),
        };
        info.for_each_unit(object.sources.files, &prefilter, &mut |unit| {
            visit(&CompileUnit::new(unit))
        })
    }
}

/// Returns the common prefix of all names that match `name`.
fn beginning(name: &str) -> &str {
    match name.contains("::") && !is_pattern(name) {
        // A name with `::` is also compared with linkage names, which begin differently.
        true => "",
        false => name.split(['*', '?', '[', '\\']).next().unwrap_or_default(),
    }
}
