//! The lines of each feature.

use std::fmt::Display;
use std::io::{self, Write};

use rperf_perfdata::feature::{
    ClockData, CpuTopology, GroupDesc, MemoryNode, MemoryTopology, PmuCapabilities,
};
use rperf_perfdata::{FeatureId, Features, Metadata};
use rperf_wire::AttrText;

use super::{HeaderOptions, bpf, calendar};

/// The text that printf(3) of glibc prints for a null string.
const NULL: &str = "(null)";

/// Writes the lines of one feature; nothing for a feature without a text.
pub(super) fn write(
    out: &mut dyn Write,
    recording: Metadata<'_>,
    feature: FeatureId,
    options: &HeaderOptions<'_>,
) -> io::Result<()> {
    let features = recording.features;
    if let Some((key, value)) = string(features, feature) {
        return writeln!(out, "# {key} : {}", value.as_deref().unwrap_or(NULL));
    }
    if let Some(text) = number_or_flag(features, feature) {
        return writeln!(out, "# {text}");
    }
    if is_long(feature) && !options.full {
        return writeln!(out, "# {feature} info available, use -I to display");
    }
    match feature {
        FeatureId::NRCPUS => cpus(out, features),
        FeatureId::CMDLINE => cmdline(out, &features.cmdline().unwrap_or_default()),
        FeatureId::EVENT_DESC => events(out, features),
        FeatureId::CPU_TOPOLOGY => topology(out, &features.cpu_topology().unwrap_or_default()),
        FeatureId::NUMA_TOPOLOGY => nodes(out, features),
        FeatureId::PMU_MAPPINGS => pmus(out, features),
        FeatureId::GROUP_DESC => groups(out, recording),
        FeatureId::CACHE => caches(out, features),
        FeatureId::BPF_PROG_INFO => bpf::write_programs(out, features, recording.endian),
        FeatureId::BPF_BTF => bpf::write_btf(out, features),
        FeatureId::SAMPLE_TIME => {
            let (first, last) = features.sample_time().unwrap_or_default();
            sample_time(out, first, last)
        }
        FeatureId::MEM_TOPOLOGY => memory(out, features.mem_topology().as_ref()),
        FeatureId::COMPRESSED => compressed(out, features),
        FeatureId::CPU_PMU_CAPS => features
            .cpu_pmu_caps()
            .map_or(Ok(()), |pmu| capabilities(out, &pmu)),
        FeatureId::CLOCK_DATA => features
            .clock_data()
            .map_or(Ok(()), |clock| clock_data(out, &clock, options)),
        FeatureId::HYBRID_TOPOLOGY => hybrid(out, features),
        FeatureId::PMU_CAPS => {
            let mut pmus = features.pmu_caps().unwrap_or_default();
            pmus.drain(..).try_for_each(|pmu| capabilities(out, &pmu))
        }
        FeatureId::CPU_DOMAIN_INFO => domains(out, features),
        FeatureId::E_MACHINE => features.elf_machine().map_or(Ok(()), |elf| {
            writeln!(
                out,
                "# e_machine : {}\n#   e_flags : {}",
                elf.machine, elf.flags
            )
        }),
        _ => Ok(()),
    }
}

/// Whether the feature is printed only with `-I`.
fn is_long(feature: FeatureId) -> bool {
    matches!(
        feature,
        FeatureId::CPU_TOPOLOGY
            | FeatureId::NUMA_TOPOLOGY
            | FeatureId::CACHE
            | FeatureId::MEM_TOPOLOGY
            | FeatureId::HYBRID_TOPOLOGY
            | FeatureId::CPU_DOMAIN_INFO
    )
}

