//! Transforms of a recording, one after the other.
//!
//! ```text
//! records -> stage 1 -> stage 2 -> ... -> output
//!            an ordered stage notes a round before it rewrites the previous one
//! ```
//!
//! A round consists of the records up to a FINISHED_ROUND record.

use std::borrow::Cow;

use rperf_perfdata::{FeatureSet, WriteError};

/// Changes the records of a recording that is copied.
///
/// If the transform is ordered, records are passed to [`Transform::note`] before [`Transform::rewrite`], in the same order.
pub trait Transform {
    /// Whether records must be noted a round before they are rewritten, because records of the next round may precede
    /// them in time.
    fn is_ordered(&self) -> bool {
        false
    }

    /// Inspects records before they are rewritten. Only called if ordered, and not for records of [`Transform::special`].
    fn note(&mut self, _records: &[u8]) {}

    /// Called after the last record of the recording was noted, before the last two rounds are rewritten; if not ordered, after
    /// all records were rewritten.
    fn note_end(&mut self) {}

    /// Appends the rewritten `records`.
    fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>);

    /// Appends the replacement of a record in a [`Piece::Special`]; by default, a copy.
    fn special(&mut self, record: &[u8], to: &mut Vec<u8>) {
        to.extend_from_slice(record);
    }

    /// Appends records after the last one.
    fn end(&mut self, _to: &mut Vec<u8>) {}

    /// Changes the feature sections of a recording that is read from a file. Called after the last record if the output is a
    /// file, before the first record if it is a stream. Not called if the recording is read from a stream: its features are
    /// metadata records, which are passed to [`Transform::special`].
    fn features(&mut self, _features: &mut FeatureSet) {}
}

/// Complete records of a recording.
#[derive(Debug, Clone)]
pub enum Piece<'a> {
    /// Records without payloads (data after the record, which its size does not include, such as AUX data), in file order.
    Records(Cow<'a, [u8]>),
    /// One record with a payload, with that payload, or one metadata record (`PipeHead::is_metadata`).
    Special(Cow<'a, [u8]>),
}

impl Piece<'_> {
    /// The bytes of the records.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Records(bytes) | Self::Special(bytes) => bytes,
        }
    }
}

/// Receives the result of a [`Pipeline`].
pub type PieceOutput<'o> = &'o mut dyn FnMut(&Piece<'_>) -> Result<(), WriteError>;

/// Transforms that are applied one after the other.
#[derive(Default)]
pub struct Pipeline<'a> {
    stages: Vec<Stage<'a>>,
}

/// A transform and, if it is ordered, the pieces it has not rewritten yet: those of the previous and of the current round.
struct Stage<'a> {
    transform: Box<dyn Transform + 'a>,
    previous: Vec<Piece<'a>>,
    current: Vec<Piece<'a>>,
}

impl<'a> Pipeline<'a> {
    /// Creates a pipeline without transforms, which copies.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a transform after the earlier ones.
    pub fn add(&mut self, transform: impl Transform + 'a) {
        self.stages.push(Stage {
            transform: Box::new(transform),
            previous: Vec::new(),
            current: Vec::new(),
        });
    }

    /// Passes on the next records.
    ///
    /// # Errors
    /// Errors of `output`.
    pub fn push(&mut self, piece: Piece<'a>, output: PieceOutput<'_>) -> Result<(), WriteError> {
        push(&mut self.stages, piece, output)
    }

