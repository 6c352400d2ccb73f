//! Settings of perf: each has the effect of its option, or is reported as having none.

use std::io;

use rperf_testkit::{Outcome, Scratch};

use crate::kernel::{BUSY, rperf_in};

/// Runs rperf in `scratch` with these lines of configuration.
fn run(scratch: &Scratch, settings: &str, words: &[&str]) -> io::Result<Outcome> {
    let path = scratch.write("config", settings)?;
    rperf_in(scratch, words).env("PERF_CONFIG", path).finish()
}

/// Records a busy shell with these settings and options.
fn record(scratch: &Scratch, settings: &str, options: &[&str]) -> io::Result<()> {
    let words = [
        &["record", "-o", "perf.data", "-e", "cpu-clock"],
        options,
        &["sh", "-c", BUSY],
    ]
    .concat();
    let recorded = run(scratch, settings, &words)?;
    assert_eq!(recorded.status, 0, "{settings}: {}", recorded.stderr);
    Ok(())
}

/// `config NAME=VALUE` reports such a setting, too.
#[test]
fn settings_without_effect_are_reported_by_the_commands_that_read_them_in_perf() -> io::Result<()> {
    let scratch = Scratch::new();
    record(&scratch, "", &[])?;
    let settings = "[colors]\n\ttop = red, default\n[ui]\n\tshow-headers = false\n";
    let report = run(&scratch, settings, &["report", "--stdio"])?;
    let file = scratch.path().join("config");
    for (line, name) in [(2, "colors.top"), (4, "ui.show-headers")] {
        let expected = format!(
            "Warning: {} line {line}: {name} has no effect: ",
            file.display()
        );
        assert!(report.stderr.contains(&expected), "{}", report.stderr);
    }
    assert_eq!(report.status, 0);
    assert_eq!(run(&scratch, settings, &["evlist"])?.stderr, "");
    let quiet = run(&scratch, settings, &["report", "--stdio", "-q"])?;
    assert_eq!(quiet.stderr, "");
    let set = run(&scratch, "", &["config", "annotate.jump_arrows=true"])?;
    assert_eq!(set.status, 0);
    assert!(
        set.stderr
            .starts_with("Warning: annotate.jump_arrows has no effect: "),
        "{}",
        set.stderr
    );
    Ok(())
}

#[test]
fn build_ids_are_recorded_and_cached_as_set() -> io::Result<()> {
    for (value, options, is_in_header, is_cached, is_in_mmap_records) in [
        ("cache", &[][..], true, true, false),
        ("no-cache", &[], true, false, false),
        ("skip", &[], false, false, false),
        ("mmap", &[], true, true, true),
        // Options take precedence. `-B` is `--no-buildid`, and `--no-no-buildid` its opposite.
        ("skip", &["--no-no-buildid"], true, true, false),
        ("cache", &["-B"], false, false, false),
    ] {
        let scratch = Scratch::new();
        let settings = format!("[record]\n\tbuild-id = {value}\n");
        record(&scratch, &settings, options)?;
        let header = run(&scratch, "", &["report", "--header-only"])?.stdout;
        assert_eq!(
            !is_missing(&header, "BUILD_ID"),
            is_in_header,
            "{value} {options:?}: {header}"
        );
        let cache = scratch.path().join(".debug/.build-id");
        assert_eq!(cache.exists(), is_cached, "{value} {options:?}");
        let attrs = run(&scratch, "", &["evlist", "-v"])?.stdout;
        assert_eq!(
            attrs.contains("build_id: 1"),
            is_in_mmap_records,
            "{value}: {attrs}"
        );
    }
    Ok(())
}

/// Whether the header's list of missing features names this one.
fn is_missing(header: &str, feature: &str) -> bool {
    let lines = header.lines();
    let mut lists = lines.filter_map(|line| line.strip_prefix("# missing features: "));
    lists.any(|list| list.split_whitespace().any(|name| name == feature))
}

#[test]
fn the_option_g_uses_the_setting_record_call_graph() -> io::Result<()> {
    let scratch = Scratch::new();
    // record.call-graph takes precedence over call-graph.record-mode.
    let settings = "[call-graph]\n\trecord-mode = fp\n[record]\n\tcall-graph = dwarf\n";
    record(&scratch, settings, &["-g"])?;
    let attrs = run(&scratch, "", &["evlist", "-v"])?.stdout;
    assert!(attrs.contains("sample_stack_user: 8192"), "{attrs}");
    // As in perf, data addresses are recorded only if the option, not a setting, chooses dwarf.
    assert!(!attrs.contains("ADDR"), "{attrs}");
    assert!(!attrs.contains("mmap_data"), "{attrs}");
    record(&scratch, settings, &["--call-graph", "dwarf"])?;
    let attrs = run(&scratch, "", &["evlist", "-v"])?.stdout;
    assert!(attrs.contains("|ADDR|"), "{attrs}");
    record(&scratch, settings, &["--call-graph", "fp"])?;
    let attrs = run(&scratch, "", &["evlist", "-v"])?.stdout;
    assert!(!attrs.contains("sample_stack_user"), "{attrs}");
    let bad = "[record]\n\tcall-graph = nosuch\n";
    let refused = run(&scratch, bad, &["record", "-g", "true"])?;
    assert_eq!(refused.status, 129);
    assert!(
        refused
            .stderr
            .contains("(from the setting record.call-graph)"),
        "{}",
        refused.stderr
    );
    Ok(())
}

/// The output with a setting equals the output with its option. For `annotate`, both differ from the default output; for `report`
/// they need not: if all samples are of CPU 0, its relative and absolute percentages are the same.
#[test]
fn settings_of_report_and_annotate_act_like_their_options() -> io::Result<()> {
    let scratch = Scratch::new();
    record(&scratch, "", &[])?;
    for (settings, words, option) in [
        (
            "[hist]\n\tpercentage = relative\n",
            &["report", "--stdio", "-s", "comm,sym", "--cpu", "0"][..],
            &["--percentage", "relative"][..],
        ),
        (
            "[annotate]\n\tshow_nr_samples = true\n",
            &["annotate", "--stdio"],
            &["-n"],
        ),
        (
            "[annotate]\n\tshow_total_period = true\n",
            &["annotate", "--stdio"],
            &["--show-total-period"],
        ),
        (
            "[annotate]\n\tdisassembler_style = intel\n",
            &["annotate", "--stdio"],
            &["-M", "intel"],
        ),
    ] {
        let with_setting = run(&scratch, settings, words)?;
        let with_option = run(&scratch, "", &[words, option].concat())?;
        assert_eq!(with_setting.stdout, with_option.stdout, "{settings}");
        assert_eq!(with_setting.stderr, with_option.stderr, "{settings}");
        assert_eq!(with_setting.status, with_option.status, "{settings}");
        let by_default = run(&scratch, "", words)?;
        // If `annotate` cannot disassemble on this machine, it fails in each run.
        if words[0] == "annotate" && by_default.status == 0 {
            assert_ne!(with_setting.stdout, by_default.stdout, "{settings}");
        }
    }
    Ok(())
}
