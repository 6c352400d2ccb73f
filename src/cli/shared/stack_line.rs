//! A stack as text in one line: ` a <- b <- c`, innermost first.

use rperf_replay::Sample;
use rperf_resolve::{AddressContext, Resolver};

/// Formats the stacks of samples, each as one line.
#[derive(Clone, Copy)]
pub(crate) struct StackLineFormatter<'r> {
    pub(crate) resolver: &'r Resolver<'r>,
    /// Functions that are not shown.
    pub(crate) hidden: &'static [&'static str],
    /// The maximum number of frames to walk: the user's limit plus the number of frames that may be hidden. If fewer frames are
    /// hidden, more than the user's limit are shown, as in perf, which limits the walk, not the frames shown.
    pub(crate) max_frames: usize,
}

impl StackLineFormatter<'_> {
    /// Returns the stack of a sample; `None` if it has no callchain.
    pub(crate) fn text(&self, sample: &Sample<'_>) -> Option<String> {
        let mut frames = Vec::new();
        let at = AddressContext::of(sample);
        let chain = sample.wire.callchain?;
        self.resolver
            .callchain(at, chain, self.max_frames, &mut frames);
        let mut text = String::new();
        for frame in frames {
            let name = frame.symbol.map(|symbol| self.resolver.symbol_name(symbol));
            if name.is_some_and(|name| self.hidden.contains(&name)) {
                continue;
            }
            if !text.is_empty() {
                text.push_str(" <-");
            }
            text.push(' ');
            text.push_str(name.unwrap_or("[unknown]"));
        }
        Some(text)
    }
}
