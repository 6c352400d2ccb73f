//! Stacks that are unwound out of copies (`--call-graph dwarf`): against what the programs are known to do, and
//! beside perf.

mod beside_perf;
mod go;
mod known;
mod live;
mod mapped;
mod programs;
mod stacks;
