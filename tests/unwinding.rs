//! Stacks unwound with stack copies (`--call-graph dwarf`) or while recording (`--unwind live`): compared with the programs'
//! known callers, with each other, and with perf.

mod c_programs;
mod go_programs;
mod hidden_programs;
mod live;
mod programs;
mod same_stacks;
mod stacks;
