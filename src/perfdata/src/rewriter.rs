//! The interface for changing records before they are written.

use std::fmt;

use crate::EventDesc;

/// Builds a [`Rewriter`] for each recording.
pub trait BuildRewriter: fmt::Debug + Send + Sync {
    /// Changes the event descriptions to match the rewritten samples.
    fn describe(&self, events: &mut [EventDesc]);
    /// Creates a rewriter for a recording of these events, already changed by [`BuildRewriter::describe`].
    fn build(&self, events: &[EventDesc]) -> Box<dyn Rewriter>;
}

/// Changes the records of one recording. [`Rewriter::note`] and [`Rewriter::rewrite`] get the same complete records in the same
/// order, but may get them in batches of different sizes.
pub trait Rewriter: Send {
    /// Inspects records when they are read from their source.
    fn note(&mut self, _records: &[u8]) {}
    /// Called when no later record can be older than those noted so far, such as at the end of a file.
    fn note_end(&mut self) {}
    /// Appends the rewritten `records`, which were noted before. `is_behind` means that the rewriting
    /// lags behind the recording and should take no longer than copying the records.
    fn rewrite(&mut self, records: &[u8], is_behind: bool, to: &mut Vec<u8>);
    /// Appends records that were held back. Called after all noted records were rewritten, at the end of each file; another file
    /// may follow.
    fn end(&mut self, _to: &mut Vec<u8>) {}
}
