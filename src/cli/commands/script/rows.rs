//! `script --csv` and `--template`: a row for each sample, with the members of the JSON object that `--json` prints.

use clap::ArgMatches;
use rperf_lines::{LineField, LineFields};
use rperf_names::nearest;
use rperf_view::table::csv_cell;
use serde_json::{Map, Value};

use super::plan::EventPlan;
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// The members of the samples' JSON objects, in the order of columns, each with the field of `-F` that adds it.
const MEMBERS: [(&str, LineField); 24] = [
    ("time", LineField::Time),
    ("comm", LineField::Comm),
    ("pid", LineField::Pid),
    ("tid", LineField::Tid),
    ("cpu", LineField::Cpu),
    ("event", LineField::Event),
    ("period", LineField::Period),
    ("trace", LineField::Trace),
    ("bpf-output", LineField::BpfOutput),
    ("cgroup", LineField::Cgroup),
    ("addr", LineField::Addr),
    ("data_src", LineField::DataSrc),
    ("phys_addr", LineField::PhysAddr),
    ("weight", LineField::Weight),
    ("ins_lat", LineField::InsLat),
    ("retire_lat", LineField::RetireLat),
    ("data_page_size", LineField::DataPageSize),
    ("code_page_size", LineField::CodePageSize),
    ("ip", LineField::Ip),
    ("symbol", LineField::Sym),
    ("offset", LineField::Symoff),
    ("dso", LineField::Dso),
    ("dsoff", LineField::Dsoff),
    (CALLCHAIN, LineField::Ip),
];

/// The member with the frames of a callchain.
const CALLCHAIN: &str = "callchain";