    /// Ends a round. Must be called after each FINISHED_ROUND record.
    ///
    /// # Errors
    /// Errors of `output`.
    pub fn end_round(&mut self, output: PieceOutput<'_>) -> Result<(), WriteError> {
        end_round(&mut self.stages, output)
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// Errors of `output`.
    pub fn end(&mut self, output: PieceOutput<'_>) -> Result<(), WriteError> {
        end(&mut self.stages, output)
    }

    /// Changes the feature sections of the output.
    pub fn features(&mut self, features: &mut FeatureSet) {
        for stage in &mut self.stages {
            stage.transform.features(features);
        }
    }
}

impl<'a> Stage<'a> {
    fn rewritten(&mut self, piece: &Piece<'_>) -> Piece<'a> {
        let mut to = Vec::new();
        match piece {
            Piece::Records(records) => {
                self.transform.rewrite(records, &mut to);
                Piece::Records(to.into())
            }
            Piece::Special(record) => {
                self.transform.special(record, &mut to);
                Piece::Special(to.into())
            }
        }
    }
}

fn push<'a>(
    stages: &mut [Stage<'a>],
    piece: Piece<'a>,
    output: PieceOutput<'_>,
) -> Result<(), WriteError> {
    if piece.bytes().is_empty() {
        return Ok(());
    }
    let Some((stage, later)) = stages.split_first_mut() else {
        return output(&piece);
    };
    if !stage.transform.is_ordered() {
        let rewritten = stage.rewritten(&piece);
        return push(later, rewritten, output);
    }
    if let Piece::Records(records) = &piece {
        stage.transform.note(records);
    }
    stage.current.push(piece);
    Ok(())
}

fn end_round(stages: &mut [Stage<'_>], output: PieceOutput<'_>) -> Result<(), WriteError> {
    let Some((stage, later)) = stages.split_first_mut() else {
        return Ok(());
    };
    rewrite_previous(stage, later, output)?;
    stage.previous = std::mem::take(&mut stage.current);
    end_round(later, output)
}

fn rewrite_previous<'a>(
    stage: &mut Stage<'a>,
    later: &mut [Stage<'a>],
    output: PieceOutput<'_>,
) -> Result<(), WriteError> {
    for piece in std::mem::take(&mut stage.previous) {
        let rewritten = stage.rewritten(&piece);
        push(later, rewritten, output)?;
    }
    Ok(())
}

fn end(stages: &mut [Stage<'_>], output: PieceOutput<'_>) -> Result<(), WriteError> {
    let Some((stage, later)) = stages.split_first_mut() else {
        return Ok(());
    };
    stage.transform.note_end();
    rewrite_previous(stage, later, output)?;
    stage.previous = std::mem::take(&mut stage.current);
    rewrite_previous(stage, later, output)?;
    let mut last = Vec::new();
    stage.transform.end(&mut last);
    push(later, Piece::Records(last.into()), output)?;
    end(later, output)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies records, followed in parentheses by the records that it has noted so far; a dot in them means that the last record
    /// of the recording has been noted. Appends `!` to the recording.
    struct Watcher {
        is_ordered: bool,
        noted: Vec<u8>,
    }

    impl Transform for Watcher {
        fn is_ordered(&self) -> bool {
            self.is_ordered
        }

        fn note(&mut self, records: &[u8]) {
            self.noted.extend_from_slice(records);
        }

        fn note_end(&mut self) {
            self.noted.push(b'.');
        }

        fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
            to.extend_from_slice(records);
            to.push(b'(');
            to.extend_from_slice(&self.noted);
            to.push(b')');
        }

        fn end(&mut self, to: &mut Vec<u8>) {
            to.push(b'!');
        }
    }

    const ORDERED: bool = true;
    const UNORDERED: bool = false;

    /// The output of three rounds, passed through a watcher for each of `stages`, which is ordered or not.
    fn result(stages: &[bool]) -> String {
        let mut pipeline = Pipeline::new();
        for is_ordered in stages {
            pipeline.add(Watcher {
                is_ordered: *is_ordered,
                noted: Vec::new(),
            });
        }
        let mut text = String::new();
        let mut output = |piece: &Piece<'_>| {
            text.push_str(std::str::from_utf8(piece.bytes()).unwrap());
            Ok(())
        };
        for (round, special) in [(&b"a"[..], &b"S"[..]), (b"b", b""), (b"c", b"")] {
            let (records, special) = (Piece::Records(round.into()), Piece::Special(special.into()));
            pipeline.push(records, &mut output).unwrap();
            pipeline.push(special, &mut output).unwrap();
            pipeline.end_round(&mut output).unwrap();
        }
        pipeline.end(&mut output).unwrap();
        text
    }

    #[test]
    fn an_ordered_stage_sees_the_next_round_first() {
        assert_eq!(result(&[]), "aSbc");
        assert_eq!(result(&[UNORDERED]), "a()Sb()c()!");
        assert_eq!(result(&[ORDERED]), "a(ab)Sb(abc)c(abc.)!");
    }

    /// The second stage notes the output of the first, parentheses included: `a(ab)` and `S` are its first round with records.
    #[test]
    fn a_second_ordered_stage_is_a_round_later() {
        assert_eq!(
            result(&[ORDERED, ORDERED]),
            "a(ab)(a(ab)b(abc))Sb(abc)(a(ab)b(abc)c(abc.)!.)c(abc.)(a(ab)b(abc)c(abc.)!.)!(a(ab)b(abc)c(abc.)!.)!"
        );
    }
}
