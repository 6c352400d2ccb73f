//! `help --man`: a page for each command, with each option, that renders without warnings.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rperf_testkit::{Run, Scratch, skip};

use super::{PRIVATE_WORDS, commands, outcome, rperf, visible_options};

/// Returns the pages by file name, with the roff(7) escapes of fonts, hyphens and quotes replaced by plain text.
fn pages(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("the folder of pages can be read");
    let page = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path()).expect("a page can be read");
        let invisible = ["\\fB", "\\fI", "\\fR", "\\&"];
        let plain = invisible
            .iter()
            .fold(text, |text, escape| text.replace(escape, ""));
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, plain.replace("\\-", "-").replace("\\*(Aq", "'"))
    };
    let entries = entries.map(|entry| entry.expect("an entry can be read"));
    entries.map(page).collect()
}

/// Writes the pages into a new folder of a scratch directory; returns both.
fn written() -> (Scratch, std::path::PathBuf) {
    let scratch = Scratch::new();
    let folder = scratch.path().join("share/man/man1");
    let done = rperf(&["help", "--man"])
        .args([&folder])
        .env("SOURCE_DATE_EPOCH", "1000000000")
        .finish()
        .expect("the binary starts");
    assert_eq!(
        (done.status, done.stdout, done.stderr),
        (0, String::new(), String::new())
    );
    (scratch, folder)
}

#[test]
fn every_command_has_a_page_with_all_options() {
    let (_scratch, folder) = written();
    let pages = pages(&folder);
    let commands = commands();
    // The pages of the commands, and rperf(1).
    assert_eq!(pages.len(), commands.len() + 1, "{:?}", pages.keys());
    for command in commands {
        let name = format!("rperf-{}", command.replace(' ', "-"));
        let page = &pages[&format!("{name}.1")];
        let head = format!(".TH {} 1 2001-09-09 ", name.to_uppercase());
        assert!(page.contains(&head), "{page}");
        assert!(page.contains(&format!("\n.SH NAME\n{name} - ")), "{page}");
        for section in [
            "SYNOPSIS",
            "DESCRIPTION",
            "\"EXIT STATUS\"",
            "ENVIRONMENT",
            "FILES",
            "EXAMPLES",
            "\"SEE ALSO\"",
        ] {
            assert_eq!(
                page.matches(&format!("\n.SH {section}\n")).count(),
                1,
                "{name}: {section}"
            );
        }
        for option in visible_options(&command) {
            let is_head = |line: &str| {
                let names = line.split(['[', ' ', ',']);
                line.starts_with('-') && names.into_iter().any(|name| name == option)
            };
            let mut heads = page.lines().zip(page.lines().skip(1));
            let explained = heads.any(|(before, line)| before == ".TP" && is_head(line));
            assert!(explained, "{name} explains {option}");
        }
        let example = format!("\nrperf {command}");
        assert!(page.contains(&example), "{name} has an example");
    }
}

#[test]
fn pages_refer_to_existing_pages_and_rperf_lists_all() {
    let (_scratch, folder) = written();
    let pages = pages(&folder);
    for (name, page) in &pages {
        let (_, others) = page
            .split_once("\n.SH \"SEE ALSO\"\n")
            .expect("a last section");
        let others = others.trim_end().split(", ");
        // The pages of rperf are in section 1.
        let own = others.filter_map(|other| other.strip_suffix("(1)"));
        let own: Vec<&str> = own.collect();
        assert!(!own.is_empty(), "{name} refers to other pages");
        for other in own {
            assert!(
                pages.contains_key(&format!("{other}.1")),
                "{name} refers to {other}"
            );
        }
    }
    let program = &pages["rperf.1"];
    for command in commands() {
        let page = format!("\nrperf-{}(1)\n", command.replace(' ', "-"));
        assert!(program.contains(&page), "rperf(1) lists {command}");
    }
    let options = outcome(&["--list-opts"]).stdout;
    for option in options.split_whitespace() {
        assert!(program.contains(option), "rperf(1) explains {option}");
    }
}

/// Checks the sections that manual pages have and help texts lack; a test of `cli` checks the words of help texts.
#[test]
fn common_sections_have_no_private_words() {
    let (_scratch, folder) = written();
    for (name, page) in pages(&folder) {
        let sections = ["EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"];
        let parts = page.split("\n.SH ").filter(|part| {
            sections
                .iter()
                .any(|section| part.trim_start_matches('"').starts_with(section))
        });
        for word in parts.flat_map(|part| part.split(|c: char| !c.is_alphabetic())) {
            assert!(!PRIVATE_WORDS.contains(&word), "{name}: {word}");
        }
    }
}

#[test]
fn pages_render_without_warnings() {
    let (_scratch, folder) = written();
    let names: Vec<String> = pages(&folder).into_keys().collect();
    let absent = |tool| {
        skip(
            "commands::man_pages::pages_render_without_warnings",
            &format!("there is no {tool}"),
        )
    };
    let man = |name: &String| {
        Run::new("man")
            .args(["--warnings", "-l", name])
            .within(&folder)
            .finish()
    };
    if man(&names[0]).is_ok() {
        for name in &names {
            let shown = man(name).expect("man starts");
            assert_eq!((shown.status, shown.stderr.as_str()), (0, ""), "{name}");
            assert!(
                shown.stdout.contains("SEE ALSO"),
                "{name}: {}",
                shown.stdout
            );
        }
    } else {
        absent("man");
    }
    let lint = Run::new("mandoc")
        .args(["-Tlint", "-Wwarning"])
        .args(&names)
        .within(&folder);
    match lint.finish() {
        Ok(found) => assert_eq!(
            (found.status, found.stdout + &found.stderr),
            (0, String::new())
        ),
        Err(_) => absent("mandoc"),
    }
}

#[test]
fn a_link_named_perf_writes_pages_of_that_name() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let done = rperf(&["help", "--man"])
        .args([scratch.path()])
        .arg0("perf")
        .finish()?;
    assert_eq!(done.status, 0, "{}", done.stderr);
    let page = fs::read_to_string(scratch.path().join("perf-record.1"))?;
    assert!(page.contains("\\fBperf record\\fR [<options>]"), "{page}");
    Ok(())
}

#[test]
fn unwritable_folders_are_named() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let file = scratch.write("file", "")?;
    let below = file.join("man1");
    let refused = rperf(&["help", "--man"]).args([&below]).finish()?;
    assert_eq!(refused.status, 255);
    let start = format!("failed to write pages into {}: ", below.display());
    assert!(refused.stderr.starts_with(&start), "{}", refused.stderr);
    assert!(refused.stderr.contains("\nhint: "), "{}", refused.stderr);
    Ok(())
}

#[test]
fn topics_and_invalid_dates_are_refused() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let both = outcome(&["help", "--man", "x", "record"]);
    assert_eq!(
        (both.status, both.stderr.as_str()),
        (129, "help --man writes all pages and takes no topic\n")
    );
    let dated = rperf(&["help", "--man"])
        .args([scratch.path()])
        .env("SOURCE_DATE_EPOCH", "yesterday")
        .finish()?;
    assert_eq!(dated.status, 129);
    assert!(
        dated
            .stderr
            .starts_with("SOURCE_DATE_EPOCH=yesterday: not a number"),
        "{}",
        dated.stderr
    );
    assert_eq!(
        fs::read_dir(scratch.path())?.count(),
        0,
        "nothing was written"
    );
    Ok(())
}
