//! Tests against a naive implementation: samples one by one, all callchains in a tree that is pruned at the end.

mod batches;
mod fake;
mod oracle;
mod property;
