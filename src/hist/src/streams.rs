//! Hot streams of `diff --stream`: the heaviest branches of the call graphs of all rows, and the streams that two recordings
//! share.
//!
//! As in perf 6.1, a stream has the frames of one branch only, without the frames that it shares with other streams of its row.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::entries::Entries;
use crate::graphs::GraphBuilder;
use crate::lines::RowLines;
use crate::names::RecordingNames;
use crate::options::HistogramOptions;
use crate::parallel;
use crate::ranks::{KeyView, RankTable};
use crate::rows::EventInput;

/// Maximum number of streams of an event, as in perf.
const MAX_STREAMS: usize = 5;

/// A frame of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamFrame {
    /// The function, with the source line if known; or a hexadecimal address.
    pub text: Arc<str>,
    /// The source line; `None` if it or the function is unknown.
    pub line: Option<Arc<str>>,
}

/// A branch of a call graph in which callchains end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Its frames, innermost first.
    pub frames: Vec<StreamFrame>,
    /// The sum of periods of the samples whose callchains end in it.
    pub period: u64,
    /// The sum of the average cycles of its frames with a source line.
    pub cycles: u64,
}

/// The heaviest streams of an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HotStreams {
    /// The streams, at most five, unordered.
    pub streams: Vec<Stream>,
    /// The period of all streams of the event, for percentages.
    pub total: u64,
}

/// The streams that two recordings share and those of only one of them, as indices of [`HotStreams::streams`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamPairs {
    /// Streams of the first recording, each with the first stream of the second recording that has the same lines.
    pub matched: Vec<(usize, usize)>,
    /// Streams of the first recording only.
    pub only_first: Vec<usize>,
    /// Streams of the second recording only.
    pub only_second: Vec<usize>,
}

impl Stream {
    /// Whether both have the same number of frames and the same source lines. Frames are not compared if one of them
    /// has no line; streams without frames to compare are different.
    fn has_lines_of(&self, other: &Self) -> bool {
        let frames = self.frames.iter().zip(&other.frames);
        let lines = frames.filter_map(|(own, theirs)| own.line.as_ref().zip(theirs.line.as_ref()));
        let mut lines = lines.map(|(own, theirs)| own == theirs).peekable();
        self.frames.len() == other.frames.len()
            && lines.peek().is_some()
            && lines.all(|is_same| is_same)
    }
}

impl HotStreams {
    /// The streams that both recordings have, and the streams of only one recording.
    #[must_use]
    pub fn pairs(&self, other: &Self) -> StreamPairs {
        let mut pairs = StreamPairs::default();
        for (index, stream) in self.streams.iter().enumerate() {
            let mut candidates = other.streams.iter();
            match candidates.position(|candidate| stream.has_lines_of(candidate)) {
                Some(partner) => pairs.matched.push((index, partner)),
                None => pairs.only_first.push(index),
            }
        }
        let is_matched = |index: &usize| pairs.matched.iter().any(|(_, partner)| partner == index);
        let all = 0..other.streams.len();
        pairs.only_second = all.filter(|index| !is_matched(index)).collect();
        pairs
    }

    /// Share of a stream in percent.
    #[must_use]
    pub fn percent(&self, stream: &Stream) -> f64 {
        match self.total {
            0 => 0.0,
            total => stream.period as f64 * 100.0 / total as f64,
        }
    }

    /// Adds a stream. If [`MAX_STREAMS`] streams are kept already, a heavier stream replaces the first of the lightest streams.
    fn add(&mut self, stream: Stream) {
        if self.streams.len() < MAX_STREAMS {
            self.streams.push(stream);
            return;
        }
        let lightest = self.streams.iter_mut().min_by_key(|kept| kept.period);
        if let Some(lightest) = lightest
            && lightest.period < stream.period
        {
            *lightest = stream;
        }
    }
}

