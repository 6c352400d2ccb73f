//! The grammar of `-e`: a list of events, each a name with modifiers.

use std::ops::Range;

use rperf_wire::{Attr, EventType};

use crate::group::group;
use crate::modifier::Modifiers;
use crate::names::{TOOL_NAMES, all_names, is_cache_event, is_raw_code, known_event};
use crate::select::{Missing, select};
use crate::{Catalogue, EventSpec, Fault, ParseError, TracepointName, nearest};

/// Parses a list such as `cycles:u,{cs,page-faults}:S,sched:sched_process_*`. Order and duplicates are kept, a pattern
/// gives one event for each tracepoint that it covers, and all faults of the text are found in one go.
///
/// # Errors
/// [`ParseError`] with every word that is no event, and every kind of event that is known but not
/// available yet: PMU terms, raw codes, cache events and breakpoints.
pub fn parse(text: &str, catalogue: &Catalogue<'_>) -> Result<Vec<EventSpec>, ParseError> {
    let mut events = Vec::new();
    let mut faults = Vec::new();
    for position in split(text) {
        let word = Word {
            text: text.get(position.clone()).unwrap_or_default(),
            position,
        };
        let named = match word.text.contains(['{', '}']) {
            true => group(&word, catalogue),
            false => word.events(catalogue).map_err(|fault| vec![fault]),
        };
        match named {
            Ok(named) => events.extend(named),
            Err(found) => faults.extend(found),
        }
    }
    if faults.is_empty() {
        Ok(events)
    } else {
        Err(ParseError {
            text: text.to_owned(),
            faults,
        })
    }
}

/// The words between commas that stand outside `{…}` and `/…/`. A breakpoint's one slash opens nothing.
pub(crate) fn split(text: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut start = 0;
    let (mut braces, mut slashed) = (0_usize, false);
    for (offset, byte) in text.bytes().enumerate() {
        let breakpoint = text
            .get(start..)
            .is_some_and(|word| word.starts_with("mem:"));
        match byte {
            b'/' if !breakpoint => slashed = !slashed,
            b'{' => braces += 1,
            b'}' => braces = braces.saturating_sub(1),
            b',' if braces == 0 && !slashed => {
                words.push(start..offset);
                start = offset + 1;
            }
            _ => {}
        }
    }
    words.push(start..text.len());
    words
}

/// One word of the list.
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    /// Its bytes in the list.
    pub(crate) position: Range<usize>,
}