/// Returns the text of a feature that is a single number or a flag.
fn number_or_flag(features: &Features<'_>, feature: FeatureId) -> Option<String> {
    Some(match feature {
        FeatureId::TOTAL_MEM => {
            let memory = features.total_mem().unwrap_or_default();
            format!("total memory : {memory} kB")
        }
        FeatureId::BRANCH_STACK => "contains samples with branch stack".to_owned(),
        FeatureId::AUXTRACE => "contains AUX area data (e.g. instruction trace)".to_owned(),
        FeatureId::STAT => "contains stat data".to_owned(),
        FeatureId::CLOCKID => {
            // As in perf: the resolution in nanoseconds, times 1000, is called a frequency.
            let resolution = features.clockid().unwrap_or_default();
            format!("clockid frequency: {} MHz", resolution.wrapping_mul(1000))
        }
        FeatureId::DIR_FORMAT => {
            let version = features.dir_format().unwrap_or_default();
            format!("directory data version : {version}")
        }
        FeatureId::CLN_SIZE => format!("cacheline size: {}", features.cache_line()?),
        _ => return None,
    })
}

/// Returns title and text of a feature that is a single string; no text if the section cannot be decoded. `None` for other
/// features.
fn string(features: &Features<'_>, feature: FeatureId) -> Option<(&'static str, Option<String>)> {
    Some(match feature {
        FeatureId::HOSTNAME => ("hostname", features.hostname()),
        FeatureId::OSRELEASE => ("os release", features.os_release()),
        FeatureId::VERSION => ("perf version", features.version()),
        FeatureId::ARCH => ("arch", features.arch()),
        FeatureId::CPUDESC => ("cpudesc", features.cpudesc()),
        FeatureId::CPUID => ("cpuid", features.cpuid()),
        _ => return None,
    })
}

fn cpus(out: &mut dyn Write, features: &Features<'_>) -> io::Result<()> {
    let (online, available) = features
        .nr_cpus()
        .map_or((0, 0), |cpus| (cpus.online, cpus.available));
    writeln!(out, "# nrcpus online : {online}")?;
    writeln!(out, "# nrcpus avail : {available}")
}

/// Writes the words of the command line. As in perf, only single quotes are escaped, no other characters that are special in a
/// shell.
fn cmdline(out: &mut dyn Write, words: &[String]) -> io::Result<()> {
    write!(out, "# cmdline : ")?;
    for word in words {
        write!(out, "{} ", word.replace('\'', "\\'"))?;
    }
    writeln!(out)
}

fn events(out: &mut dyn Write, features: &Features<'_>) -> io::Result<()> {
    // The size that EVENT_DESC states for each attr: it is printed, too, and may be that of an older or newer perf.
    let attr_size = features.described_attr_size().unwrap_or_default();
    for event in features.event_desc().unwrap_or_default() {
        write!(out, "# event : name = {}, ", event.name)?;
        // As in perf, a second comma follows that of the name.
        if !event.ids.is_empty() {
            write!(out, ", id = {{ {} }}", joined(&event.ids, ", "))?;
        }
        let text = AttrText {
            attr: &event.attr,
            size: attr_size,
            key_value_separator: " = ",
        };
        writeln!(out, ", {text}")?;
    }
    Ok(())
}

fn topology(out: &mut dyn Write, topology: &CpuTopology) -> io::Result<()> {
    let siblings = [
        ("sockets", &topology.core_siblings),
        ("dies   ", &topology.die_siblings),
        ("threads", &topology.thread_siblings),
    ];
    for (kind, lists) in siblings {
        for list in lists {
            writeln!(out, "# sibling {kind} : {list}")?;
        }
    }
    let has_dies = !topology.die_siblings.is_empty();
    if topology.cpus.is_empty() {
        let ids = if has_dies {
            "Core ID, Die ID"
        } else {
            "Core ID"
        };
        return writeln!(out, "# {ids} and Socket ID information is not available");
    }
    for (cpu, place) in topology.cpus.iter().enumerate() {
        write!(out, "# CPU {cpu}: Core ID {}, ", place.core)?;
        if has_dies {
            write!(out, "Die ID {}, ", place.die.unwrap_or(-1))?;
        }
        writeln!(out, "Socket ID {}", place.socket)?;
    }
    Ok(())
}

