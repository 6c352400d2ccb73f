//! perf's configuration: `PERF_CONFIG` alone, or `/etc/perfconfig` and then `~/.perfconfig`.
//!
//! Problems in a file are warnings, not errors; its valid settings apply.

pub(crate) mod edit;
mod keys;
mod parse;

use std::io;
use std::path::{Path, PathBuf};

use rperf_safefs::{FoundFile, Refusal, read_all};

pub(crate) use self::keys::names as known_settings;
use super::context::variable;

/// The system-wide file.
const SYSTEM: &str = "/etc/perfconfig";

/// The valid settings in the order in which they were read; the last one of a name applies.
#[derive(Debug, Default)]
pub(crate) struct Config {
    entries: Vec<parse::ConfigEntry>,
    /// The files of the entries, each with the index of its first entry.
    files: Vec<(usize, String)>,
    findings: Vec<String>,
}

impl Config {
    /// Reads the configuration files that apply to this user.
    pub(crate) fn load() -> Self {
        let mut config = Self::default();
        if let Some(path) = variable("PERF_CONFIG") {
            config.read(Path::new(&path));
            return config;
        }
        config.read(Path::new(SYSTEM));
        if let Some(home) = variable("HOME") {
            config.read(&PathBuf::from(home).join(".perfconfig"));
        }
        config
    }

    /// Reads the settings of a single file.
    pub(crate) fn of(path: &Path) -> Self {
        let mut config = Self::default();
        config.read(path);
        config
    }

    /// Returns the system-wide file.
    pub(crate) fn system_file() -> PathBuf {
        PathBuf::from(SYSTEM)
    }

    /// Returns the user's file: `PERF_CONFIG`, or `~/.perfconfig`. `None` if neither `PERF_CONFIG` nor `HOME` is set.
    pub(crate) fn user_file() -> Option<PathBuf> {
        let home = || Some(PathBuf::from(variable("HOME")?).join(".perfconfig"));
        variable("PERF_CONFIG").map(PathBuf::from).or_else(home)
    }

    /// Returns the name and effective value of each setting, grouped by section, in the order of first appearance.
    pub(crate) fn settings(&self) -> Vec<(&str, &str)> {
        let section_length = |name: &str| {
            name.rsplit_once('.')
                .map_or(0, |(section, _)| section.len())
        };
        let mut settings: Vec<(&str, &str)> = Vec::new();
        for entry in &self.entries {
            let (name, value) = (entry.name.as_str(), entry.value.as_str());
            if let Some(known) = settings.iter_mut().find(|(known, _)| *known == name) {
                known.1 = value;
                continue;
            }
            let own_section = name.get(..section_length(name));
            let is_in_section =
                |(known, _): &(&str, &str)| known.get(..section_length(known)) == own_section;
            let last = settings.iter().rposition(is_in_section);
            settings.insert(last.map_or(settings.len(), |last| last + 1), (name, value));
        }
        settings
    }

    /// Checks a value for `section.key`; the error names the expected values.
    ///
    /// # Errors
    ///
    /// The key is known and the value is not valid for it.
    pub(crate) fn check(name: &str, value: &str) -> Result<(), String> {
        keys::check(&name.to_ascii_lowercase(), value)
    }

    /// Returns the value of a setting whose name the user gave, with section and key in any case.
    pub(crate) fn text_in_any_case(&self, name: &str) -> Option<&str> {
        self.text(&parse::canonical(name))
    }

