//! Manual pages in section 1: one for the program and one for each command and subcommand, generated from the command table and
//! clap declarations.

mod sections;

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::Path;

use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use rperf_safefs::Folder;
use rperf_sys::unix_time;
use rperf_view::header::stamp;

use self::sections::{FILES, STATUSES, SectionEntry, VARIABLES, related};
use super::commands::{COMMANDS, CommandEntry, SUBCOMMANDS};
use super::context::{Context, ProgramName};
use super::error::CliError;
use super::examples::EXAMPLES;
use super::globals;
use super::options::{OptionShape, options, spelling};

/// Placeholder for a line break in an option's text until the page is rendered: clap_mangen joins lines.
const BREAK: char = '\u{2028}';

/// The preamble that every rendered page needs.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

const ABOUT: &str = "\
Samples and counts what programs, the kernel and the processor do, and shows where the time goes. Commands, options, output and \
files are those of Linux perf: each program reads the recordings of the other.

A recording is made with 'record' and read with 'report', 'script', 'annotate' and others. 'stat' counts events, 'top' shows what \
runs now, and 'list' shows the events that exist.";

const GRAMMAR: &str = "\
A long option may be shortened to a prefix that no other option has. A switch --NAME is turned off by --no-NAME; the last one \
given counts. Short options may be written together if only the last of them has a value: -age cycles. A value is \
the next word, or is attached: to a long option with =, to a short one without. Optional values, shown as [=<value>], must be \
attached.

For commands that run a program, the first word that is not an option, or the word after --, begins the program's own command line.

-h after a command lists its options, -h WORD only options about WORD; --help shows its manual.";

/// The mode of a created directory, before the umask.
const DIRECTORY_MODE: u32 = 0o777;
const FILE_MODE: u32 = 0o666;

/// Writes all pages into the directory at `path`, which is created if it does not exist. Files are created atomically.
///
/// # Errors
///
/// Status 255: a file or directory that cannot be written. Status 129: SOURCE_DATE_EPOCH is not a number.
pub(crate) fn write_pages(path: &Path, context: &Context) -> Result<(), CliError> {
    let failed = |error: io::Error| {
        let message = format!("failed to write pages into {}: {error}", path.display());
        CliError::message(255, message).hint("give --man a directory that you can write to")
    };
    let manual = ManualContext {
        program: context.program,
        date: date(context)?,
    };
    let folder = Folder::open_own_or_create(path, DIRECTORY_MODE).map_err(failed)?;
    let pages = all_commands().map(|entry| manual.page(entry));
    for page in pages.chain([manual.overview()]) {
        let name = format!("{}.1", page.name);
        let text = page.render()?;
        folder
            .write_atomic(OsStr::new(&name), FILE_MODE, |out| {
                out.write_all(text.as_bytes())
            })
            .map_err(failed)?;
    }
    Ok(())
}

/// Returns the date as `2026-11-21`: SOURCE_DATE_EPOCH if set, for reproducible builds, otherwise today.
fn date(context: &Context) -> Result<String, CliError> {
    const VARIABLE: &str = "SOURCE_DATE_EPOCH";
    let seconds = match context.var(VARIABLE) {
        None => i64::try_from(unix_time()).unwrap_or_default(),
        Some(word) => word.to_string_lossy().parse().map_err(|_| {
            let message = format!("{VARIABLE}={}: not a number of seconds", word.display());
            CliError::usage(message).hint("unset it, or set it to the output of 'date +%s'")
        })?,
    };
    let digits = stamp(seconds);
    let part = |range| digits.get(range).unwrap_or_default();
    Ok(format!("{}-{}-{}", part(0..4), part(4..6), part(6..8)))
}

/// The values that all pages share.
struct ManualContext {
    program: ProgramName,
    date: String,
}

/// A page before it is rendered.
struct ManualPage {
    /// `rperf-stat-report`.
    name: String,
    man: Man,
    /// Whether there are options to show.
    has_options: bool,
    /// Whether to show the list of commands: only on the page of the program.
    has_commands: bool,
    /// The sections after the options or commands.
    rest: Roff,
}

impl ManualContext {
    /// Returns the name of a command's page: the words of the command joined by dashes, after the program's name.
    fn name(&self, command: &str) -> String {
        format!("{}-{}", self.program, command.replace(' ', "-"))
    }

