//! The text of `sched stats`, in the layout of perf 7.2.

use std::io::{self, Write};

use rperf_analysis::sched::stats::{CpuStats, DomainStats, SchedStats};

/// The width of the column of names.
const NAME: usize = 65;
/// The width of rules and of the headings of categories.
const LINE: usize = 100;
/// The first version of `/proc/schedstat` in which a domain's counters of load balancing on a busy CPU precede those on an
/// idle one.
const BUSY_FIRST: u16 = 16;
/// The first version of `/proc/schedstat` in which imbalance is split by kind.
const IMBALANCE_BY_KIND: u16 = 17;

/// A counter: its name, its meaning, and the number with which it is compared.
struct Field {
    name: String,
    meaning: &'static str,
    base: Base,
}

/// The number with which a counter is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    /// None: only the counter is printed.
    None,
    /// Another counter of the same line of `/proc/schedstat`, by its index: the counter's share of it is printed in percent.
    Counter(usize),
    /// The elapsed time: jiffies per event are printed.
    Time,
}

/// The counters of a CPU: name, meaning, and the number with which each is compared. The indices 2, 4 and 6 are those of
/// `sched_count`, `ttwu_count` and `rq_cpu_time`.
const CPU_FIELDS: [(&str, &str, Base); 9] = [
    ("yld_count", "calls of sched_yield(2)", Base::None),
    ("array_exp", "always 0", Base::None),
    ("sched_count", "calls of schedule()", Base::None),
    (
        "sched_goidle",
        "calls of schedule() that left the CPU idle",
        Base::Counter(2),
    ),
    ("ttwu_count", "calls of try_to_wake_up()", Base::None),
    (
        "ttwu_local",
        "wakeups of tasks on the waker's CPU",
        Base::Counter(4),
    ),
    ("rq_cpu_time", "time that tasks ran, in ns", Base::None),
    (
        "run_delay",
        "time that tasks waited to run, in ns",
        Base::Counter(6),
    ),
    ("pcount", "time slices", Base::None),
];

/// The counters of load balancing in one state of the CPU. Their printed names begin with the state (`busy_lb_count`). The
/// counters of imbalance are inserted at [`IMBALANCE_INDEX`].
const BALANCE_FIELDS: [(&str, &str, Base); 7] = [
    ("count", "calls of load_balance()", Base::Time),
    (
        "balanced",
        "calls that found the domain balanced",
        Base::Time,
    ),
    ("failed", "calls that failed to move a task", Base::Time),
    ("gained", "tasks pulled to this CPU", Base::None),
    ("hot_gained", "pulled tasks that were cache-hot", Base::None),
    ("nobusyq", "calls that found no busier queue", Base::Time),
    ("nobusyg", "calls that found no busier group", Base::Time),
];
/// The index of the first counter of imbalance among those of load balancing: after `failed`, before `gained`.
const IMBALANCE_INDEX: usize = 3;
const IMBALANCE_FIELD: [(&str, &str, Base); 1] =
    [("imbalance", "sum of the imbalance found", Base::None)];
const IMBALANCE_FIELDS_BY_KIND: [(&str, &str, Base); 4] = [
    ("imbalance_load", "imbalance of load", Base::None),
    ("imbalance_util", "imbalance of utilisation", Base::None),
    (
        "imbalance_task",
        "imbalance of the number of tasks",
        Base::None,
    ),
    (
        "imbalance_misfit",
        "imbalance of tasks that do not fit their CPU",
        Base::None,
    ),
];

/// Counters after those of load balancing, with their headings.
const OTHER_FIELDS: [(&str, [(&str, &str); 3]); 4] = [
    (
        "<Category active_load_balance()>",
        [
            ("alb_count", "calls of active_load_balance()"),
            ("alb_failed", "calls that failed to move a task"),
            ("alb_pushed", "tasks moved"),
        ],
    ),
    (
        "<Category sched_balance_exec()>",
        [
            ("sbe_count", "not in use"),
            ("sbe_balanced", "not in use"),
            ("sbe_pushed", "not in use"),
        ],
    ),
    (
        "<Category sched_balance_fork()>",
        [
            ("sbf_count", "not in use"),
            ("sbf_balanced", "not in use"),
            ("sbf_pushed", "not in use"),
        ],
    ),
    (
        "<Wakeup Info>",
        [
            (
                "ttwu_wake_remote",
                "tasks woken that last ran on another CPU",
            ),
            (
                "ttwu_move_affine",
                "tasks moved because they were not cache-hot",
            ),
            ("ttwu_move_balance", "wakeups that started balancing"),
        ],
    ),
];

