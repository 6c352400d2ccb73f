//! Spans with a start and an end: system calls, interrupts, contended locks, requests.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// What happens at a start whose key already has an open span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepeatedStart {
    /// The earlier end was missed: the span restarts. For system calls of a thread.
    #[default]
    Restarts,
    /// The same start is repeated: the span continues. For a lock that is tried repeatedly.
    Continues,
    /// The new span is nested in the open one, and ends before it. For interrupts on one CPU.
    Nests,
}

/// Matches starts and ends with the same key.
///
/// Unmatched starts and ends are counted: [`Spans::counts`]. Times are nanoseconds of one clock, in increasing order.
#[derive(Debug, Clone)]
pub struct Spans<K, B = ()> {
    repeated: RepeatedStart,
    /// The open spans of each key, innermost last.
    open: FxHashMap<K, Vec<OpenSpan<B>>>,
    /// Emptied vectors of `open`, for reuse: most keys have one open span at a time.
    spare: Vec<Vec<OpenSpan<B>>>,
    counts: SpanCounts,
    /// The number of losses so far.
    losses: u64,
}

/// A span that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSpan<B> {
    /// The start time.
    pub begin: u64,
    /// Data of the start.
    pub data: B,
    /// The number of losses before it.
    losses: u64,
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span<B> {
    /// The start time.
    pub begin: u64,
    /// The end time.
    pub end: u64,
    /// Data of the start.
    pub data: B,
    /// Whether records were lost in between: the end may belong to another span.
    pub is_doubtful: bool,
}

/// Counts of matched and unmatched starts and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpanCounts {
    /// Spans with a start and an end.
    pub complete: u64,
    /// Complete spans in which records were lost.
    pub doubtful: u64,
    /// Ends of keys without an open span.
    pub without_begin: u64,
    /// Starts whose key was already open ([`RepeatedStart`]).
    pub repeated: u64,
    /// Spans discarded by [`Spans::cancel`].
    pub cancelled: u64,
    /// Spans that are open.
    pub open: u64,
}

impl<B> Span<B> {
    /// Returns the nanoseconds from start to end; 0 if the clock went backwards.
    #[must_use]
    pub fn duration(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

impl<K: Hash + Eq, B> Default for Spans<K, B> {
    fn default() -> Self {
        Self::new(RepeatedStart::default())
    }
}

impl<K: Hash + Eq, B> Spans<K, B> {
    /// Creates a matcher without open spans.
    #[must_use]
    pub fn new(repeated: RepeatedStart) -> Self {
        Self {
            repeated,
            open: FxHashMap::default(),
            spare: Vec::new(),
            counts: SpanCounts::default(),
            losses: 0,
        }
    }

    /// Starts a span. If one with this key is open, [`RepeatedStart`] determines what happens.
    pub fn begin(&mut self, key: K, time: u64, data: B) {
        let losses = self.losses;
        let spare = &mut self.spare;
        let stack = self
            .open
            .entry(key)
            .or_insert_with(|| spare.pop().unwrap_or_default());
        let new_span = OpenSpan {
            begin: time,
            data,
            losses,
        };
        let is_open = !stack.is_empty();
        self.counts.repeated += u64::from(is_open);
        match self.repeated {
            RepeatedStart::Continues if is_open => return,
            RepeatedStart::Restarts if is_open => stack.clear(),
            _ => self.counts.open += 1,
        }
        stack.push(new_span);
    }

    /// Ends the innermost span of a key and returns it; `None` if none is open.
    pub fn end(&mut self, key: &K, time: u64) -> Option<Span<B>> {
        let Some(open) = self.pop(key) else {
            self.counts.without_begin += 1;
            return None;
        };
        let is_doubtful = open.losses != self.losses;
        self.counts.complete += 1;
        self.counts.doubtful += u64::from(is_doubtful);
        Some(Span {
            begin: open.begin,
            end: time,
            data: open.data,
            is_doubtful,
        })
    }

    /// Discards and returns the innermost open span of a key, for example because its task exited; `None` if none is open.
    pub fn cancel(&mut self, key: &K) -> Option<OpenSpan<B>> {
        let open = self.pop(key)?;
        self.counts.cancelled += 1;
        Some(open)
    }

    /// Returns the innermost open span of a key; `None` if none is open.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&OpenSpan<B>> {
        self.open.get(key)?.last()
    }

    /// Returns the innermost open span of a key mutably, to update its data.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut OpenSpan<B>> {
        self.open.get_mut(key)?.last_mut()
    }

