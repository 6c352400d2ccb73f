//! Feature sections: any bytes are decoded or refused, and a re-encoded feature is decoded to the same value.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use rperf_perfdata::{EventDesc, FeatureId, FeatureSet, Features, PerfData, Writer};
use rperf_wire::{Attr, Endian, EventType, Misc, RawRecord, RecordKind};

// The input is a recording, as the seeds are. Other input is a feature: a byte with its number, a byte that is odd for
// big-endian, and the section.
fuzz_target!(|bytes: &[u8]| {
    if let Ok(data) = PerfData::parse(bytes) {
        check(data.features(), data.endian());
        return;
    }
    let [number, order, section @ ..] = bytes else {
        return;
    };
    let endian = if order & 1 == 1 {
        Endian::Big
    } else {
        Endian::Little
    };
    let mut features = FeatureSet::new(endian);
    features.opaque(FeatureId(*number), section);
    let file = file(&features, endian);
    check(
        PerfData::parse(&file)
            .expect("a file that was written")
            .features(),
        endian,
    );
});

/// A file with these features, and a hostname if they have none.
fn file(features: &FeatureSet, endian: Endian) -> Vec<u8> {
    let events = [EventDesc::new(Attr::default(), vec![1])];
    let mut writer = Writer::with_endian(Cursor::new(Vec::new()), &events, endian).expect("memory");
    // A file needs a record: the reader takes an empty data section to mean that the recorder was killed, and reads no features.
    let mut round = Vec::new();
    let raw = RawRecord {
        kind: RecordKind::FINISHED_ROUND,
        misc: Misc(0),
        body: &[],
    };
    raw.encode(endian, &mut round);
    writer.write_data(&round).expect("memory");
    let mut features = features.clone();
    // In a big-endian file the reader infers the word size of the feature bitmap from the bit of HOSTNAME.
    if !features.sections().any(|(id, _)| id == FeatureId::HOSTNAME) {
        features.hostname("machine");
    }
    let (_, output) = writer.finish(&features).expect("memory");
    output.into_inner()
}

/// Re-encodes the features that can be decoded, and compares them with the result of decoding them again. Tracepoint formats are
/// only decoded, and build-ids only decoded and re-encoded.
fn check(decoded: &Features<'_>, endian: Endian) {
    let mut set = FeatureSet::new(endian);
    // Each line of the call below has the name of both the getter of `Features` and the setter of `FeatureSet`, the pattern for
    // the decoded value, and the arguments of the setter.
    macro_rules! each {
        ($($name:ident($value:pat => $($argument:expr),+);)*) => {
            $(if let Some($value) = decoded.$name() {
                set.$name($($argument),+);
            })*
            let file = file(&set, endian);
            let again = PerfData::parse(&file).expect("a file that was written");
            let again = again.features();
            $(if let Some(value) = decoded.$name() {
                assert_eq!(again.$name(), Some(value), stringify!($name));
            })*
        };
    }
    each! {
        hostname(text => &text);
        os_release(text => &text);
        version(text => &text);
        arch(text => &text);
        nr_cpus(cpus => cpus);
        cpudesc(text => &text);
        cpuid(text => &text);
        total_mem(size => size);
        cmdline(words => &words);
        event_desc(events => &events);
        cpu_topology(topology => &topology);
        numa_topology(nodes => &nodes);
        pmu_mappings(pmus => &pmus);
        group_desc(groups => &groups);
        cache(caches => &caches);
        sample_time((first, last) => first, last);
        mem_topology(topology => &topology);
        clockid(resolution => resolution);
        clock_data(data => &data);
        dir_format(version => version);
        compressed(how => how);
        cpu_pmu_caps(pmu => &pmu);
        hybrid_topology(pmus => &pmus);
        pmu_caps(pmus => &pmus);
        sched_domains(domains => &domains);
        elf_machine(machine => machine);
        cache_line(bytes => bytes);
        aux_index(entries => &entries);
        bpf_programs(programs => &programs);
        btf(sets => &sets);
        meta_info(pairs => &pairs);
    }
    if let Ok(formats) = decoded.formats() {
        // Tracepoint ids; those in the seeds are below 2,000.
        for config in 0..2_000 {
            let attr = Attr {
                kind: EventType::TRACEPOINT,
                config,
                ..Attr::default()
            };
            let _described = formats.of_event(&attr);
        }
    }
    let mut entries = FeatureSet::new(endian);
    entries.build_ids(&decoded.build_ids());
}