/// Counters with a common heading.
struct Category {
    heading: String,
    fields: Vec<Field>,
    /// The prefix of the names of two derived numbers: successful calls, and tasks moved per such call. `None` if the category
    /// has no derived numbers.
    derived_prefix: Option<String>,
}

/// One or two recordings to print.
struct StatsText<'s> {
    stats: &'s [&'s SchedStats],
    /// Whether meanings are printed instead of names.
    is_verbose: bool,
}

/// Writes the statistics: averages over all CPUs, then each CPU. With `is_verbose`, the meanings of counters
/// are printed instead of their names.
///
/// # Errors
///
/// Those of `out`.
pub fn write_report(out: &mut dyn Write, stats: &SchedStats, is_verbose: bool) -> io::Result<()> {
    let text = StatsText {
        stats: &[stats],
        is_verbose,
    };
    text.write_head(out)?;
    let with_domain_cpus = false;
    text.write_cpu(
        out,
        "<ALL CPUS SUMMARY>",
        with_domain_cpus,
        &[&stats.average()],
    )?;
    let with_domain_cpus = true;
    for cpu in &stats.cpus {
        rule(out)?;
        text.write_cpu(out, &cpu.cpu.to_string(), with_domain_cpus, &[cpu])?;
    }
    Ok(())
}

/// Writes the averages over all CPUs of two recordings, and their changes in percent. Both must
/// have the same [`SchedStats::version`].
///
/// # Errors
///
/// Those of `out`.
pub fn write_diff(
    out: &mut dyn Write,
    before: &SchedStats,
    after: &SchedStats,
    is_verbose: bool,
) -> io::Result<()> {
    let text = StatsText {
        stats: &[before, after],
        is_verbose,
    };
    text.write_head(out)?;
    let averages = [before.average(), after.average()];
    let with_domain_cpus = false;
    text.write_cpu(
        out,
        "<ALL CPUS SUMMARY>",
        with_domain_cpus,
        &[&averages[0], &averages[1]],
    )
}

