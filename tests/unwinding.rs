//! Stacks unwound from the stack copies in a recording (`--call-graph dwarf`) or while recording (`--unwind live`): compared with
//! the known callers of the programs' functions, with each other, and with perf.

mod c_programs;
mod go_programs;
mod hidden_programs;
mod live;
mod programs;
mod same_stacks;
mod stacks;