    /// Returns the value of `name`, a `section.key` in lower case (a subsection has the file's case). A key without a value
    /// (`[tui] report`) has an empty one.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.entries
            .iter()
            .rev()
            .find(|entry| entry.name == name)
            .map(|entry| entry.value.as_str())
    }

    /// Returns the value of a boolean key. A setting with an invalid value was reported and dropped when
    /// the file was read.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).and_then(boolean)
    }

    /// Returns one message for each problem, with file and line number; only with the file if the whole file is ignored.
    pub(crate) fn findings(&self) -> &[String] {
        &self.findings
    }

    /// Returns a message for each setting that has an effect in perf's `command` but not in rperf's, and for each unknown setting
    /// in the section `command`. A setting that is set several times has at most one message, for the last time.
    pub(crate) fn unused(&self, command: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let mut later = self.entries.iter().skip(index + 1);
            if later.any(|later| later.name == entry.name) {
                continue;
            }
            let is_in_section = entry.name.split('.').next() == Some(command);
            let problem = match keys::why_unused(&entry.name, Some(command)) {
                Some(why) => format!("{} has no effect: {why}", entry.name),
                None => match Self::describe_unknown(&entry.name) {
                    Some(unknown) if is_in_section => unknown,
                    _ => continue,
                },
            };
            let file = self
                .files
                .iter()
                .rfind(|(first_entry, _)| *first_entry <= index);
            let file = file.map_or("", |(_, file)| file);
            lines.push(format!("{file} line {}: {problem}", entry.line));
        }
        lines
    }

    /// Returns why a setting has no effect in any command; `None` if it has an effect or is unknown.
    pub(crate) fn why_unused(name: &str) -> Option<&'static str> {
        keys::why_unused(&name.to_ascii_lowercase(), None)
    }

    /// Describes a setting that neither perf nor rperf has; `None` if it is known.
    pub(crate) fn describe_unknown(name: &str) -> Option<String> {
        let name = name.to_ascii_lowercase();
        let near = keys::nearest(&name);
        let near = near.map_or_else(String::new, |near| format!(": did you mean '{near}'?"));
        (!keys::is_known(&name)).then(|| format!("unknown setting {name}{near}"))
    }

    /// Adds the settings of one file; a missing file adds none.
    fn read(&mut self, path: &Path) {
        let file_name = path.display();
        let bytes = match read_trusted(path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                self.findings.push(format!(
                    "File {file_name} not owned by current user or root, ignoring it."
                ));
                return;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                self.findings
                    .push(format!("failed to read config file {file_name}: {error}"));
                return;
            }
        };
        self.add(&String::from_utf8_lossy(&bytes), &file_name.to_string());
    }

    /// Adds the settings in `text`, which was read from the file `file_name`.
    fn add(&mut self, text: &str, file_name: &str) {
        let (entries, bad) = parse::parse(text);
        let findings = bad.into_iter().map(|bad| {
            format!(
                "bad config file line {} in {file_name}: {}",
                bad.line, bad.cause
            )
        });
        self.findings.extend(findings);
        self.files.push((self.entries.len(), file_name.to_owned()));
        for entry in entries {
            match keys::check(&entry.name, &entry.value) {
                Ok(()) => self.entries.push(entry),
                Err(expected) => self.findings.push(format!(
                    "bad config file line {} in {file_name}: {} = {}: {expected}",
                    entry.line, entry.name, entry.value
                )),
            }
        }
    }
}

/// Parses perf's booleans: `true`, `yes`, `on`, the empty string and numbers other than 0 are true; `false`, `no`, `off` and 0
/// are false; other values are `None`.
pub(crate) fn boolean(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "" | "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        number => number.parse::<i64>().ok().map(|number| number != 0),
    }
}

/// The maximum size of a configuration file, in bytes.
pub(crate) const MAX_SIZE: u64 = 1 << 20;

/// Reads a file owned by root or by the current user. Returns `None` for a file of another user, whose settings could execute a
/// program as pager or redirect output.
fn read_trusted(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let found = FoundFile::find(path)?;
    match found.has_trusted_owner() {
        true if found.metadata().is_file() => read_all(found.for_reading()?, MAX_SIZE).map(Some),
        // /dev/null is commonly used for an empty configuration.
        true if path == Path::new("/dev/null") => Ok(Some(Vec::new())),
        true => Err(Refusal::NotRegular.into()),
        false => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        let mut config = Config::default();
        config.add(text, "F");
        config
    }

    #[test]
    fn the_last_setting_of_a_name_applies() {
        let config = config("[report]\nchildren = false\n[report]\nchildren\n");
        assert_eq!(config.flag("report.children"), Some(true));
        assert_eq!(config.findings(), &[] as &[String]);
    }

    #[test]
    fn bad_values_are_reported_with_their_line_and_ignored() {
        let config = config("[report]\n\tchildren = maybe\n\tpercent-limit = 5x\n");
        assert_eq!(config.flag("report.children"), None);
        assert_eq!(
            config.findings(),
            [
                "bad config file line 2 in F: report.children = maybe: expected true or false",
                "bad config file line 3 in F: report.percent-limit = 5x: expected a percentage",
            ]
        );
    }

    #[test]
    fn settings_without_an_effect_are_reported_with_file_and_line() {
        let mut config = config("[colors]\n top = red, default\n[ui]\n\n show-headers = false\n");
        config.add(
            "[annotate]\n jump_arrows = true\n[colors]\n top = blue, default\n",
            "G",
        );
        // annotate.jump_arrows is among them: in perf, it has an effect in the annotate browser of `report`.
        let lines = config.unused("report");
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(
            lines[0].starts_with("F line 5: ui.show-headers has no effect: "),
            "{lines:?}"
        );
        assert!(
            lines[1].starts_with("G line 2: annotate.jump_arrows has"),
            "{lines:?}"
        );
        assert!(
            lines[2].starts_with("G line 4: colors.top has"),
            "{lines:?}"
        );
        assert!(config.unused("record").is_empty());
        config.add("[record]\n buildid = skip\n[other]\n name = 1\n", "H");
        assert_eq!(
            config.unused("record"),
            ["H line 2: unknown setting record.buildid: did you mean 'record.build-id'?"]
        );
    }

    #[test]
    fn settings_without_an_effect_are_kept() {
        assert_eq!(
            config("[colors]\n top = red, default\n").text("colors.top"),
            Some("red, default")
        );
    }
}
