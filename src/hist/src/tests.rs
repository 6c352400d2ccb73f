//! Tests of whole recordings (`batches`), and of random samples (`property`) against a naive implementation (`oracle`): samples
//! one by one, all callchains in a tree that is pruned at the end.

mod batches;
mod fake;
mod oracle;
mod property;