/// Finds the streams of an event.
pub(crate) fn hot_streams(
    event: &EventInput<'_>,
    options: &HistogramOptions,
    names: &dyn RecordingNames,
    threads: NonZeroUsize,
) -> HotStreams {
    let (merged, keys) = (event.merged, options.keys());
    // The first table determines which samples share a row, the second the order of rows.
    let views = [KeyView::Identity, KeyView::Rank];
    let [identity, rank] = RankTable::new(&[merged], &keys, names, views, threads);
    let only_event = 0;
    let labels = identity.labels(only_event, merged);
    let entries = Entries::count(merged, labels, options.children, threads);
    let graph = options.graph.as_ref();
    let streams = graph.map_or_else(Vec::new, |graph| {
        // Streams are not limited by weight: all entries have streams, and the total for thresholds is not used.
        let (unused_total, min_period) = (0, 0);
        let graphs = GraphBuilder::new(merged, names, graph, unused_total);
        let chains = entries.chains(min_period, threads);
        parallel::map(chains, threads, |chains| {
            graphs.streams(&chains, MAX_STREAMS)
        })
    });
    // By entry, its heaviest streams and the total of all its streams.
    let mut by_entry: Vec<Option<(Vec<Stream>, u64)>> = streams.into_iter().map(Some).collect();
    // The order of rows decides which of equally heavy streams are kept.
    // `None`: rows of callers (`options.children`) are ordered like other rows, not before or after their callees.
    let direction = None;
    let rows = RowLines::new(vec![entries.list()], &identity).ordered(&rank, options, direction);
    let mut hot = HotStreams::default();
    for row in rows.iter() {
        let of_entry = by_entry.get_mut(row.entry as usize).and_then(Option::take);
        let (streams, total) = of_entry.unwrap_or_default();
        hot.total = hot.total.saturating_add(total);
        streams.into_iter().for_each(|stream| hot.add(stream));
    }
    hot
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(lines: &[&str], period: u64) -> Stream {
        let frame = |line: &&str| StreamFrame {
            text: (*line).into(),
            line: (!line.starts_with("0x")).then(|| (*line).into()),
        };
        Stream {
            frames: lines.iter().map(frame).collect(),
            period,
            cycles: 0,
        }
    }

    fn hot(streams: &[Stream]) -> HotStreams {
        let mut hot = HotStreams::default();
        for stream in streams {
            hot.total += stream.period;
            hot.add(stream.clone());
        }
        hot
    }

    #[test]
    fn a_heavier_stream_replaces_the_first_of_the_lightest() {
        let streams = [3, 1, 2, 1, 4, 1, 2].map(|period| stream(&["a.c:1"], period));
        let hot = hot(&streams);
        let kept: Vec<u64> = hot.streams.iter().map(|stream| stream.period).collect();
        assert_eq!((kept, hot.total), (vec![3, 2, 2, 1, 4], 14));
    }

    #[test]
    fn streams_are_paired_by_their_known_lines() {
        let pairs = |first: &[&[&str]], second: &[&[&str]]| {
            let all = |streams: &[&[&str]]| {
                let streams: Vec<Stream> = streams.iter().map(|lines| stream(lines, 1)).collect();
                hot(&streams)
            };
            let pairs = all(first).pairs(&all(second));
            (pairs.matched, pairs.only_first, pairs.only_second)
        };
        let (known, partly_known) = (["a.c:1", "b.c:2"], ["a.c:1", "0x20"]);
        // Two streams can have the same partner; then another one has none.
        assert_eq!(
            pairs(&[&known, &known], &[&known, &known]),
            (vec![(0, 0), (1, 0)], vec![], vec![1])
        );
        assert_eq!(
            pairs(&[&known], &[&partly_known]),
            (vec![(0, 0)], vec![], vec![])
        );
        assert_eq!(pairs(&[&known], &[&known[..1]]), (vec![], vec![0], vec![0]));
        assert_eq!(
            pairs(&[&["0x20"]], &[&["0x20"]]),
            (vec![], vec![0], vec![0])
        );
    }
}