    /// Builds the page of a command.
    fn page(&self, entry: &CommandEntry) -> ManualPage {
        let declared = (entry.build)();
        let name = self.name(entry.name);
        let usage = entry.usage.iter().map(|form| {
            let line = format!("{} {} {form}", self.program, entry.name);
            line.trim_end().to_owned()
        });
        let usage: Vec<String> = usage.collect();
        let about = declared.get_long_about().map(ToString::to_string);
        let command = Command::new(name.clone())
            .bin_name(format!("{} {}", self.program, entry.name))
            .about(entry.summary)
            .long_about(paragraphs(&about.unwrap_or_default()))
            .override_usage(usage.join("\n"))
            .args(documented_options(&declared).map(manual_option));
        let mut rest = Roff::new();
        not_supported(&mut rest, &declared);
        let has = |id: &str| documented_options(&declared).any(|arg| arg.get_id() == id);
        let concerns = |listed: &&SectionEntry| listed.concerns(entry.name, has);
        entries_section(&mut rest, "EXIT STATUS", STATUSES.iter().filter(concerns));
        entries_section(&mut rest, "ENVIRONMENT", VARIABLES.iter().filter(concerns));
        entries_section(&mut rest, "FILES", FILES.iter().filter(concerns));
        self.examples(&mut rest, |example| example.uses(entry.name));
        let others = related(entry.name).into_iter().map(|name| self.name(name));
        see_also(
            &mut rest,
            [self.program.to_string()].into_iter().chain(others),
        );
        ManualPage {
            has_options: documented_options(&declared).next().is_some(),
            has_commands: false,
            man: self.man(command),
            name,
            rest,
        }
    }

    /// Builds the page of the program.
    fn overview(&self) -> ManualPage {
        let name = self.program.to_string();
        let declared = globals::options();
        // Options of commands are listed on the pages of the commands.
        let commands = all_commands().map(|entry| {
            let command = entry.name.replace(' ', "-");
            Command::new(command.clone())
                .display_name(self.name(&command))
                .about(entry.summary)
        });
        let command = Command::new(name.clone())
            .about("Performance analysis: profiles, counters, traces")
            .long_about(paragraphs(ABOUT))
            .override_usage(format!("{name} {}", globals::SYNOPSIS))
            .subcommand_help_heading("COMMANDS")
            .disable_help_subcommand(true)
            .args(documented_options(&declared).map(manual_option))
            .subcommands(commands);
        let mut rest = Roff::new();
        rest.control("SH", ["HOW OPTIONS ARE WRITTEN"]);
        add_paragraphs(&mut rest, GRAMMAR);
        let general = STATUSES.iter().filter(|entry| entry.is_general());
        entries_section(&mut rest, "EXIT STATUS", general);
        rest.control("PP", []);
        rest.text([roman("The pages of the commands list other statuses.")]);
        entries_section(&mut rest, "ENVIRONMENT", VARIABLES.iter());
        entries_section(&mut rest, "FILES", FILES.iter());
        let every_example = |_: &super::examples::Example| true;
        self.examples(&mut rest, every_example);
        let others = all_commands().map(|entry| self.name(entry.name));
        see_also(&mut rest, others);
        ManualPage {
            has_options: true,
            has_commands: true,
            man: self.man(command),
            name,
            rest,
        }
    }

    /// Returns a page with its title line.
    fn man(&self, command: Command) -> Man {
        let title = command.get_name().to_uppercase();
        let command = command.disable_help_flag(true).disable_version_flag(true);
        Man::new(command)
            .title(title)
            .date(&self.date)
            .source(format!("rperf {}", env!("CARGO_PKG_VERSION")))
            .manual(format!("{} manual", self.program))
    }

    /// Adds the section of the examples for which `is_included` returns true.
    fn examples(&self, roff: &mut Roff, is_included: impl Fn(&super::examples::Example) -> bool) {
        roff.control("SH", ["EXAMPLES"]);
        for (index, example) in EXAMPLES.iter().filter(|one| is_included(one)).enumerate() {
            if index > 0 {
                roff.control("PP", []);
            }
            roff.text([roman(example.task)]);
            roff.control("PP", [])
                .control("RS", ["4"])
                .control("nf", []);
            for line in example.lines {
                roff.text([bold(format!("{} {line}", self.program))]);
            }
            roff.control("fi", []).control("RE", []);
        }
    }
}

