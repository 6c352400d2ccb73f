//! One sample as `script` shows it: which fields, and their values as plain data. Rendering them is `view::script`'s.

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
mod texts;

pub use class::EventClass;
pub use disassembly::SampledInsn;
pub use error::Error;
pub use fields::{Field, Fields};
pub use flow::{Code, Flow, FlowOptions, Step, Taken};
pub use line::{Line, Lines, Named, Source, Spot};
pub use metrics::{Form, Metric, Metrics};
pub use payloads::{PayloadFinding, Payloads};
pub use rperf_resolve::SourceLine;
pub use selection::{Selection, Warning};
pub use source_text::{SourceFiles, SourceText};
pub use switch::EventSwitch;
pub use texts::{TextKey, Texts};
