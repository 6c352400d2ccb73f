//! Tests of whole recordings (`batches`), and of random samples (`property`) against a naive implementation (`oracle`), which
//! counts samples one by one and keeps all callchains in a tree that it prunes at the end.

mod batches;
mod fake;
mod oracle;
mod property;
