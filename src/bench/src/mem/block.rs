//! Blocks that are copied or filled.

use std::hint::black_box;

use rperf_sys::{AnonymousMap, BlockInstructions, PageOptions};

use super::{Clock, Cost};
use crate::BenchError;

/// Copying or filling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockOperation {
    /// memcpy(3).
    Copy,
    /// memset(3).
    Fill,
}

/// A function that copies or fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockFunction {
    /// perf's name for it.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// The instructions that it uses; `None` for the function of the C library.
    instructions: Option<BlockInstructions>,
}

/// Marks a function of the C library: no instructions of our own are used.
const C_LIBRARY: Option<BlockInstructions> = None;

/// The description of a function of the C library, with the library's name.
macro_rules! library {
    ($function:literal) => {
        if cfg!(target_env = "musl") {
            concat!("Default ", $function, "() provided by musl")
        } else {
            concat!("Default ", $function, "() provided by glibc")
        }
    };
}

/// The functions that copy; the first is that of the C library.
const COPY: &[BlockFunction] = &[
    function("default", library!("memcpy"), C_LIBRARY),
    function(
        "x86-64-unrolled",
        "unrolled loop of 64-bit moves",
        Some(BlockInstructions::Unrolled),
    ),
    function(
        "x86-64-movsq",
        "movsq-based copy",
        Some(BlockInstructions::Quadwords),
    ),
    function(
        "x86-64-movsb",
        "movsb-based copy",
        Some(BlockInstructions::Bytes),
    ),
];

/// The functions that fill; the first is that of the C library.
const FILL: &[BlockFunction] = &[
    function("default", library!("memset"), C_LIBRARY),
    function(
        "x86-64-unrolled",
        "unrolled loop of 64-bit stores",
        Some(BlockInstructions::Unrolled),
    ),
    function(
        "x86-64-stosq",
        "stosq-based fill",
        Some(BlockInstructions::Quadwords),
    ),
    function(
        "x86-64-stosb",
        "stosb-based fill",
        Some(BlockInstructions::Bytes),
    ),
];

const fn function(
    name: &'static str,
    description: &'static str,
    instructions: Option<BlockInstructions>,
) -> BlockFunction {
    BlockFunction {
        name,
        description,
        instructions,
    }
}

impl BlockOperation {
    /// Returns the functions for this architecture. Architectures other than x86-64 have only that of the C library.
    #[must_use]
    pub fn functions(self) -> &'static [BlockFunction] {
        let all = match self {
            Self::Copy => COPY,
            Self::Fill => FILL,
        };
        match cfg!(target_arch = "x86_64") {
            true => all,
            false => all.get(..1).unwrap_or_default(),
        }
    }
}

/// The benchmarks `mem memcpy` and `mem memset`.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// What is measured.
    pub operation: BlockOperation,
    /// Bytes of a block.
    pub size: usize,
    /// Maximum number of bytes of a call, not 0. A larger block takes several calls.
    pub chunk: usize,
    /// How often the block is processed in the measurement.
    pub loops: u64,
    /// The memory's pages.
    pub pages: PageOptions,
}

impl Block {
    /// Returns the number of bytes that are processed in the measurement.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.size as f64 * self.loops as f64
    }

    /// Processes the block once to make its pages exist, then measures.
    ///
    /// # Errors
    /// [`BenchError::Unavailable`] if there is not enough memory with such pages; the errors of [`Clock::measure`].
    pub fn run(&self, function: BlockFunction, clock: &Clock) -> Result<Cost, BenchError> {
        let map = || {
            AnonymousMap::new(self.size, self.pages).map_err(|error| {
                BenchError::Unavailable(format!("memory of {} bytes: {error}", self.size))
            })
        };
        let mut target = map()?;
        match self.operation {
            BlockOperation::Copy => {
                let mut source = map()?;
                // Pages that are only read may all be the kernel's zero page.
                source.bytes_mut().fill(1);
                let run = || self.copy(function, target.bytes_mut(), source.bytes());
                self.measure(run, clock)
            }
            BlockOperation::Fill => {
                let mut byte = 0_u8;
                let run = || {
                    // As in perf, each pass fills with another byte.
                    byte = byte.wrapping_add(1);
                    self.fill(function, target.bytes_mut(), byte);
                };
                self.measure(run, clock)
            }
        }
    }

    fn measure(&self, mut run: impl FnMut(), clock: &Clock) -> Result<Cost, BenchError> {
        run();
        clock.measure(|| (0..self.loops).for_each(|_| run()))
    }

    fn copy(&self, function: BlockFunction, target: &mut [u8], source: &[u8]) {
        let chunks = target.chunks_mut(self.chunk).zip(source.chunks(self.chunk));
        for (target, source) in chunks {
            match function.instructions {
                // The compiler turns this into a call of memcpy.
                None => target.copy_from_slice(black_box(source)),
                Some(instructions) => instructions.copy(target, source),
            }
            black_box(target);
        }
    }

    fn fill(&self, function: BlockFunction, target: &mut [u8], byte: u8) {
        for target in target.chunks_mut(self.chunk) {
            match function.instructions {
                // The compiler turns this into a call of memset.
                None => target.fill(black_box(byte)),
                Some(instructions) => instructions.fill(target, byte),
            }
            black_box(target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn block(operation: BlockOperation, chunk: usize) -> Block {
        Block {
            operation,
            size: 1000,
            chunk,
            loops: 3,
            pages: PageOptions::default(),
        }
    }

    #[test]
    fn each_function_processes_the_block() {
        for operation in [BlockOperation::Copy, BlockOperation::Fill] {
            for function in operation.functions() {
                let bench = block(operation, 300);
                let (mut target, source) = (vec![0; 1000], vec![5; 1000]);
                match operation {
                    BlockOperation::Copy => bench.copy(*function, &mut target, &source),
                    BlockOperation::Fill => bench.fill(*function, &mut target, 5),
                }
                assert_eq!(target, source, "{function:?}");
                let cost = bench.run(*function, &Clock::Time).unwrap();
                assert!(matches!(cost, Cost::Time(time) if time > Duration::ZERO));
            }
        }
        assert!(block(BlockOperation::Copy, 1).bytes() == 3000.0);
    }
}