/// The layout of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowLayout {
    /// The values of these members, separated by commas.
    Csv(Vec<&'static str>),
    /// Text with placeholders for values.
    Template(Vec<TemplatePart>),
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TemplatePart {
    Text(String),
    /// The value of a member.
    Member(&'static str),
}

impl RowLayout {
    /// Reads `--csv` and `--template`; `None` without them. [`Self::for_events`] adds the columns of CSV.
    ///
    /// # Errors
    ///
    /// Status 129: options that exclude each other, or an invalid template.
    pub(super) fn new(matches: &ArgMatches) -> Result<Option<Self>, CliError> {
        let is_csv = flag(matches, "csv") == Some(true);
        let template = matches.get_one::<String>("template");
        let formats = [
            (is_csv, "--csv"),
            (template.is_some(), "--template"),
            (flag(matches, "json") == Some(true), "--json"),
        ];
        let mut given = formats.iter().filter(|(is_given, _)| *is_given);
        if let (Some((_, one)), Some((_, other))) = (given.next(), given.next()) {
            return Err(CliError::usage(format!(
                "{one} and {other} exclude each other"
            )));
        }
        if template.is_some() && matches.contains_id("fields") {
            return Err(CliError::usage(
                "--template and -F exclude each other: --template names the fields",
            ));
        }
        match template {
            Some(template) => Ok(Some(Self::Template(parse(template)?))),
            None => Ok(is_csv.then(|| Self::Csv(Vec::new()))),
        }
    }

    /// Returns the value of `-F` that selects the fields of a template; `None` for CSV.
    pub(super) fn fields(&self) -> Option<String> {
        let Self::Template(parts) = self else {
            return None;
        };
        let mut fields: Vec<&str> = Vec::new();
        for part in parts {
            let TemplatePart::Member(name) = part else {
                continue;
            };
            // These members come from the frames of the callchain or, without a callchain, from the sampled instruction. All of
            // them request `ip` and, for simplicity, `sym`, which only the names and offsets of functions need.
            let of_frames = ["symbol", "offset", "dso", "dsoff", CALLCHAIN].contains(name);
            let field = MEMBERS.iter().find(|(member, _)| member == name);
            let named = field.map(|(_, field)| field.name());
            let frame_fields = of_frames.then_some(["ip", "sym"]);
            fields.extend(named.into_iter().chain(frame_fields.into_iter().flatten()));
        }
        // Even a template without members prints a line per sample, but samples are only printed if some field is selected.
        Some(match fields.is_empty() {
            true => "comm".to_owned(),
            false => fields.join(","),
        })
    }

    /// The layout for the samples of these events.
    pub(super) fn for_events(&self, events: &[EventPlan]) -> Self {
        let has = |field| events.iter().any(|event| event.layout.fields().has(field));
        let has_callchains = events.iter().any(EventPlan::shows_callers);
        match self {
            Self::Template(_) => self.clone(),
            Self::Csv(_) => {
                let is_shown = |name: &str, field| match name {
                    CALLCHAIN => has_callchains,
                    "bpf-output" => events.iter().any(|event| event.shows_bpf_output),
                    _ => has(field),
                };
                let members = MEMBERS.iter();
                let members = members.filter(|(name, field)| is_shown(name, *field));
                Self::Csv(members.map(|(name, _)| *name).collect())
            }
        }
    }

    /// The line of titles; `None` for a template.
    pub(super) fn titles(&self) -> Option<String> {
        match self {
            Self::Csv(columns) => Some(columns.join(",") + "\n"),
            Self::Template(_) => None,
        }
    }

    /// Replaces the JSON object at the end of `text`, from `start` on, by its row.
    pub(super) fn replace(&self, text: &mut Vec<u8>, start: usize) {
        let object = text.get(start..).unwrap_or_default();
        let object: Map<String, Value> = serde_json::from_slice(object).unwrap_or_default();
        text.truncate(start);
        match self {
            Self::Csv(columns) => {
                for (number, column) in columns.iter().enumerate() {
                    if number > 0 {
                        text.push(b',');
                    }
                    text.extend_from_slice(csv_cell(&member(&object, column)).as_bytes());
                }
            }
            Self::Template(parts) => {
                for part in parts {
                    match part {
                        TemplatePart::Text(literal) => text.extend_from_slice(literal.as_bytes()),
                        TemplatePart::Member(name) => {
                            text.extend_from_slice(member(&object, name).as_bytes());
                        }
                    }
                }
            }
        }
        text.push(b'\n');
    }
}

/// Whether JSON objects and rows can have a member for a field.
pub(super) fn has_member(field: LineField) -> bool {
    MEMBERS.iter().any(|(_, known)| *known == field)
}

/// Returns the first of `fields` without a member.
pub(super) fn first_without_member(fields: LineFields) -> Option<LineField> {
    let mut all = LineFields::ALL.iter().copied();
    all.find(|field| fields.has(*field) && !has_member(*field))
}

/// Returns the text of a member: of the sample or, if the sample lacks it, of the first frame; empty if both lack it. The text of
/// the callchain is the names or addresses of its frames, joined with `;`.
fn member(object: &Map<String, Value>, name: &str) -> String {
    let frames = object.get(CALLCHAIN).and_then(Value::as_array);
    if name == CALLCHAIN {
        let frames = frames.into_iter().flatten();
        let labels = frames.map(|frame| frame.get("symbol").or_else(|| frame.get("address")));
        let labels: Vec<String> = labels
            .map(|label| label.map_or_else(String::new, text))
            .collect();
        return labels.join(";");
    }
    let in_frame = || {
        let frame_member = if name == "ip" { "address" } else { name };
        frames?.first()?.get(frame_member)
    };
    object
        .get(name)
        .or_else(in_frame)
        .map_or_else(String::new, text)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Parses a template: `{member}`, `{{` and `}}` for braces, `\t` and `\n`.
fn parse(template: &str) -> Result<Vec<TemplatePart>, CliError> {
    let template = template.replace("\\t", "\t").replace("\\n", "\n");
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = template.as_str();
    while let Some(index) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(index);
        literal += before;
        let brace = from.get(..1).unwrap_or_default();
        let after = from.get(1..).unwrap_or_default();
        if let Some(after) = after.strip_prefix(brace) {
            literal += brace;
            rest = after;
            continue;
        }
        let Some((name, after)) = after.split_once('}').filter(|_| brace == "{") else {
            return Err(CliError::usage(format!("--template: unbalanced '{brace}'"))
                .hint("write {{ and }} for braces"));
        };
        parts.push(TemplatePart::Text(std::mem::take(&mut literal)));
        parts.push(TemplatePart::Member(find_member(name)?));
        rest = after;
    }
    parts.push(TemplatePart::Text(literal + rest));
    parts.retain(|part| *part != TemplatePart::Text(String::new()));
    Ok(parts)
}

/// The member of that name, which messages call a field.
fn find_member(name: &str) -> Result<&'static str, CliError> {
    let names = || MEMBERS.iter().map(|(member, _)| *member);
    names().find(|member| *member == name).ok_or_else(|| {
        let near = nearest(name, names());
        let near = near.map_or_else(String::new, |near| format!(", did you mean '{near}'?"));
        CliError::usage(format!("--template: unknown field '{name}'{near}")).hint(format!(
            "the fields are {}",
            names().collect::<Vec<_>>().join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &[u8] = br#"{"time":7,"comm":"a \"b\", c","cpu":0,"callchain":[{"address":"0x1","symbol":"f"},{"address":"0x2"}]}"#;

    fn row(layout: &RowLayout) -> String {
        let mut text = b"before\n".to_vec();
        let start = text.len();
        text.extend_from_slice(OBJECT);
        layout.replace(&mut text, start);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn values_of_csv_are_quoted() {
        let columns = vec!["time", "comm", "period", "ip", "symbol", CALLCHAIN];
        let layout = RowLayout::Csv(columns);
        assert_eq!(
            layout.titles().as_deref(),
            Some("time,comm,period,ip,symbol,callchain\n")
        );
        assert_eq!(row(&layout), "before\n7,\"a \"\"b\"\", c\",,0x1,f,f;0x2\n");
    }

    #[test]
    fn templates_contain_members_and_text() {
        let layout = RowLayout::Template(parse("{{{time}}}\\t{comm}: {symbol}{dso}.").unwrap());
        assert_eq!(row(&layout), "before\n{7}\ta \"b\", c: f.\n");
        assert_eq!(
            layout.fields().as_deref(),
            Some("time,comm,sym,ip,sym,dso,ip,sym")
        );
        let plain = RowLayout::Template(parse("x").unwrap());
        assert_eq!(
            (row(&plain).as_str(), plain.fields().as_deref()),
            ("before\nx\n", Some("comm"))
        );
        for (template, message) in [
            (
                "{com}",
                "--template: unknown field 'com', did you mean 'comm'?",
            ),
            ("{comm", "--template: unbalanced '{'"),
            ("a}", "--template: unbalanced '}'"),
        ] {
            let error = parse(template).unwrap_err();
            assert!(error.text().starts_with(message), "{}", error.text());
        }
    }
}
