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
    /// Passes the units that meet the conditions to `visit`, in the order of `.debug_info`, until it returns
    /// [`ControlFlow::Break`].
    /// Returns the number of units that could not be checked because their `.dwo` files are missing.
    pub(crate) fn for_each(
        self,
        info: &DebugInfo,
        object: &ProbeObject<'_>,
        options: &SearchOptions,
        visit: &mut dyn FnMut(&CompileUnit<'_>) -> ControlFlow<()>,
    ) -> usize {
        let is_name = |other: &str| self.function.is_some_and(|name| is_wanted(name, other));
        let has_function = |unit: DebugUnit<'_>| {
            let compile_unit = CompileUnit::new(unit);
            let functions = Functions::with_names(&compile_unit, &is_name);
            functions.with_wanted_name().next().is_some()
        };
        let has_file = |unit: DebugUnit<'_>| {
            let path_end = self.file.unwrap_or_default();
            let file_name = path_end.rsplit('/').next().unwrap_or_default();
            CompileUnit::new(unit).has_file(file_name, &|path| is_path_end(path, path_end))
        };
        let prefilter = UnitPrefilter {
            threads: options.threads,
            function: self.function.map(|name| FunctionQuery {
                start: common_prefix(name),
                matches: &is_name,
                is_in_unit: &has_function,
            }),
            // Units with the function (all units if none is given) must also have the file.
            keep: self.file.map(|_| &has_file as _),
        };
        info.for_each_unit(object.inputs.files, &prefilter, &mut |unit| {
            visit(&CompileUnit::new(unit))
        })
    }
}

/// Returns a prefix that all names selected by `name` have in common.
fn common_prefix(name: &str) -> &str {
    match name.contains("::") && !is_pattern(name) {
        // A name with `::` is also compared with the ends of demangled linkage names.
        true => "",
        false => name.split(['*', '?', '[', '\\']).next().unwrap_or_default(),
    }
}
