//! Probes: definitions compared with those of perf, and recorded values with the output of programs.

mod definitions;
mod details;
mod events;
mod kernel_modules;
mod listings;
mod options;
mod probe_cache;
mod programs;
mod recorded_values;
mod scopes;
mod temporary_events;
mod unusual_programs;