    /// Notes that records were lost: the open spans become doubtful.
    pub fn lost(&mut self) {
        self.losses += 1;
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn counts(&self) -> SpanCounts {
        self.counts
    }

    /// Returns the open spans, in no particular order.
    pub fn open_spans(&self) -> impl Iterator<Item = (&K, &OpenSpan<B>)> {
        let spans = self.open.iter();
        spans.flat_map(|(key, stack)| stack.iter().map(move |open| (key, open)))
    }

    /// Removes and returns the innermost open span of a key.
    fn pop(&mut self, key: &K) -> Option<OpenSpan<B>> {
        let stack = self.open.get_mut(key)?;
        let open = stack.pop()?;
        self.counts.open -= 1;
        if stack.is_empty()
            && let Some(stack) = self.open.remove(key)
        {
            self.spare.push(stack);
        }
        Some(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_end_finds_the_start_of_its_key() {
        let mut spans = Spans::default();
        spans.begin((7, 'r'), 10, "read");
        spans.begin((8, 'r'), 12, "read");
        assert_eq!(spans.end(&(9, 'r'), 13), None);
        let span = spans.end(&(7, 'r'), 15).unwrap();
        assert_eq!((span.duration(), span.data), (5, "read"));
        assert_eq!(spans.open_spans().count(), 1);
        let expected = SpanCounts {
            complete: 1,
            without_begin: 1,
            open: 1,
            ..SpanCounts::default()
        };
        assert_eq!(spans.counts(), expected);
    }

    #[test]
    fn a_repeated_start_restarts_continues_or_nests() {
        for (repeated, expected) in [
            (RepeatedStart::Restarts, [Some(10), None]),
            (RepeatedStart::Continues, [Some(20), None]),
            (RepeatedStart::Nests, [Some(10), Some(25)]),
        ] {
            let mut spans = Spans::new(repeated);
            spans.begin(1, 0, ());
            spans.begin(1, 10, ());
            let durations = [20, 25].map(|time| spans.end(&1, time).map(|span| span.duration()));
            assert_eq!(durations, expected, "{repeated:?}");
            assert_eq!(spans.counts().repeated, 1);
            assert_eq!(spans.counts().open, 0);
        }
    }

    #[test]
    fn a_span_with_losses_in_it_is_doubtful() {
        let mut spans = Spans::default();
        spans.begin(1, 0, ());
        spans.lost();
        spans.begin(2, 1, ());
        assert!(spans.end(&1, 5).unwrap().is_doubtful);
        assert!(!spans.end(&2, 5).unwrap().is_doubtful);
        assert_eq!(spans.counts().doubtful, 1);
    }

    #[test]
    fn data_can_be_added_while_a_span_is_open() {
        let mut spans = Spans::default();
        spans.begin(1, 0, vec!["begin"]);
        spans.get_mut(&1).unwrap().data.push("later");
        assert_eq!(spans.get(&1).unwrap().data, ["begin", "later"]);
        assert_eq!(spans.cancel(&1).unwrap().data.len(), 2);
        assert_eq!((spans.counts().cancelled, spans.counts().open), (1, 0));
        assert!(spans.cancel(&1).is_none());
    }

    /// Whether it is a start (otherwise an end), and its key, one of few.
    type Step = (bool, u8);

    /// The indices of the start and the end of each span, found by searching all steps before each end.
    fn oracle(steps: &[Step], repeated: RepeatedStart) -> Vec<(usize, usize)> {
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (end, (_, key)) in steps
            .iter()
            .enumerate()
            .filter(|(_, (is_start, _))| !is_start)
        {
            let earlier: Vec<usize> = (0..end).filter(|at| steps[*at].1 == *key).collect();
            // `earlier` are the steps with the same key before this end.
            let ended = |at: usize| pairs.iter().any(|(begin, _)| *begin == at);
            let begin = match repeated {
                // The latest start, unless an end came after it.
                RepeatedStart::Restarts => earlier.last().copied().filter(|at| steps[*at].0),
                // The first start after the previous end.
                RepeatedStart::Continues => {
                    let starts = earlier.iter().rev().take_while(|at| steps[**at].0);
                    starts.last().copied()
                }
                // The latest start without an end.
                RepeatedStart::Nests => {
                    let mut latest_first = earlier.iter().rev().copied();
                    latest_first.find(|at| steps[*at].0 && !ended(*at))
                }
            };
            pairs.extend(begin.map(|begin| (begin, end)));
        }
        pairs
    }

    proptest! {
        #[test]
        fn spans_match_a_naive_search(
            steps in proptest::collection::vec((any::<bool>(), 0..3_u8), 0..60),
            repeated in prop::sample::select(vec![RepeatedStart::Restarts, RepeatedStart::Continues, RepeatedStart::Nests]),
        ) {
            let mut spans = Spans::new(repeated);
            let mut pairs = Vec::new();
            for (at, (is_start, key)) in steps.iter().enumerate() {
                if *is_start {
                    spans.begin(*key, at as u64, at);
                } else if let Some(span) = spans.end(key, at as u64) {
                    pairs.push((span.data, at));
                }
            }
            let expected = oracle(&steps, repeated);
            prop_assert_eq!(&pairs, &expected);
            let counts = spans.counts();
            let starts = steps.iter().filter(|(is_start, _)| *is_start).count() as u64;
            let ends = steps.len() as u64 - starts;
            prop_assert_eq!(counts.complete, expected.len() as u64);
            prop_assert_eq!(counts.complete + counts.without_begin, ends);
            prop_assert_eq!(counts.open, spans.open_spans().count() as u64);
            // A repeated start that does not nest replaces a start, or is ignored.
            let dropped = if repeated == RepeatedStart::Nests { 0 } else { counts.repeated };
            prop_assert_eq!(counts.complete + counts.open + dropped, starts);
        }
    }
}
