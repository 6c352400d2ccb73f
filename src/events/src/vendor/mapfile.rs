//! `mapfile.csv`: the files of each processor.

use regex::Regex;

use super::TableFinding;

/// An entry for a processor: a file, or a folder of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Path relative to the folder of the mapfile.
    pub(super) path: String,
    /// Kind of the content: `core`, `uncore`, `metrics` and others.
    pub(super) contents: String,
    /// The last field, of hybrid processors: the kind of cores, `Core` or `Atom`.
    pub(super) role: Option<String>,
}

/// Returns the entries of a processor in the mapfile `text`, in order, without duplicates. Lines that cannot
/// be read are ignored and added to `findings`, with `file` as the mapfile's name.
///
/// A line is `CPUID,VERSION,PATH,CONTENTS[,TYPE,MODEL,ROLE]`, where the first field is a regular
/// expression for the whole CPUID string, with or without stepping (`GenuineIntel-6-55-[01234]`,
/// `AuthenticAMD-23-([12][0-9A-F]|[0-9A-F])`).
pub(super) fn entries(
    file: &str,
    text: &str,
    cpuid: &str,
    findings: &mut Vec<TableFinding>,
) -> Vec<Entry> {
    let names = CpuidNames::new(cpuid);
    let mut entries: Vec<Entry> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let is_heading = number == 1 && line.starts_with("Family-model");
        if line.is_empty() || line.starts_with('#') || is_heading {
            continue;
        }
        let mut report = |reason: String| {
            findings.push(TableFinding::new(
                file,
                Some(format!("line {number}")),
                reason,
            ));
        };
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [pattern, _version, path, contents, rest @ ..] = fields.as_slice() else {
            report("expected CPUID,VERSION,PATH,CONTENTS".to_owned());
            continue;
        };
        match names.matches(pattern) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                report(format!("`{pattern}' is not a regular expression: {error}"));
                continue;
            }
        }
        let entry = Entry {
            path: path.trim_matches('/').to_owned(),
            contents: (*contents).to_owned(),
            role: rest
                .get(2)
                .filter(|role| !role.is_empty())
                .map(|role| (*role).to_owned()),
        };
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries
}

/// A CPUID string, with and without the stepping, which is the last of four parts.
struct CpuidNames<'a> {
    full: &'a str,
    model: Option<&'a str>,
}

impl<'a> CpuidNames<'a> {
    fn new(full: &'a str) -> Self {
        let has_stepping = full.split('-').count() == 4;
        let model = has_stepping
            .then(|| full.rsplit_once('-'))
            .flatten()
            .map(|(model, _)| model);
        Self { full, model }
    }

    fn matches(&self, pattern: &str) -> Result<bool, String> {
        // A pattern without metacharacters is compared without compiling a regular expression.
        if !pattern.contains(['[', '(', '.', '|', '*', '+', '?', '\\', '^', '$', '{']) {
            return Ok(pattern == self.full || Some(pattern) == self.model);
        }
        let regex = Regex::new(&format!("^(?:{pattern})$"));
        let regex = regex.map_err(|error| {
            let text = error.to_string();
            // The last line has the reason; the lines above it show the pattern.
            text.lines().last().unwrap_or_default().trim().to_owned()
        })?;
        Ok(regex.is_match(self.full) || self.model.is_some_and(|model| regex.is_match(model)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str, cpuid: &str) -> Vec<String> {
        let mut findings = Vec::new();
        let entries = entries("mapfile.csv", text, cpuid, &mut findings);
        assert_eq!(findings, []);
        entries.into_iter().map(|entry| entry.path).collect()
    }

    const MAP: &str = "Family-model,Version,Filename,EventType\n\
        # a remark\n\n\
        GenuineIntel-6-55-[01234],v1,skylakex,core\n\
        GenuineIntel-6-55-[56789ABCDEF],v1,cascadelakex,core\n\
        GenuineIntel-6-(37|4A),v15,/SLM/core.json,core\n\
        GenuineIntel-6-2E,v4,nehalemex,core\n\
        AuthenticAMD-23-([12][0-9A-F]|[0-9A-F]),v2,amdzen1,core\n\
        0x00000000410fd0c0,v1,arm/neoverse-n1,core\n";

    #[test]
    fn steppings_are_compared_if_the_line_has_them() {
        assert_eq!(paths(MAP, "GenuineIntel-6-55-4"), ["skylakex"]);
        assert_eq!(paths(MAP, "GenuineIntel-6-55-7"), ["cascadelakex"]);
        assert_eq!(paths(MAP, "GenuineIntel-6-4A-9"), ["SLM/core.json"]);
        assert_eq!(paths(MAP, "GenuineIntel-6-2E-4"), ["nehalemex"]);
        assert_eq!(paths(MAP, "GenuineIntel-6-2E"), ["nehalemex"]);
        assert_eq!(paths(MAP, "AuthenticAMD-23-1F-0"), ["amdzen1"]);
        assert_eq!(paths(MAP, "0x00000000410fd0c0"), ["arm/neoverse-n1"]);
        for none in ["GenuineIntel-6-5", "GenuineIntel-6-551-1", "", "None-0-0"] {
            assert!(paths(MAP, none).is_empty(), "{none}");
        }
    }

    #[test]
    fn roles_of_hybrid_processors_are_kept() {
        let text = "GenuineIntel-6-97,V1,/ADL/atom.json,hybridcore,0x20,0x000001,Atom\n";
        let entries = entries("m", text, "GenuineIntel-6-97-2", &mut Vec::new());
        assert_eq!(entries[0].role.as_deref(), Some("Atom"));
        assert_eq!(entries[0].contents, "hybridcore");
    }

    #[test]
    fn bad_lines_are_named() {
        let mut findings = Vec::new();
        let text = "a,b\nGenuineIntel-6-[,1,x,core\nGenuineIntel-6-2E,1,x,core\n";
        let valid = entries("m.csv", text, "GenuineIntel-6-2E", &mut findings);
        assert_eq!(valid.len(), 1);
        let messages: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages[0],
            "m.csv: line 1: expected CPUID,VERSION,PATH,CONTENTS"
        );
        assert!(
            messages[1]
                .starts_with("m.csv: line 2: `GenuineIntel-6-[' is not a regular expression: "),
            "{messages:?}"
        );
    }
}
