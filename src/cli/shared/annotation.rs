//! Functions annotated with their samples: for `annotate`, and for the browsers of `report` and `top`.

mod annotator;
mod chosen_functions;
pub(crate) mod code;
mod function_files;
mod missing_code;
mod objdump;
mod print;
mod request;
mod sources;

use rperf_disasm::{AddressCounts, SampledFunctions};
use rperf_hist::SelectSamples;
use rperf_resolve::Resolver;

pub(crate) use self::annotator::{Annotator, save_function};
use self::chosen_functions::ChosenFunctions;
pub(crate) use self::missing_code::why_no_code;
use self::print::AnnotationPrinter;
pub(crate) use self::request::AnnotationRequest;
pub(crate) use self::sources::SourceTexts;
use crate::cli::error::CliError;
use crate::cli::shared::analysis::Analysis;

/// A recording whose samples are counted by function.
pub(crate) struct FunctionCounts<'c, 'w> {
    pub(crate) analysis: &'c Analysis<'c>,
    pub(crate) resolver: &'c Resolver<'w>,
    /// Selects the counted samples; `None` for all.
    pub(crate) select: Option<&'c dyn SelectSamples>,
    /// The parsed options: which functions are shown, and how.
    pub(crate) request: &'c AnnotationRequest,
}

impl<'c, 'w> FunctionCounts<'c, 'w> {
    /// Counts the samples, and passes the annotator of the functions to `work`.
    ///
    /// # Errors
    ///
    /// There are no samples, or none in a function with a symbol, or none in the requested function.
    pub(crate) fn with_annotator<R>(
        &self,
        work: impl FnOnce(&Annotator<'_, '_>) -> R,
    ) -> Result<R, CliError> {
        let functions = self.functions()?;
        let tables = self.tables(&functions)?;
        let printer = self.printer(&functions);
        Ok(work(&Annotator::new(printer, &tables)))
    }

    /// Counts samples by function; functions that cannot reach the requested minimum percentage may be omitted.
    pub(crate) fn functions(&self) -> Result<SampledFunctions, CliError> {
        let (resolver, select) = (self.resolver, self.select);
        // A function requested by name must not be omitted: it would be reported as one without samples.
        let min_percent = match self.request.symbol {
            Some(_) => 0.0,
            None => self.request.min_percent,
        };
        let new_counts = || AddressCounts::new(resolver, select).with_min_percent(min_percent);
        let Analysis { replay, jobs, .. } = self.analysis;
        Ok(replay.fold(*jobs, new_counts).functions(*jobs))
    }

    /// Returns the functions to show: a table for each group and for each event without a group, or as `--group` or
    /// `--no-group` say.
    ///
    /// # Errors
    ///
    /// Those of [`FunctionCounts::with_annotator`].
    pub(crate) fn tables(
        &self,
        functions: &SampledFunctions,
    ) -> Result<Vec<ChosenFunctions>, CliError> {
        chosen_functions::choose(
            self.request,
            functions,
            self.resolver,
            self.analysis.metadata(),
            self.analysis.input,
        )
    }

    pub(crate) fn printer<'f>(&self, functions: &'f SampledFunctions) -> AnnotationPrinter<'f, 'w>
    where
        'c: 'f,
    {
        AnnotationPrinter {
            request: self.request,
            functions,
            resolver: self.resolver,
            events: self.analysis.data().events(),
            jobs: self.analysis.jobs,
        }
    }
}