impl ManualPage {
    /// Renders the page as roff(7) text.
    fn render(&self) -> io::Result<String> {
        let mut text = Vec::new();
        let Self { man, .. } = self;
        man.render_title(&mut text)?;
        // Disables hyphenation and justification.
        text.extend_from_slice(b".nh\n.ad l\n");
        man.render_name_section(&mut text)?;
        man.render_synopsis_section(&mut text)?;
        man.render_description_section(&mut text)?;
        if self.has_options {
            man.render_options_section(&mut text)?;
        }
        if self.has_commands {
            man.render_subcommands_section(&mut text)?;
        }
        self.rest.to_writer(&mut text)?;
        let text = String::from_utf8(text).map_err(io::Error::other)?;
        // Each part was rendered with the preamble.
        let without_preamble = text.replace(PREAMBLE, "");
        let text = format!("{PREAMBLE}{without_preamble}");
        let text = text.replace(&BREAK.to_string().repeat(2), "\n.sp\n");
        Ok(text.replace(BREAK, "\n.br\n"))
    }
}

/// Returns every command, each followed by its subcommands.
fn all_commands() -> impl Iterator<Item = &'static CommandEntry> {
    let subcommands = |entry: &'static CommandEntry| {
        let is_subcommand = |other: &&CommandEntry| {
            let suffix = other.name.strip_prefix(entry.name);
            suffix.is_some_and(|suffix| suffix.starts_with(' '))
        };
        SUBCOMMANDS.iter().filter(is_subcommand)
    };
    let with_subcommands = move |entry| std::iter::once(entry).chain(subcommands(entry));
    COMMANDS.iter().flat_map(with_subcommands)
}

/// Returns the options that are supported and not hidden.
fn documented_options(command: &Command) -> impl Iterator<Item = &Arg> {
    options(command).filter(|arg| OptionShape::of(arg) != OptionShape::NotYet && !arg.is_hide_set())
}

/// Returns an option as clap_mangen should show it.
fn manual_option(arg: &Arg) -> Arg {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    // A switch is declared with the values true and false, which users cannot give: they write --NAME or --no-NAME.
    let is_switch = OptionShape::of(arg) == OptionShape::Switch;
    let arg = arg.clone().hide_possible_values(is_switch);
    // roff keeps the line break and indentation of lines that start with a space.
    let broken = help.replace('\n', &BREAK.to_string());
    arg.long_help(broken.replace(&format!("{BREAK} "), "\n "))
}

/// Makes each line a separate paragraph, as the built-in manual does.
fn paragraphs(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.collect::<Vec<_>>().join("\n\n")
}

/// Adds each line of `text` as a paragraph.
fn add_paragraphs(roff: &mut Roff, text: &str) {
    for line in paragraphs(text).lines() {
        match line.is_empty() {
            true => roff.control("PP", []),
            false => roff.text([roman(line)]),
        };
    }
}

/// Adds a section with the refused options of Linux perf, if there are any.
fn not_supported(roff: &mut Roff, command: &Command) {
    let refused = options(command).filter(|arg| OptionShape::of(arg) == OptionShape::NotYet);
    let names: Vec<String> = refused.map(|arg| spelling(arg).into_owned()).collect();
    if !names.is_empty() {
        roff.control("SH", ["NOT SUPPORTED YET"]);
        let text = "These options of Linux perf are refused by name: ";
        roff.text([roman(text), bold(names.join(" ")), roman(".")]);
    }
}

/// Adds a section of names with their meanings.
fn entries_section<'f>(
    roff: &mut Roff,
    heading: &str,
    entries: impl Iterator<Item = &'f SectionEntry>,
) {
    roff.control("SH", [heading]);
    for entry in entries {
        roff.control("TP", []);
        roff.text([bold(entry.name)]);
        roff.text([roman(entry.text)]);
    }
}

/// Adds the section that refers to other pages.
fn see_also(roff: &mut Roff, names: impl Iterator<Item = String>) {
    roff.control("SH", ["SEE ALSO"]);
    let pages = names.map(|name| (name, "(1), "));
    let pages = pages.chain([("perf_event_open".to_owned(), "(2)")]);
    let inlines = pages.flat_map(|(name, section)| [bold(name), roman(section)]);
    roff.text(inlines.collect::<Vec<Inline>>());
}
