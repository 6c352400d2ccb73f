//! Samples as printed by `script`: selected fields, and their values as plain data. Formatting is
//! done by `view::script`.
//!
//! A "line" is one line of this output (`SampleLine`, `LineField`), except in `SourceLine` and `SourceFileLine`.

mod branch_flags;
mod class;
mod disassembly;
mod error;
mod fields;
mod flow;
mod line;
mod metrics;
mod payloads;
mod selection;
mod source_text;
mod switch;
mod switched_samples;
mod texts;

pub use branch_flags::BranchFlags;
pub use class::EventClass;
pub use disassembly::SampledInsn;
pub use error::Error;
pub use fields::{LineField, LineFields};
pub use flow::{BranchFlow, FlowInstruction, FlowOptions, FlowStep, TakenBranch};
pub use line::{LineBuilder, ResolvedAddress, SampleLine, SourceLocation, SymbolOffset};
pub use metrics::{GroupMetric, GroupMetrics, MetricFormat};
pub use payloads::{PayloadFinding, TracepointPrinter};
pub use rperf_resolve::SourceLine;
pub use selection::{FieldSelection, FieldWarning};
pub use source_text::{SourceFileLine, SourceFiles};
pub use switch::EventSwitch;
pub use switched_samples::SwitchedSamples;
pub use texts::{TextCache, TextKey};
