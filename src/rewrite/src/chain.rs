//! Chains of rewriters.

use std::sync::Arc;

use rperf_perfdata::{BuildRewriter, EventDesc, Rewriter};

/// Builds a chain of rewriters, each of which receives the output of the previous one; `None` without builders.
///
/// [`Rewriter::note`] and [`Rewriter::note_end`] are called for the first rewriter only: they concern records as read from the
/// source, and later rewriters receive rewritten records.
pub fn chain(
    builders: impl IntoIterator<Item = Arc<dyn BuildRewriter>>,
) -> Option<Arc<dyn BuildRewriter>> {
    let builders = builders.into_iter();
    builders.reduce(|first, second| Arc::new(BuildBoth { first, second }))
}

/// Builds a [`RewriterPair`].
#[derive(Debug)]
struct BuildBoth {
    first: Arc<dyn BuildRewriter>,
    second: Arc<dyn BuildRewriter>,
}

impl BuildRewriter for BuildBoth {
    fn describe(&self, events: &mut [EventDesc]) {
        self.first.describe(events);
        self.second.describe(events);
    }

    fn build(&self, events: &[EventDesc]) -> Box<dyn Rewriter> {
        Box::new(RewriterPair {
            first: self.first.build(events),
            second: self.second.build(events),
            between: Vec::new(),
        })
    }
}

/// Two rewriters in sequence.
struct RewriterPair {
    first: Box<dyn Rewriter>,
    second: Box<dyn Rewriter>,
    /// Records from the first to the second.
    between: Vec<u8>,
}

impl Rewriter for RewriterPair {
    fn note(&mut self, records: &[u8]) {
        self.first.note(records);
    }

    fn note_end(&mut self) {
        self.first.note_end();
    }

    /// `is_behind`: whether the rewriting lags behind the recording, so that it should be fast.
    fn rewrite(&mut self, records: &[u8], is_behind: bool, to: &mut Vec<u8>) {
        self.between.clear();
        self.first.rewrite(records, is_behind, &mut self.between);
        self.second.rewrite(&self.between, is_behind, to);
    }

    fn end(&mut self, to: &mut Vec<u8>) {
        self.between.clear();
        self.first.end(&mut self.between);
        // At the end, rewriting need not keep up with the recording.
        let is_behind = false;
        self.second.rewrite(&self.between, is_behind, to);
        self.second.end(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::Attr;

    /// Appends its byte to the records of each `rewrite`, and a dot and its byte at the end.
    #[derive(Debug, Clone, Copy)]
    struct Mark(u8);

    impl BuildRewriter for Mark {
        fn describe(&self, events: &mut [EventDesc]) {
            for event in events {
                event.name.push(char::from(self.0));
            }
        }

        fn build(&self, _events: &[EventDesc]) -> Box<dyn Rewriter> {
            Box::new(*self)
        }
    }

    impl Rewriter for Mark {
        fn rewrite(&mut self, records: &[u8], _is_behind: bool, to: &mut Vec<u8>) {
            to.extend_from_slice(records);
            to.push(self.0);
        }

        fn end(&mut self, to: &mut Vec<u8>) {
            to.extend([b'.', self.0]);
        }
    }

    #[test]
    fn rewriters_are_chained() {
        assert!(chain([]).is_none());
        let marks = [b'a', b'b', b'c'].map(|mark| Arc::new(Mark(mark)) as Arc<dyn BuildRewriter>);
        let chain = chain(marks).unwrap();
        let mut events = [EventDesc {
            attr: Attr::default(),
            ids: Vec::new(),
            name: String::new(),
        }];
        chain.describe(&mut events);
        assert_eq!(events[0].name, "abc");
        let mut rewriter = chain.build(&events);
        let mut to = Vec::new();
        let is_behind = false;
        rewriter.rewrite(b"1", is_behind, &mut to);
        assert_eq!(to, b"1abc");
        to.clear();
        rewriter.end(&mut to);
        assert_eq!(to, b".ab.bc.c");
    }
}
