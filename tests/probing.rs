//! Probes: what is written into `uprobe_events` beside what perf writes, and what they record beside what programs print.

mod beside_perf;
mod details;
mod events;
mod fired;
mod kept;
mod options;
mod own;
mod programs;
mod scopes;
mod shown;
mod trouble;