fn nodes(out: &mut dyn Write, features: &Features<'_>) -> io::Result<()> {
    for node in features.numa_topology().unwrap_or_default() {
        let (number, total, free) = (node.node, node.total, node.free);
        writeln!(
            out,
            "# node{number} meminfo  : total = {total} kB, free = {free} kB"
        )?;
        writeln!(out, "# node{number} cpu list : {}", node.cpus)?;
    }
    Ok(())
}

fn pmus(out: &mut dyn Write, features: &Features<'_>) -> io::Result<()> {
    let pmus = features.pmu_mappings().unwrap_or_default();
    if pmus.is_empty() {
        return writeln!(out, "# pmu mappings: not available");
    }
    let pmus: Vec<String> = pmus
        .iter()
        .map(|pmu| format!("{} = {}", pmu.name, pmu.kind))
        .collect();
    writeln!(out, "# pmu mappings: {}", pmus.join(", "))
}

fn groups(out: &mut dyn Write, recording: Metadata<'_>) -> io::Result<()> {
    for group in recording.features.group_desc().unwrap_or_default() {
        let events = recording.events.iter();
        let members = events
            .skip(group.leader as usize)
            .take(group.members as usize);
        let name = match group.name.as_str() {
            GroupDesc::ANONYMOUS => "",
            name => name,
        };
        let names: Vec<&str> = members.map(|event| event.name.as_str()).collect();
        writeln!(out, "# group: {name}{{{}}}", names.join(","))?;
    }
    Ok(())
}

fn caches(out: &mut dyn Write, features: &Features<'_>) -> io::Result<()> {
    writeln!(out, "# CPU cache info:")?;
    for cache in features.cache().unwrap_or_default() {
        let (level, kind, size, map) = (cache.level, cache.kind, cache.size, cache.map);
        writeln!(out, "#  L{level} {kind:<15} {size:>8} [{map}]")?;
    }
    Ok(())
}

fn sample_time(out: &mut dyn Write, first: u64, last: u64) -> io::Result<()> {
    let seconds = |time: u64| format!("{}.{:06}", time / 1_000_000_000, time / 1000 % 1_000_000);
    writeln!(out, "# time of first sample : {}", seconds(first))?;
    writeln!(out, "# time of last sample : {}", seconds(last))?;
    #[expect(clippy::cast_precision_loss, reason = "three decimals are printed")]
    let milliseconds = last.wrapping_sub(first) as f64 / 1e6;
    writeln!(out, "# sample duration : {milliseconds:10.3} ms")
}

fn memory(out: &mut dyn Write, topology: Option<&MemoryTopology>) -> io::Result<()> {
    let nodes = topology.map_or(&[][..], |topology| &topology.nodes);
    let block = topology.map_or(0, |topology| topology.block_size);
    writeln!(
        out,
        "# memory nodes (nr {}, block size {block:#x}):",
        nodes.len()
    )?;
    for node in nodes {
        let blocks = memory_blocks(node);
        let size = size_with_unit(block.saturating_mul(blocks.len() as u64));
        writeln!(out, "# {:4} [{size}]: {}", node.node, ranges(&blocks))?;
    }
    Ok(())
}

/// Returns the numbers of the memory blocks of a node.
fn memory_blocks(node: &MemoryNode) -> Vec<u64> {
    let is_set = |bit: u64| {
        let word = usize::try_from(bit / 64)
            .ok()
            .and_then(|at| node.blocks.get(at));
        word.is_some_and(|word| word >> (bit % 64) & 1 == 1)
    };
    let bits = node.bits.min(node.blocks.len() as u64 * 64);
    (0..bits).filter(|bit| is_set(*bit)).collect()
}