impl StatsText<'_> {
    fn write_head(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "Description")?;
        rule(out)?;
        for (name, meaning) in [
            ("DESC", "Description of the field"),
            ("COUNT", "Value of the field"),
            ("PCT_CHANGE", "Percent change with corresponding base value"),
            (
                "AVG_JIFFIES",
                "Avg time in jiffies between two consecutive occurrence of event",
            ),
        ] {
            writeln!(out, "{name:30}-> {meaning}")?;
        }
        rule(out)?;
        writeln!(out)?;
        let elapsed: Vec<u64> = self
            .stats
            .iter()
            .map(|stats| stats.elapsed_jiffies)
            .collect();
        let title = "Time elapsed (in jiffies)";
        writeln!(out, "{title:NAME$}: {}", Counts(&elapsed))?;
        rule(out)
    }

    /// Writes a CPU, or the averages over all CPUs. `cpus` has its counters in each recording: one, or two that are compared.
    /// With `with_domain_cpus`, the title of a domain lists the domain's CPUs.
    fn write_cpu(
        &self,
        out: &mut dyn Write,
        cpu_name: &str,
        with_domain_cpus: bool,
        cpus: &[&CpuStats],
    ) -> io::Result<()> {
        let blanks = 0;
        self.write_title(out, &format!("CPU: {cpu_name}"), "PCT_CHANGE", blanks)?;
        rule(out)?;
        for (index, (name, meaning, base)) in CPU_FIELDS.into_iter().enumerate() {
            let field = Field {
                name: name.to_owned(),
                meaning,
                base,
            };
            let counters: Vec<&[u64]> = cpus.iter().map(|cpu| &cpu.counters[..]).collect();
            self.write_field(out, &field, index, &counters)?;
        }
        rule(out)?;
        let Some(first) = cpus.first() else {
            return Ok(());
        };
        for domain in &first.domains {
            let counters = cpus.iter().map(|cpu| domain_counters(cpu, domain.number));
            // A domain that only one of the recordings has cannot be compared.
            let Some(counters) = counters.collect::<Option<Vec<&[u64]>>>() else {
                continue;
            };
            let title = domain_title(cpu_name, domain, with_domain_cpus);
            let blanks = 1;
            self.write_title(out, &title, "AVG_JIFFIES", blanks)?;
            self.write_domain(out, &counters)?;
            rule(out)?;
        }
        Ok(())
    }

    /// Writes a title and the headings of the columns. `column` is the heading of the last column, which compares a counter with
    /// its [`Base`]. For two recordings, there are two such columns, after that of the change between the recordings, which is
    /// named PCT_CHANGE (as in perf, that is also the `column` of CPUs). `blanks` is the number of additional blanks before the
    /// first `column`.
    fn write_title(
        &self,
        out: &mut dyn Write,
        title: &str,
        column: &str,
        blanks: usize,
    ) -> io::Result<()> {
        writeln!(out, "{title}")?;
        rule(out)?;
        // `3$` and `4$` are the argument `blanks`: the width of an empty text.
        match self.stats {
            [_] => writeln!(
                out,
                "{:NAME$} {:>12}{:3$}   {column}",
                "DESC", "COUNT", "", blanks
            ),
            _ => writeln!(
                out,
                "{:NAME$} {:>12}{:>12}   PCT_CHANGE{:4$}    {column}1 {column}2",
                "DESC", "COUNT1", "COUNT2", "", blanks
            ),
        }
    }

    /// Writes the categories of a domain. `counters` has the domain's counters in each recording.
    fn write_domain(&self, out: &mut dyn Write, counters: &[&[u64]]) -> io::Result<()> {
        let mut index = 0;
        let version = self.stats.first().map_or(0, |stats| stats.version);
        for category in categories(version) {
            let heading = format!(" {} ", category.heading);
            writeln!(out, "{heading:-^LINE$}")?;
            let start = index;
            for field in &category.fields {
                self.write_field(out, field, index, counters)?;
                index += 1;
            }
            if let Some(prefix) = &category.derived_prefix {
                let lines: Vec<&[u64]> = counters
                    .iter()
                    .map(|line| line.get(start..index).unwrap_or_default())
                    .collect();
                self.write_derived(out, prefix, &lines)?;
            }
        }
        Ok(())
    }

    /// Writes the counter at `index`. `counters` has the counters of each recording, among which `index` and
    /// [`Base::Counter`] select.
    fn write_field(
        &self,
        out: &mut dyn Write,
        field: &Field,
        index: usize,
        counters: &[&[u64]],
    ) -> io::Result<()> {
        let at = |line: &&[u64], index: usize| line.get(index).copied().unwrap_or_default();
        let values: Vec<u64> = counters.iter().map(|line| at(line, index)).collect();
        let name = match self.is_verbose {
            true => field.meaning,
            false => &field.name,
        };
        write!(out, "{name:NAME$}: {}", Counts(&values))?;
        self.write_change(out, &floats(&values))?;
        match field.base {
            Base::None => {}
            Base::Counter(base) => {
                let bases = counters.iter().map(|line| at(line, base));
                let shares = values.iter().zip(bases);
                let shares = shares.map(|(part, whole)| quotient(*part, whole) * 100.0);
                let shares: Vec<String> = shares.map(|share| format!("{share:9.2}%")).collect();
                write!(out, "  ({} )", shares.join(", "))?;
            }
            Base::Time => {
                let times = values.iter().zip(self.stats);
                let times = times.map(|(count, stats)| quotient(stats.elapsed_jiffies, *count));
                let times: Vec<String> = times.map(|time| format!("{time:11.2}")).collect();
                write!(out, "  $ {} $", times.join(", "))?;
            }
        }
        writeln!(out)
    }

    /// Writes the number of successful calls of load balancing, and how many tasks such a call moved on average. `counters` has
    /// the counters of one category in each recording.
    fn write_derived(
        &self,
        out: &mut dyn Write,
        prefix: &str,
        counters: &[&[u64]],
    ) -> io::Result<()> {
        let at = |line: &&[u64], index: usize| line.get(index).copied().unwrap_or_default();
        let successes = counters.iter().map(|line| {
            let [count, balanced, failed] = [0, 1, 2].map(|index| at(line, index));
            count.saturating_sub(balanced.saturating_add(failed))
        });
        let successes: Vec<u64> = successes.collect();
        // The last four are gained, hot_gained, nobusyq and nobusyg; how many are before them depends on the version.
        let gained = counters
            .iter()
            .map(|line| at(line, line.len().saturating_sub(4)));
        let pulled: Vec<f64> = gained
            .zip(&successes)
            .map(|(gained, successes)| quotient(gained, *successes))
            .collect();
        let (success_name, average_name) = match self.is_verbose {
            true => (
                "*calls that moved tasks".to_owned(),
                "*tasks moved per such call".to_owned(),
            ),
            false => (
                format!("*{prefix}_lb_success_count"),
                format!("*{prefix}_lb_avg_pulled"),
            ),
        };
        write!(out, "{success_name:NAME$}: {}", Counts(&successes))?;
        self.write_change(out, &floats(&successes))?;
        let texts: Vec<String> = pulled
            .iter()
            .map(|average| format!("{average:.2}"))
            .collect();
        write!(out, "\n{average_name:NAME$}: {}", Columns(&texts))?;
        self.write_change(out, &pulled)?;
        writeln!(out)
    }

    /// Writes the change from the first to the second value in percent, if there are two; 0 if the first
    /// is 0.
    fn write_change(&self, out: &mut dyn Write, values: &[f64]) -> io::Result<()> {
        let [before, after] = values else {
            return Ok(());
        };
        let change = match *before > 0.0 {
            true => (after - before) / before * 100.0,
            false => 0.0,
        };
        // Adding 0.0 turns -0.0 into 0.0, which has no sign.
        write!(out, "  |{:9.2}% |", change + 0.0)
    }
}

