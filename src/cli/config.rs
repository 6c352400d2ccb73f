//! perf's configuration: `PERF_CONFIG` alone, or `/etc/perfconfig` and then `~/.perfconfig`.
//!
//! A file that cannot be read or a line that cannot be understood is a finding, not an error: the rest still counts, and
//! the user is told file and line.

pub(crate) mod edit;
mod keys;
mod parse;

use std::io;
use std::path::{Path, PathBuf};

use rperf_safefs::{Opened, Refusal, read_all};

pub(crate) use self::keys::names as known_settings;
use super::context::variable;

/// The file of the whole system.
const SYSTEM: &str = "/etc/perfconfig";

/// Every setting in the order read; the last one of a name counts.
#[derive(Debug, Default)]
pub(crate) struct Config {
    entries: Vec<parse::Entry>,
    findings: Vec<String>,
}

impl Config {
    /// Reads the files that apply to this user.
    pub(crate) fn load() -> Self {
        let mut config = Self::default();
        if let Some(only) = variable("PERF_CONFIG") {
            config.read(Path::new(&only));
            return config;
        }
        config.read(Path::new(SYSTEM));
        if let Some(home) = variable("HOME") {
            config.read(&PathBuf::from(home).join(".perfconfig"));
        }
        config
    }

    /// The settings of one file alone.
    pub(crate) fn of(path: &Path) -> Self {
        let mut config = Self::default();
        config.read(path);
        config
    }

    /// The file that applies to every user.
    pub(crate) fn system_file() -> PathBuf {
        PathBuf::from(SYSTEM)
    }

    /// The user's own file: what `PERF_CONFIG` names, or `~/.perfconfig`. None without a home.
    pub(crate) fn user_file() -> Option<PathBuf> {
        let home = || Some(PathBuf::from(variable("HOME")?).join(".perfconfig"));
        variable("PERF_CONFIG").map(PathBuf::from).or_else(home)
    }

    /// Names and values, each name once with the value that counts, sections and names in the order they came.
    pub(crate) fn settings(&self) -> Vec<(&str, &str)> {
        let section = |name: &str| {
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
            let of = name.get(..section(name));
            let fellow = |(known, _): &(&str, &str)| known.get(..section(known)) == of;
            let place = settings.iter().rposition(fellow);
            settings.insert(
                place.map_or(settings.len(), |place| place + 1),
                (name, value),
            );
        }
        settings
    }

    /// Whether a value can be given to `section.key`; the error says what was expected.
    ///
    /// # Errors
    ///
    /// Known keys with a value that is none of theirs.
    pub(crate) fn check(name: &str, value: &str) -> Result<(), String> {
        keys::check(&name.to_ascii_lowercase(), value)
    }

    /// The value of `section.key`, names in lower case; without a value (`[tui] report`) it is empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.entries
            .iter()
            .rev()
            .find(|entry| entry.name == name)
            .map(|entry| entry.value.as_str())
    }

    /// The value of a key that is a boolean. A bad value was reported when the file was read and counts as unset.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).and_then(boolean)
    }

    /// What was wrong with the files, one line each, naming file and line.
    pub(crate) fn findings(&self) -> &[String] {
        &self.findings
    }

    /// Adds the settings of one file; a missing file adds none.
    fn read(&mut self, path: &Path) {
        let shown = path.display();
        let bytes = match read_own(path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                self.findings.push(format!(
                    "File {shown} not owned by current user or root, ignoring it."
                ));
                return;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                self.findings
                    .push(format!("failed to read config file {shown}: {error}"));
                return;
            }
        };
        self.add(&String::from_utf8_lossy(&bytes), &shown.to_string());
    }

    /// Adds the settings in `text`, which came from the file `shown`.
    fn add(&mut self, text: &str, shown: &str) {
        let (entries, bad) = parse::parse(text);
        let findings = bad.into_iter().map(|bad| {
            format!(
                "bad config file line {} in {shown}: {}",
                bad.line, bad.cause
            )
        });
        self.findings.extend(findings);
        for entry in entries {
            match keys::check(&entry.name, &entry.value) {
                Ok(()) => self.entries.push(entry),
                Err(expected) => self.findings.push(format!(
                    "bad config file line {} in {shown}: {} = {}: {expected}",
                    entry.line, entry.name, entry.value
                )),
            }
        }
    }
}

/// perf's booleans: `yes on true 1`, nothing at all, and their opposites.
pub(crate) fn boolean(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "" | "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        number => number.parse::<i64>().ok().map(|number| number != 0),
    }
}

/// The largest file of settings that is read, in bytes.
pub(crate) const MAX_SIZE: u64 = 1 << 20;

/// The bytes of a file that belongs to root or to the user who runs this; `None` for another user's, which could name a pager
/// or redirect what is written.
fn read_own(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let found = Opened::find(path)?;
    match found.is_users() {
        // /dev/null is a usual way to have no settings.
        true if found.metadata().is_file() => read_all(found.for_reading()?, MAX_SIZE).map(Some),
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
    fn the_last_setting_of_a_name_counts() {
        let config = config("[report]\nchildren = false\n[report]\nchildren\n");
        assert_eq!(config.flag("report.children"), Some(true));
        assert_eq!(config.findings(), &[] as &[String]);
    }

    #[test]
    fn bad_values_are_named_with_their_line_and_do_not_count() {
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
    fn keys_of_other_commands_are_kept() {
        assert_eq!(
            config("[colors]\n top = red, default\n").text("colors.top"),
            Some("red, default")
        );
    }
}