/// Formats ascending numbers as `0-23,32-199`.
fn ranges(numbers: &[u64]) -> String {
    let runs = numbers.chunk_by(|left, right| left.checked_add(1) == Some(*right));
    let runs = runs.filter_map(|run| match (run.first()?, run.last()?) {
        (first, last) if first == last => Some(first.to_string()),
        (first, last) => Some(format!("{first}-{last}")),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// Formats a number of bytes, rounded down, in the largest unit up to `G` in which it is at least 2: `24G`.
pub(crate) fn size_with_unit(mut size: u64) -> String {
    let mut units = ['B', 'K', 'M', 'G'].into_iter();
    let mut unit = units.next().unwrap_or_default();
    while size / 1024 > 1 {
        let Some(larger) = units.next() else { break };
        size /= 1024;
        unit = larger;
    }
    format!("{size}{unit}")
}

fn compressed(out: &mut dyn Write, features: &Features<'_>) -> io::Result<()> {
    const ZSTD: u32 = 1;
    let Some(compression) = features.compressed() else {
        return Ok(());
    };
    let kind = if compression.kind == ZSTD {
        "Zstd"
    } else {
        "Unknown"
    };
    let (level, ratio) = (compression.level, compression.ratio);
    writeln!(
        out,
        "# compressed : {kind}, level = {level}, ratio = {ratio}"
    )
}

fn capabilities(out: &mut dyn Write, pmu: &PmuCapabilities) -> io::Result<()> {
    let name = &pmu.name;
    if pmu.values.is_empty() {
        return writeln!(out, "# {name} pmu capabilities: not available");
    }
    let values: Vec<String> = pmu
        .values
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    writeln!(out, "# {name} pmu capabilities: {}", values.join(", "))
}

fn hybrid(out: &mut dyn Write, features: &Features<'_>) -> io::Result<()> {
    writeln!(out, "# hybrid cpu system:")?;
    for pmu in features.hybrid_topology().unwrap_or_default() {
        writeln!(out, "# {} cpu list : {}", pmu.name, pmu.cpus)?;
    }
    Ok(())
}

fn domains(out: &mut dyn Write, features: &Features<'_>) -> io::Result<()> {
    let sched = features.sched_domains().unwrap_or_default();
    writeln!(out, "# schedstat version\t: {}", sched.version)?;
    writeln!(out, "# Maximum sched domains\t: {}", sched.max_domains)?;
    for entry in &sched.cpus {
        writeln!(out, "# cpu\t\t: {}", entry.cpu)?;
        writeln!(out, "# nr_domains\t: {}", entry.domains.len())?;
        for domain in &entry.domains {
            writeln!(out, "# Domain\t\t: {}", domain.number)?;
            if let Some(name) = &domain.name {
                writeln!(out, "# Domain name      : {name}")?;
            }
            writeln!(out, "# Domain cpu map   : {}", domain.mask)?;
            writeln!(out, "# Domain cpu list  : {}", domain.list)?;
        }
    }
    Ok(())
}

/// Writes the clock of the recording, and one instant in three forms: as a local date, in seconds since 1970 (which perf calls
/// TOD, time of day), and as the time of that clock.
fn clock_data(
    out: &mut dyn Write,
    clock: &ClockData,
    options: &HeaderOptions<'_>,
) -> io::Result<()> {
    const NANOS: u64 = 1_000_000_000;
    let name = match clock.clockid {
        0 => "realtime",
        1 => "monotonic",
        4 => "monotonic_raw",
        7 => "boottime",
        11 => "tai",
        _ => "unknown",
    };
    let seconds = i64::try_from(clock.wall_clock / NANOS).unwrap_or(i64::MAX);
    let micros = clock.wall_clock % NANOS / 1000;
    let date = calendar::iso(seconds.saturating_add((options.zone)(seconds)));
    let (clock_seconds, clock_nanos) = (clock.clockid_time / NANOS, clock.clockid_time % NANOS);
    writeln!(out, "# clockid: {name} ({})", clock.clockid)?;
    writeln!(
        out,
        "# reference time: {date}.{micros:06} = {seconds}.{micros:06} (TOD) = {clock_seconds}.{clock_nanos:09} ({name})"
    )
}

fn joined<T: Display>(items: &[T], separator: &str) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    items.join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_units() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(ranges(&[u64::MAX]), u64::MAX.to_string());
        assert_eq!(size_with_unit(1024), "1024B");
        assert_eq!(size_with_unit(2048), "2K");
        assert_eq!(size_with_unit(192 * 0x800_0000), "24G");
        assert_eq!(size_with_unit(u64::MAX), "17179869183G");
    }
}