/// Returns the categories of a domain's counters, in the order of the domain's line in this version of `/proc/schedstat`.
fn categories(version: u16) -> Vec<Category> {
    let states = match version >= BUSY_FIRST {
        true => ["busy", "idle", "newidle"],
        false => ["idle", "busy", "newidle"],
    };
    let imbalance = match version >= IMBALANCE_BY_KIND {
        true => &IMBALANCE_FIELDS_BY_KIND[..],
        false => &IMBALANCE_FIELD,
    };
    let (before, after) = BALANCE_FIELDS.split_at(IMBALANCE_INDEX);
    let fields = [before, imbalance, after].concat();
    let balancing = states.into_iter().map(|state| Category {
        heading: format!("<Category {state}>"),
        fields: fields
            .iter()
            .map(|(name, meaning, base)| Field {
                name: format!("{state}_lb_{name}"),
                meaning,
                base: *base,
            })
            .collect(),
        derived_prefix: Some(state.to_owned()),
    });
    let others = OTHER_FIELDS.iter().map(|(heading, fields)| Category {
        heading: (*heading).to_owned(),
        fields: fields
            .iter()
            .map(|(name, meaning)| Field {
                name: (*name).to_owned(),
                meaning,
                base: Base::None,
            })
            .collect(),
        derived_prefix: None,
    });
    balancing.chain(others).collect()
}

fn domain_counters(cpu: &CpuStats, number: u16) -> Option<&[u64]> {
    let mut domains = cpu.domains.iter();
    let domain = domains.find(|domain| domain.number == number);
    domain.map(|domain| &domain.counters[..])
}

fn domain_title(cpu: &str, domain: &DomainStats, with_domain_cpus: bool) -> String {
    let number = domain.number.to_string();
    let name = domain.name.as_ref().unwrap_or(&number);
    let title = format!("CPU: {cpu} | DOMAIN: {name}");
    match &domain.cpus {
        Some(cpus) if with_domain_cpus => format!("{title} | DOMAIN_CPUS: {cpus}"),
        _ => title,
    }
}

fn rule(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", "-".repeat(LINE))
}

/// Values in the columns of counts.
struct Counts<'v>(&'v [u64]);

impl std::fmt::Display for Counts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let texts: Vec<String> = self.0.iter().map(u64::to_string).collect();
        Columns(&texts).fmt(f)
    }
}

/// Texts in the columns of counts.
struct Columns<'v>(&'v [String]);

impl std::fmt::Display for Columns<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (column, text) in self.0.iter().enumerate() {
            match column {
                0 => write!(f, "{text:>11}")?,
                _ => write!(f, ", {text:>10}")?,
            }
        }
        Ok(())
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "53 bits are enough for two decimals"
)]
fn floats(values: &[u64]) -> Vec<f64> {
    values.iter().map(|value| *value as f64).collect()
}

/// Returns `dividend` divided by `divisor`; 0 if `divisor` is 0.
#[expect(
    clippy::cast_precision_loss,
    reason = "53 bits are enough for two decimals"
)]
fn quotient(dividend: u64, divisor: u64) -> f64 {
    match divisor {
        0 => 0.0,
        divisor => dividend as f64 / divisor as f64,
    }
}
