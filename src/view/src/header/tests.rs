//! Feature sections of releases newer than perf 6.1.

use rperf_perfdata::feature::{CpuDomains, ElfMachine, SchedDomain, SchedDomains};
use rperf_perfdata::{EventDesc, FeatureSet, PerfData};
use rperf_wire::{Attr, Endian};

use super::{HeaderOptions, write_features};
use crate::test_recordings;

// Values of `HeaderOptions::full`.
const BRIEF: bool = false;
const FULL: bool = true;

fn domains(version: u32) -> SchedDomains {
    let domain = SchedDomain {
        number: 0,
        // Domains have names since version 17 of `/proc/schedstat`.
        name: (version >= 17).then(|| "SMT".to_owned()),
        mask: "3".to_owned(),
        list: "0-1".to_owned(),
    };
    let domains = vec![domain];
    SchedDomains {
        version,
        max_domains: 1,
        cpus: vec![CpuDomains { cpu: 1, domains }],
    }
}

fn printed(features: &FeatureSet, full: bool) -> String {
    let events = [EventDesc::new(Attr::default(), vec![1])];
    let bytes = test_recordings::file(Endian::Little, &events, features);
    let data = PerfData::parse(&bytes).unwrap();
    let options = HeaderOptions {
        // Not printed by `write_features`.
        captured: 0,
        // UTC.
        zone: &|_| 0,
        full,
    };
    let mut text = Vec::new();
    write_features(&mut text, data.metadata(), &options).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn sections_of_newer_releases() {
    let mut features = FeatureSet::new(Endian::Little);
    features.hostname("machine");
    features.sched_domains(&domains(17)).cache_line(64);
    // 62 is EM_X86_64.
    let (machine, flags) = (62, 0);
    features.elf_machine(ElfMachine { machine, flags });
    // Sections are printed in order of feature number, not in the order of the calls above: these are the texts before and after
    // that of the domains.
    let before = "# hostname : machine\n";
    let after = "# e_machine : 62\n#   e_flags : 0\n# cacheline size: 64\n";
    let brief = "# CPU_DOMAIN_INFO info available, use -I to display\n";
    assert_eq!(printed(&features, BRIEF), format!("{before}{brief}{after}"));
    let full = "# schedstat version\t: 17\n# Maximum sched domains\t: 1\n# cpu\t\t: 1\n# nr_domains\t: 1\n\
                # Domain\t\t: 0\n# Domain name      : SMT\n# Domain cpu map   : 3\n# Domain cpu list  : 0-1\n";
    assert_eq!(printed(&features, FULL), format!("{before}{full}{after}"));
    // Replaces the section of version 17.
    features.sched_domains(&domains(15));
    let unnamed = full
        .replace("# Domain name      : SMT\n", "")
        .replace(": 17", ": 15");
    assert_eq!(
        printed(&features, FULL),
        format!("{before}{unnamed}{after}")
    );
}
