//! `examples/install.sh`, with a temporary directory as the prefix or as `DESTDIR`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rperf_testkit::{Outcome, Run, Scratch};

use super::commands;
use crate::tidy::{files, root};

fn install(prefix: &Path, settings: &[(&str, &str)]) -> Outcome {
    let script = root().join("examples/install.sh");
    let run = Run::new("sh").args([script.as_path(), prefix]);
    let run = run.env("RPERF", env!("CARGO_BIN_EXE_rperf"));
    let run = settings
        .iter()
        .fold(run, |run, (name, value)| run.env(name, value));
    run.finish().expect("sh starts")
}

#[test]
fn every_file_is_below_the_prefix() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let prefix = scratch.path().join("usr");
    let done = install(&prefix, &[]);
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    let mut expected: BTreeSet<String> = [
        "bin/rperf",
        "share/bash-completion/completions/rperf",
        "share/doc/rperf/LICENSE",
        "share/fish/vendor_completions.d/rperf.fish",
        "share/man/man1/rperf.1",
        "share/zsh/site-functions/_rperf",
    ]
    .map(str::to_owned)
    .into();
    let names = commands().into_iter();
    expected.extend(names.map(|name| format!("share/man/man1/rperf-{}.1", name.replace(' ', "-"))));
    let below = |path: &Path| {
        let path = path.strip_prefix(&prefix).expect("below the prefix");
        path.display().to_string()
    };
    let installed: BTreeSet<String> = files(&prefix).iter().map(|path| below(path)).collect();
    assert_eq!(installed, expected);
    let listed: BTreeSet<String> = done
        .stdout
        .lines()
        .map(|line| below(Path::new(line)))
        .collect();
    assert_eq!(listed, expected, "the script lists what it installs");
    for name in &expected {
        let mode = fs::metadata(prefix.join(name))?.permissions().mode() & 0o777;
        let usual = if name == "bin/rperf" { 0o755 } else { 0o644 };
        assert_eq!(mode, usual, "{name}");
    }
    let version = Run::new(prefix.join("bin/rperf"))
        .args(["--version"])
        .finish()?;
    assert!(version.stdout.starts_with("rperf version "), "{version:?}");
    let zsh = fs::read_to_string(prefix.join("share/zsh/site-functions/_rperf"))?;
    assert!(zsh.starts_with("#compdef rperf\n"), "{zsh}");
    Ok(())
}

#[test]
fn destdir_is_prepended_and_strip_removes_debug_information() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let staged = scratch.path().join("stage");
    let stage = staged.display().to_string();
    let done = install(
        Path::new("/opt/rperf"),
        &[("DESTDIR", &stage), ("STRIP", "1")],
    );
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    let binary = staged.join("opt/rperf/bin/rperf");
    assert!(fs::metadata(&binary)?.len() < fs::metadata(env!("CARGO_BIN_EXE_rperf"))?.len());
    assert!(
        staged
            .join("opt/rperf/share/man/man1/rperf-record.1")
            .is_file()
    );
    assert_eq!(Run::new(&binary).args(["--version"]).finish()?.status, 0);
    Ok(())
}

#[test]
fn invalid_arguments_install_nothing() {
    let scratch = Scratch::new();
    let relative = install(Path::new("usr"), &[]);
    assert_eq!((relative.status, relative.stdout.as_str()), (1, ""));
    assert!(
        relative
            .stderr
            .starts_with("error: PREFIX 'usr' is not an absolute path\nhint: "),
        "{}",
        relative.stderr
    );
    let absent = install(scratch.path(), &[("RPERF", "/nonexistent/rperf")]);
    assert_eq!((absent.status, absent.stdout.as_str()), (1, ""));
    assert!(
        absent.stderr.contains("hint: build it first"),
        "{}",
        absent.stderr
    );
    assert!(files(scratch.path()).is_empty());
}