impl Word<'_> {
    /// The events of a word without braces.
    pub(crate) fn events(&self, catalogue: &Catalogue<'_>) -> Result<Vec<EventSpec>, Fault> {
        if self.text.is_empty() {
            return Err(self.fault(0, "expected the name of an event".to_owned()));
        }
        let (name, letters) = match self.text.split_once(':') {
            Some((name, letters)) => (name, Some(letters)),
            None => (self.text, None),
        };
        if let Some((kind, config)) = known_event(name) {
            let attr = Attr {
                kind,
                config,
                ..Attr::default()
            };
            let event = EventSpec::new(self.text.to_owned(), attr);
            let modifiers = self.modifiers(name.len(), letters)?;
            return Ok(vec![self.modified(event, &modifiers)]);
        }
        if let Some(reason) = self.refusal(name, catalogue) {
            return Err(self.fault(0, reason));
        }
        match letters {
            Some(event) if !name.is_empty() => self.tracepoints(name, event, catalogue),
            _ => Err(self.fault(0, unknown(self.text, catalogue))),
        }
    }

    /// The tracepoints of `system:event`, where `event` may have modifiers.
    fn tracepoints(
        &self,
        system: &str,
        event: &str,
        catalogue: &Catalogue<'_>,
    ) -> Result<Vec<EventSpec>, Fault> {
        let (event, letters) = match event.split_once(':') {
            Some((event, letters)) => (event, Some(letters)),
            None => (event, None),
        };
        let modifiers = self.modifiers(system.len() + 1 + event.len(), letters)?;
        // perf marks statically defined probes with a percent sign; once they exist they are like any other.
        let plain = system.strip_prefix('%').unwrap_or(system);
        let found = select(plain, event, catalogue);
        let found = found.map_err(|missing| self.missing(missing, plain, event, catalogue))?;
        let letters = letters.map_or(String::new(), |letters| format!(":{letters}"));
        let spec = |(TracepointName { system, name }, id)| {
            let attr = Attr {
                kind: EventType::TRACEPOINT,
                config: id,
                ..Attr::default()
            };
            let event = EventSpec {
                tracepoint: Some(TracepointName {
                    system: String::clone(&system),
                    name: String::clone(&name),
                }),
                ..EventSpec::new(format!("{system}:{name}{letters}"), attr)
            };
            self.modified(event, &modifiers)
        };
        Ok(found.into_iter().map(spec).collect())
    }

    fn missing(
        &self,
        missing: Missing,
        system: &str,
        event: &str,
        catalogue: &Catalogue<'_>,
    ) -> Fault {
        Fault {
            hint: missing.hint(catalogue),
            ..self.fault(0, missing.reason(system, event, catalogue))
        }
    }

    fn modified(&self, mut event: EventSpec, modifiers: &Modifiers) -> EventSpec {
        modifiers.apply(&mut event.attr);
        EventSpec {
            precise_max: modifiers.has('P'),
            sample_read: modifiers.has('S'),
            weak: modifiers.has('W'),
            machines: modifiers.has('G') || modifiers.has('H'),
            position: self.position.clone(),
            ..event
        }
    }

    /// The modifiers behind the colon that stands `colon` bytes into the word.
    fn modifiers(&self, colon: usize, letters: Option<&str>) -> Result<Modifiers, Fault> {
        let Some(letters) = letters else {
            return Ok(Modifiers::default());
        };
        Modifiers::parse(letters).map_err(|bad| self.fault(colon + 1 + bad.offset, bad.reason))
    }

    /// Why a word that is not one of the known names cannot be used, unless it may be a tracepoint.
    fn refusal(&self, name: &str, catalogue: &Catalogue<'_>) -> Option<String> {
        let word = self.text;
        let later = |what: &str| Some(format!("{what} are not available yet: `{word}'"));
        if word.starts_with("mem:") {
            return later("breakpoints");
        }
        if let Some((pmu, _)) = word.split_once('/') {
            return Some(slashed(pmu, word, catalogue));
        }
        if is_raw_code(name) {
            return later("raw event codes");
        }
        if is_cache_event(name) {
            return later("cache events");
        }
        TOOL_NAMES
            .contains(&name)
            .then(|| format!("`{name}' is a clock of the counting commands and cannot be sampled"))
    }

    /// A fault from `offset` in the word to its end.
    pub(crate) fn fault(&self, offset: usize, reason: String) -> Fault {
        let start = (self.position.start + offset).min(self.position.end);
        Fault {
            position: start..self.position.end,
            reason,
            hint: None,
        }
    }
}

/// `pmu/terms/` and `event/terms/`.
fn slashed(pmu: &str, word: &str, catalogue: &Catalogue<'_>) -> String {
    if catalogue.has_pmu(pmu) || known_event(pmu).is_some() {
        return format!("event terms between slashes are not available yet: `{word}'");
    }
    let advice = if pmu == "cpu" {
        "there is no hardware PMU here, try cpu-clock".to_owned()
    } else {
        let pmus = catalogue.pmus.iter().map(|(name, _)| name.as_str());
        match nearest(pmu, pmus) {
            Some(near) => format!("did you mean `{near}'?"),
            None => "missing kernel support?".to_owned(),
        }
    };
    format!("cannot find PMU `{pmu}': {advice}")
}

fn unknown(word: &str, catalogue: &Catalogue<'_>) -> String {
    if word.contains(char::is_whitespace) {
        return format!("unknown event `{word}': events are separated by commas without blanks");
    }
    let named = |full: &String| full.split_once(':').is_some_and(|(_, name)| name == word);
    let tracepoints = catalogue.all_tracepoints();
    let tracepoints: Vec<String> = tracepoints
        .iter()
        .filter(|full| named(full))
        .map(|full| format!("`{full}'"))
        .collect();
    if !tracepoints.is_empty() {
        return format!(
            "a tracepoint needs its system: {}",
            tracepoints.join(" or ")
        );
    }
    let name = word.split_once(':').map_or(word, |(name, _)| name);
    match nearest(&name.to_lowercase(), all_names()) {
        Some(near) => format!("unknown event `{word}', did you mean `{near}'?"),
        None => format!("unknown event `{word}'"),
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
