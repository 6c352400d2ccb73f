//! `sched stats` of generated recordings, which have counters but no events, like those of perf 7.2.

mod live;

use std::io::Cursor;

use rperf_perfdata::feature::{CpuDomains, SchedDomain, SchedDomains};
use rperf_perfdata::{FeatureSet, Writer};
use rperf_testkit::Scratch;
use rperf_wire::{Encoder, Endian};

use super::run;

/// `PERF_RECORD_SCHEDSTAT_CPU` and `PERF_RECORD_SCHEDSTAT_DOMAIN`.
const CPU: u32 = 85;
const DOMAIN: u32 = 86;
/// Bytes of the counters of a domain record of any version: 45 counters of version 17, rounded up to a multiple of 8.
const DOMAIN_SIZE: usize = 184;

/// A recording of scheduler statistics under construction.
struct StatsFile {
    version: u16,
    endian: Endian,
    records: Vec<u8>,
}

impl StatsFile {
    fn new(version: u16, endian: Endian) -> Self {
        Self {
            version,
            endian,
            records: Vec::new(),
        }
    }

    fn record(&mut self, kind: u32, body: impl FnOnce(&mut Encoder<'_>)) {
        let mut bytes = Vec::new();
        body(&mut Encoder::new(&mut bytes, self.endian));
        let mut to = Encoder::new(&mut self.records, self.endian);
        to.u32(kind);
        to.u16(0);
        to.u16(u16::try_from(bytes.len() + 8).expect("a short record"));
        to.bytes(&bytes);
    }

    /// Adds the record of a CPU at `time` (jiffies), a `cpu` line of `/proc/schedstat`: six counters of 32 bits, three of 64.
    fn cpu(&mut self, time: u64, cpu: u32, counts: [u32; 6], long_counts: [u64; 3]) {
        let version = self.version;
        self.record(CPU, |to| {
            to.u64(time);
            to.u32(cpu);
            to.u16(version);
            to.u16(0);
            counts.iter().for_each(|count| to.u32(*count));
            long_counts.iter().for_each(|count| to.u64(*count));
        });
    }

    /// Adds the record of the first domain of a CPU, a `domain` line: each counter is `base`, plus its index if `with_indices`.
    fn domain(&mut self, time: u64, cpu: u32, base: u32, with_indices: bool) {
        let (version, count) = (self.version, if self.version < 17 { 36 } else { 45 });
        self.record(DOMAIN, |to| {
            to.u64(time);
            to.u32(cpu);
            to.u16(version);
            to.u16(0);
            let start = to.len();
            for index in 0..count {
                to.u32(base.wrapping_add(if with_indices { index } else { 0 }));
            }
            to.zeros(DOMAIN_SIZE - (to.len() - start));
        });
    }

    /// Adds two readings of two CPUs with a domain each: the counters of CPU 0 rise by 10, 0, 100, 50, 40, 20, 1000, 500 and
    /// 7, those of CPU 1 by twice as much, and each counter of the domains by its index.
    fn readings(&mut self) {
        for (time, factor) in [(1000, 0), (1500, 1)] {
            for cpu in 0..2_u32 {
                let factor = factor * (cpu + 1);
                let counts = [10, 0, 100, 50, 40, 20].map(|count| {
                    // Wraps around.
                    u32::MAX.wrapping_add(count * factor)
                });
                let long_counts = [1000, 500, 7].map(|count| 5 + count * u64::from(factor));
                self.cpu(time, cpu, counts, long_counts);
                let with_indices = factor > 0;
                self.domain(time, cpu, u32::MAX - 3, with_indices);
            }
        }
    }

    fn finish(&self) -> Vec<u8> {
        let mut features = FeatureSet::new(self.endian);
        let domain = SchedDomain {
            number: 0,
            name: (self.version == 17).then(|| "MC".to_owned()),
            mask: "3".to_owned(),
            list: "0-1".to_owned(),
        };
        let cpus = [0, 1].map(|cpu| CpuDomains {
            cpu,
            domains: vec![domain.clone()],
        });
        features.sched_domains(&SchedDomains {
            version: u32::from(self.version),
            max_domains: 1,
            cpus: cpus.to_vec(),
        });
        let output = Cursor::new(Vec::new());
        let mut writer = Writer::with_endian(output, &[], self.endian).expect("a header");
        writer.write_data(&self.records).expect("records");
        let (_, output) = writer.finish(&features).expect("features");
        output.into_inner()
    }
}

/// Returns a recording of two readings, in the format of perf 7.2.
pub(crate) fn stats_file(version: u16, endian: Endian) -> Vec<u8> {
    let mut file = StatsFile::new(version, endian);
    file.readings();
    file.finish()
}

const CPU_0: &str = "\
CPU: 0
----------------------------------------------------------------------------------------------------
DESC                                                                     COUNT   PCT_CHANGE
----------------------------------------------------------------------------------------------------
yld_count                                                        :          10
array_exp                                                        :           0
sched_count                                                      :         100
sched_goidle                                                     :          50  (    50.00% )
ttwu_count                                                       :          40
ttwu_local                                                       :          20  (    50.00% )
rq_cpu_time                                                      :        1000
run_delay                                                        :         500  (    50.00% )
pcount                                                           :           7
----------------------------------------------------------------------------------------------------
";

const DOMAIN_17: &str = "\
CPU: 0 | DOMAIN: MC | DOMAIN_CPUS: 0-1
----------------------------------------------------------------------------------------------------
DESC                                                                     COUNT    AVG_JIFFIES
----------------------------------------- <Category busy> ------------------------------------------
busy_lb_count                                                    :           0  $        0.00 $
busy_lb_balanced                                                 :           1  $      500.00 $
busy_lb_failed                                                   :           2  $      250.00 $
busy_lb_imbalance_load                                           :           3
busy_lb_imbalance_util                                           :           4
busy_lb_imbalance_task                                           :           5
busy_lb_imbalance_misfit                                         :           6
busy_lb_gained                                                   :           7
busy_lb_hot_gained                                               :           8
busy_lb_nobusyq                                                  :           9  $       55.56 $
busy_lb_nobusyg                                                  :          10  $       50.00 $
*busy_lb_success_count                                           :           0
*busy_lb_avg_pulled                                              :        0.00
----------------------------------------- <Category idle> ------------------------------------------
";

#[test]
fn counters_of_all_versions_and_byte_orders_are_shown() -> std::io::Result<()> {
    let scratch = Scratch::new();
    for version in 15..=17 {
        for endian in [Endian::Little, Endian::Big] {
            scratch.write("perf.data", stats_file(version, endian))?;
            let report = run(&scratch, &["sched", "stats", "report"]);
            assert_eq!((report.status, &*report.stderr), (0, ""), "{version}");
            let text = &report.stdout;
            assert!(text.contains(CPU_0), "{text}");
            let elapsed = format!("{:65}:         500\n", "Time elapsed (in jiffies)");
            assert!(text.contains(&elapsed), "{text}");
            // The averages of both CPUs: 1.5 times CPU 0, rounded down.
            let (average, cpus) = text.split_once("CPU: 0\n").expect("a CPU");
            for (name, count) in [("yld_count", 15), ("rq_cpu_time", 1500), ("pcount", 10)] {
                let line = format!("{name:65}: {count:>11}\n");
                assert!(average.contains(&line), "{average}");
            }
            assert!(cpus.contains("\nCPU: 1 | DOMAIN: "), "{cpus}");
            let category = |name: &str| text.find(name).expect(name);
            // Version 15 has the idle category first.
            let (busy, idle) = (category("<Category busy>"), category("<Category idle>"));
            match version {
                17 => assert!(text.contains(DOMAIN_17), "{text}"),
                16 => assert!(busy < idle, "{text}"),
                _ => assert!(busy > idle, "{text}"),
            }
            let domain = if version == 17 { "MC" } else { "0" };
            let title = format!("CPU: <ALL CPUS SUMMARY> | DOMAIN: {domain}\n");
            assert!(average.contains(&title), "{average}");
        }
    }
    let cpu_1 = run(&scratch, &["sched", "stats", "report", "-C", "1", "-v"]).stdout;
    assert!(
        !cpu_1.contains("CPU: 0\n") && cpu_1.contains("CPU: 1\n"),
        "{cpu_1}"
    );
    assert!(cpu_1.contains("calls of schedule() "), "{cpu_1}");
    Ok(())
}

#[test]
fn averages_of_two_recordings_are_compared() -> std::io::Result<()> {
    let scratch = Scratch::new();
    scratch.write("perf.data.old", stats_file(17, Endian::Little))?;
    let mut after = StatsFile::new(17, Endian::Big);
    let with_indices = false;
    after.cpu(0, 0, [0; 6], [0; 3]);
    after.domain(0, 0, 0, with_indices);
    after.cpu(1000, 0, [30, 0, 75, 75, 10, 1], [2000, 100, 9]);
    after.domain(1000, 0, 2, with_indices);
    scratch.write("perf.data", after.finish())?;
    let diff = run(&scratch, &["sched", "stats", "diff"]);
    assert_eq!((diff.status, &*diff.stderr), (0, ""));
    for line in [
        "Time elapsed (in jiffies)                                        :         500,       1000",
        "yld_count                                                        :          15,         30  |   100.00% |",
        "sched_goidle                                                     :          75,         75  |     0.00% |  (    50.00%,    100.00% )",
        "busy_lb_balanced                                                 :           1,          2  |   100.00% |  $      500.00,      500.00 $",
        "*busy_lb_success_count                                           :           0,          0  |     0.00% |",
        "alb_failed                                                       :          34,          2  |   -94.12% |",
    ] {
        assert!(
            diff.stdout.contains(&format!("{line}\n")),
            "{line}\n{}",
            diff.stdout
        );
    }
    assert!(!diff.stdout.contains("CPU: 0"), "{}", diff.stdout);
    Ok(())
}

/// Invalid arguments of the commands are refused, too.
#[test]
fn unusable_statistics_are_refused() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut once = StatsFile::new(16, Endian::Little);
    once.cpu(0, 3, [0; 6], [0; 3]);
    scratch.write("once.data", once.finish())?;
    let mut unknown = StatsFile::new(14, Endian::Little);
    unknown.cpu(0, 0, [0; 6], [0; 3]);
    scratch.write("unknown.data", unknown.finish())?;
    let mut mixed = StatsFile::new(15, Endian::Little);
    mixed.cpu(0, 0, [0; 6], [0; 3]);
    mixed.version = 17;
    mixed.cpu(0, 0, [0; 6], [0; 3]);
    scratch.write("mixed.data", mixed.finish())?;
    let whole = stats_file(17, Endian::Little);
    scratch.write("17.data", &whole)?;
    scratch.write("truncated.data", &whole[..whole.len() / 2])?;
    scratch.write("15.data", stats_file(15, Endian::Little))?;
    for (words, status, message) in [
        (
            &["report", "-i", "once.data"][..],
            255,
            "CPU 3 was read only once",
        ),
        (
            &["report", "-i", "unknown.data"],
            255,
            "version 14 of /proc/schedstat is not known",
        ),
        (
            &["report", "-i", "mixed.data"],
            255,
            "versions 15 and 17 of /proc/schedstat are mixed",
        ),
        (
            &["report", "-i", "17.data", "-C", "9"],
            255,
            "there are no scheduler statistics",
        ),
        (&["report", "-i", "truncated.data"], 255, "truncated.data"),
        (
            &["diff", "15.data", "17.data"],
            255,
            "17.data has version 17: their counters differ",
        ),
        (&["diff", "15.data", "absent"], 255, "failed to open absent"),
        (&["diff", "1", "2", "3"], 129, "give two recordings"),
        (&["report", "x"], 129, "unexpected word 'x'"),
        // Words other than subcommands are a workload.
        (&["reprot"], 255, "for the 'reprot' workload: No such file"),
        (&["diff", "-i", "x"], 129, "give two recordings"),
        (&["report", "-C", "x"], 129, "-C x"),
    ] {
        let refused = run(&scratch, &[&["sched", "stats"], words].concat());
        assert_eq!(
            (refused.status, &*refused.stdout),
            (status, ""),
            "{words:?} {refused:?}"
        );
        assert!(
            refused.stderr.contains(message),
            "{words:?}: {}",
            refused.stderr
        );
    }
    Ok(())
}
