//! CPUs: their number, topology, caches and ELF machine.

use rperf_wire::{Cursor, DecodeError, Encoder};

use super::text;

/// How many CPUs are available, and how many are online (NRCPUS).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NrCpus {
    /// Number of online CPUs.
    pub online: u32,
    /// Number of available CPUs.
    pub available: u32,
}

impl NrCpus {
    pub(crate) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let available = at.u32("cpus available")?;
        Ok(Self {
            online: at.u32("cpus online")?,
            available,
        })
    }

    pub(crate) fn encode(self, to: &mut Encoder<'_>) {
        to.u32(self.available);
        to.u32(self.online);
    }
}

/// Sockets, dies, cores and threads (CPU_TOPOLOGY).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuTopology {
    /// CPU lists of the sockets (`sibling sockets` in perf).
    pub core_siblings: Vec<String>,
    /// CPU lists of the cores (`sibling threads`).
    pub thread_siblings: Vec<String>,
    /// CPU lists of the dies; empty if the file has none.
    pub die_siblings: Vec<String>,
    /// Position of each CPU; empty in old files.
    pub cpus: Vec<CpuTopologyEntry>,
}

/// Position of one CPU; a number is -1 if it was unknown to the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTopologyEntry {
    /// Core number.
    pub core: i32,
    /// Socket number.
    pub socket: i32,
    /// Die number, if the file has dies.
    pub die: Option<i32>,
}

impl CpuTopology {
    /// Decodes a section; `cpus` is the number of available CPUs, `None` if unknown: then only the first two lists are decoded.
    /// Sections of old recorders end after these lists, those of slightly newer ones after the CPUs' cores and sockets.
    pub(crate) fn decode(at: &mut Cursor<'_>, cpus: Option<u32>) -> Result<Self, DecodeError> {
        let core_siblings = text::take_list(at)?;
        let thread_siblings = text::take_list(at)?;
        let mut topology = Self {
            core_siblings,
            thread_siblings,
            ..Self::default()
        };
        let Some(cpus) = cpus.filter(|cpus| at.rest().len() as u64 >= u64::from(*cpus) * 8) else {
            return Ok(topology);
        };
        for _ in 0..cpus {
            topology.cpus.push(CpuTopologyEntry {
                core: at.u32("core id")?.cast_signed(),
                socket: at.u32("socket id")?.cast_signed(),
                die: None,
            });
        }
        if at.rest().is_empty() {
            return Ok(topology);
        }
        topology.die_siblings = text::take_list(at)?;
        for cpu in &mut topology.cpus {
            cpu.die = Some(at.u32("die id")?.cast_signed());
        }
        Ok(topology)
    }

    /// Encodes a section; without dies if there is no list of them and no CPU has a die.
    pub(crate) fn encode(&self, to: &mut Encoder<'_>) {
        text::put_list(to, &self.core_siblings);
        text::put_list(to, &self.thread_siblings);
        for cpu in &self.cpus {
            to.u32(cpu.core.cast_unsigned());
            to.u32(cpu.socket.cast_unsigned());
        }
        let no_die = |cpu: &CpuTopologyEntry| cpu.die.is_none();
        if self.die_siblings.is_empty() && self.cpus.iter().all(no_die) {
            return;
        }
        text::put_list(to, &self.die_siblings);
        for cpu in &self.cpus {
            to.u32(cpu.die.unwrap_or(-1).cast_unsigned());
        }
    }
}

/// The only version of CACHE.
const CACHE_VERSION: u32 = 1;

/// One cache of CACHE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuCache {
    /// Level, 1 to 4.
    pub level: u32,
    /// Bytes per line.
    pub line_size: u32,
    /// Number of sets.
    pub sets: u32,
    /// Ways of associativity.
    pub ways: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Size as in sysfs, `32K`.
    pub size: String,
    /// List of the CPUs that share it.
    pub map: String,
}

impl CpuCache {
    pub(crate) fn decode_list(at: &mut Cursor<'_>) -> Result<Vec<Self>, DecodeError> {
        at.u32("cache version")?;
        let count = at.u32("cache count")?;
        (0..count)
            .map(|_| {
                Ok(Self {
                    level: at.u32("cache level")?,
                    line_size: at.u32("cache line size")?,
                    sets: at.u32("cache sets")?,
                    ways: at.u32("cache ways")?,
                    kind: text::take(at)?,
                    size: text::take(at)?,
                    map: text::take(at)?,
                })
            })
            .collect()
    }

    pub(crate) fn encode_list(caches: &[Self], to: &mut Encoder<'_>) {
        to.u32(CACHE_VERSION);
        text::put_count(to, caches.len());
        for cache in caches {
            to.u32(cache.level);
            to.u32(cache.line_size);
            to.u32(cache.sets);
            to.u32(cache.ways);
            text::put(to, &cache.kind);
            text::put(to, &cache.size);
            text::put(to, &cache.map);
        }
    }
}

/// E_MACHINE: ELF machine of the recorded programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElfMachine {
    /// `e_machine` of elf(5).
    pub machine: u32,
    /// `e_flags`, for machines whose variants it distinguishes.
    pub flags: u32,
}

impl ElfMachine {
    pub(crate) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            machine: at.u32("e_machine")?,
            flags: at.u32("e_flags")?,
        })
    }

    pub(crate) fn encode(self, to: &mut Encoder<'_>) {
        to.u32(self.machine);
        to.u32(self.flags);
    }
}
