//! The fast path against a naive one: each sample on its own, every chain into a tree, pruned at the end.

mod batches;
mod fake;
mod oracle;
mod property;
