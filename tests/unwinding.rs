//! Stacks unwound from stack copies (`--call-graph dwarf`): compared with the programs' known callers, and with perf.

mod c_programs;
mod go_programs;
mod hidden_programs;
mod live;
mod programs;
mod same_stacks;
mod stacks;
