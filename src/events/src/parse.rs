//! The grammar of `-e`: a list of events and groups, with modifiers.

use std::ops::Range;

use rperf_names::nearest;
use rperf_wire::{Attr, EventType};

use crate::breakpoint::Breakpoint;
use crate::cache_event::{self, CacheEvent};
use crate::group::group;
use crate::hybrid::is_core_pmu;
use crate::modifier::Modifiers;
use crate::names::{SOFTWARE_PMU, TOOL_NAMES, TOOL_PMU, all_names, known_event, raw_code};
use crate::number::number;
use crate::pmu_event::{BadTerm, PmuEvent};
use crate::select::{MissingTracepoint, select};
use crate::terms::{SlashedWord, Term};
use crate::{
    Catalogue, EventSpec, ParseError, SelectorFault, Tool, TracepointName, on_each_core_pmu,
};

/// Parses a list such as `cycles:u,{cs,page-faults}:S,sched:sched_process_*`. Order and duplicates are kept. A pattern gives one
/// event per matching tracepoint; a word that selects several PMUs gives one event per PMU; on hybrid machines, a generic event
/// gives one event per core PMU.
///
/// # Errors
/// [`ParseError`] with the faults of all invalid words.
pub fn parse(text: &str, catalogue: &Catalogue<'_>) -> Result<Vec<EventSpec>, ParseError> {
    let mut events = Vec::new();
    let mut faults = Vec::new();
    for position in split(text) {
        let word = ListWord {
            text: text.get(position.clone()).unwrap_or_default(),
            position,
        };
        let parsed = match word.text.contains(['{', '}']) {
            true => group(&word, catalogue),
            false => word.events(catalogue).map_err(|fault| vec![fault]),
        };
        match parsed {
            Ok(parsed) => events.extend(parsed),
            Err(errors) => faults.extend(errors),
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

/// Splits at commas outside `{…}` and `/…/`. The single slash of a breakpoint (`mem:0x1000/4`) doesn't count; the breakpoint may
/// be in braces.
pub(crate) fn split(text: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    // The start of the current word, and that of the current event, which may be in braces.
    let (mut start, mut event_start) = (0, 0);
    let (mut braces, mut in_slashes) = (0_usize, false);
    for (offset, byte) in text.bytes().enumerate() {
        let in_breakpoint = text
            .get(event_start..)
            .is_some_and(|event| event.starts_with(Breakpoint::PREFIX));
        match byte {
            b'/' if !in_breakpoint => in_slashes = !in_slashes,
            b'{' => {
                braces += 1;
                event_start = offset + 1;
            }
            b'}' => braces = braces.saturating_sub(1),
            b',' if !in_slashes => {
                event_start = offset + 1;
                if braces == 0 {
                    words.push(start..offset);
                    start = event_start;
                }
            }
            _ => {}
        }
    }
    words.push(start..text.len());
    words
}

/// One word of the list.
pub(crate) struct ListWord<'a> {
    pub(crate) text: &'a str,
    /// Its byte range in the list.
    pub(crate) position: Range<usize>,
}

impl ListWord<'_> {
    /// Parses the events of a word without braces.
    pub(crate) fn events(
        &self,
        catalogue: &Catalogue<'_>,
    ) -> Result<Vec<EventSpec>, SelectorFault> {
        if self.text.is_empty() {
            return Err(self.fault(0, "expected the name of an event".to_owned()));
        }
        // After the colon are modifiers, the name of a tracepoint, or a number.
        let (name, after) = match self.text.split_once(':') {
            Some((name, after)) => (name, Some(after)),
            None => (self.text, None),
        };
        if self.text.starts_with(Breakpoint::PREFIX) {
            return self.breakpoint(catalogue);
        }
        if self.text.contains('/') {
            return self.slashed(catalogue);
        }
        if let Some(attr) = self.plain(name)? {
            let event = EventSpec::new(self.text.to_owned(), attr);
            let modifiers = self.modifiers(name.len(), after)?;
            return Ok(on_each_core_pmu(
                self.modified(event, &modifiers),
                catalogue,
            ));
        }
        // Tool events take no modifiers, so the whole word must be the name, without a colon.
        if let Some(tool) = Tool::named(self.text) {
            return Ok(vec![EventSpec::of_tool(name, tool)]);
        }
        // The PMUs that have an event `name`.
        let pmus = catalogue.pmus_with(name);
        if !pmus.is_empty() {
            let modifiers = self.modifiers(name.len(), after)?;
            let no_terms: &[Term<'_>] = &[];
            let event = |(pmu, kind): &(String, u32)| {
                let event = PmuEvent::named(pmu, *kind, name, no_terms, catalogue);
                self.spec_of(event, &modifiers)
            };
            return pmus.into_iter().map(event).collect();
        }
        if let Some(attr) = numbered(name, after) {
            return Ok(vec![self.numbered_event(attr)?]);
        }
        match after {
            Some(event) if !name.is_empty() => self.tracepoints(name, event, catalogue),
            _ => Err(self.fault(0, unknown(self.text, catalogue))),
        }
    }

    /// The attr of a hardware, software, cache or raw event; `None` for other names. Faults are operations that a cache does not
    /// support, and raw codes of more than 64 bits.
    fn plain(&self, name: &str) -> Result<Option<Attr>, SelectorFault> {
        if let Some((kind, config)) = known_event(name) {
            return Ok(Some(Attr {
                kind,
                config,
                ..Attr::default()
            }));
        }
        match CacheEvent::parse(name) {
            Some(CacheEvent::Known(config)) => return Ok(Some(cache_event::attr(config))),
            Some(CacheEvent::Impossible(cache)) => {
                let names = cache_event::names_of(cache).join(", ");
                let reason = format!("unknown cache event `{name}': this cache has {names}");
                return Err(self.fault(0, reason));
            }
            None => {}
        }
        let Some(code) = raw_code(name) else {
            return Ok(None);
        };
        let config = code
            .ok_or_else(|| self.fault(0, format!("a raw code has at most 16 digits: `{name}'")))?;
        Ok(Some(Attr {
            kind: EventType::RAW,
            config,
            ..Attr::default()
        }))
    }

    /// Creates the event of a numeric `type:config` with this attr; modifiers may follow a second colon.
    fn numbered_event(&self, attr: Attr) -> Result<EventSpec, SelectorFault> {
        let mut parts = self.text.splitn(3, ':');
        let numbers = parts.by_ref().take(2);
        let modifiers_start = numbers.map(|part| part.len() + 1).sum::<usize>();
        let modifiers = self.modifiers(modifiers_start.saturating_sub(1), parts.next())?;
        let event = EventSpec::new(self.text.to_owned(), attr);
        Ok(self.modified(event, &modifiers))
    }

    fn breakpoint(&self, catalogue: &Catalogue<'_>) -> Result<Vec<EventSpec>, SelectorFault> {
        let parsed = Breakpoint::parse(self.text, catalogue);
        let Breakpoint { attr, modifiers } =
            parsed.map_err(|wrong| self.fault(wrong.offset, wrong.reason))?;
        let modifiers = match modifiers {
            Some((offset, letters)) => self.modifiers(offset - 1, Some(letters))?,
            None => Modifiers::default(),
        };
        let event = EventSpec::new(self.text.to_owned(), attr);
        Ok(vec![self.modified(event, &modifiers)])
    }

    /// Parses `pmu/terms/modifiers` and `event/terms/modifiers`.
    fn slashed(&self, catalogue: &Catalogue<'_>) -> Result<Vec<EventSpec>, SelectorFault> {
        let open = self.text.find('/').unwrap_or_default();
        let parts = SlashedWord::split(self.text);
        let parts = parts.ok_or_else(|| self.fault(open, "unbalanced slash".to_owned()))?;
        let terms = parts.terms(self.text);
        let letters = self
            .text
            .get(parts.modifiers.clone())
            .filter(|text| !text.is_empty());
        let modifiers = self.modifiers(parts.modifiers.start - 1, letters)?;
        let name = self.text.get(..parts.open).unwrap_or_default();
        if let Some(attr) = self.plain(name)? {
            let event = self.spec_of(PmuEvent::without_pmu(attr, &terms), &modifiers)?;
            return Ok(on_each_core_pmu(event, catalogue));
        }
        if let Some(event) = self.of_software_or_tool(name, &terms, &modifiers)? {
            return Ok(vec![event]);
        }
        // The PMUs that the word `name` selects.
        let pmus = catalogue.pmus_of(name);
        if !pmus.is_empty() {
            let event = |(pmu, kind): &(String, u32)| {
                let event = PmuEvent::of(pmu, *kind, &terms, catalogue);
                self.spec_of(event, &modifiers)
            };
            return pmus.into_iter().map(event).collect();
        }
        // The PMUs that have an event `name`.
        let pmus = catalogue.pmus_with(name);
        if !pmus.is_empty() {
            let event = |(pmu, kind): &(String, u32)| {
                let event = PmuEvent::named(pmu, *kind, name, &terms, catalogue);
                self.spec_of(event, &modifiers)
            };
            return pmus.into_iter().map(event).collect();
        }
        if !name.contains(':') {
            return Err(self.fault(0, no_pmu(name, catalogue)));
        }
        self.with_terms(&parts, &terms, &modifiers, catalogue)
    }

    /// Parses `system:event/terms/modifiers` and `type:config/terms/modifiers`.
    fn with_terms(
        &self,
        parts: &SlashedWord,
        terms: &[Term<'_>],
        modifiers: &Modifiers,
        catalogue: &Catalogue<'_>,
    ) -> Result<Vec<EventSpec>, SelectorFault> {
        let name = self.text.get(..parts.open).unwrap_or_default();
        let inner = ListWord {
            text: name,
            position: self.position.start..self.position.start + name.len(),
        };
        let events = inner.events(catalogue)?;
        // The first colon follows a system (`sched:sched_switch`), a type (`1:0`) or a complete event name (`cycles:u`). Only
        // in the last case does it begin modifiers.
        let (before_colon, after_colon) = name.split_once(':').unwrap_or((name, ""));
        let is_tracepoint = events.iter().all(|event| event.tracepoint.is_some());
        let name_needs_colon = is_tracepoint || numbered(before_colon, Some(after_colon)).is_some();
        // Modifiers before the terms are invalid: `cycles:u/terms/` and `sched:sched_switch:u/terms/`.
        if !name_needs_colon || after_colon.contains(':') {
            let colon = name.rfind(':').unwrap_or_default();
            return Err(self.fault(colon, "modifiers come after the terms".to_owned()));
        }
        let add_terms = |event: EventSpec| {
            let changed = PmuEvent::without_pmu(event.attr.clone(), terms);
            let changed = self.spec_of(changed, modifiers)?;
            // Unless a term `name` is given, each tracepoint of a pattern keeps its own name, followed by the terms as given.
            let name = match terms.iter().any(|term| term.key == "name") {
                true => changed.name,
                false => format!(
                    "{}{}",
                    event.name,
                    self.text.get(parts.open..).unwrap_or_default()
                ),
            };
            Ok(EventSpec {
                name,
                tracepoint: event.tracepoint,
                ..changed
            })
        };
        events.into_iter().map(add_terms).collect()
    }

    /// Parses `software/NAME,terms/` and `tool/NAME/`, as newer perf writes these events; `None` for other PMUs, without terms,
    /// and if the first term of `software` is not the name of a software event. An unknown NAME of `tool` is a fault.
    fn of_software_or_tool(
        &self,
        pmu: &str,
        terms: &[Term<'_>],
        modifiers: &Modifiers,
    ) -> Result<Option<EventSpec>, SelectorFault> {
        let Some((first, rest)) = terms.split_first() else {
            return Ok(None);
        };
        match (pmu, first.value, known_event(first.key)) {
            (SOFTWARE_PMU, None, Some((EventType::SOFTWARE, config))) => {
                let attr = Attr {
                    kind: EventType::SOFTWARE,
                    config,
                    ..Attr::default()
                };
                let event = PmuEvent::without_pmu(attr, rest);
                self.spec_of(event, modifiers).map(Some)
            }
            (TOOL_PMU, ..) => {
                let Some(tool) = Tool::named(first.key) else {
                    let reason = format!("unknown event `{}' of `{TOOL_PMU}'", first.key);
                    return Err(SelectorFault {
                        hint: Some(format!("the events are {}", TOOL_NAMES.join(", "))),
                        ..self.fault(first.offset, reason)
                    });
                };
                // "Times" are the tool events: all are times (`duration_time`, `user_time`, `system_time`).
                if first.value.is_some() {
                    let reason = format!("times take no value: `{}'", first.key);
                    return Err(self.fault(first.offset, reason));
                }
                if let Some(term) = rest.first() {
                    let reason = format!("times take no terms: `{}'", term.key);
                    return Err(self.fault(term.offset, reason));
                }
                if self.text.ends_with('/') {
                    return Ok(Some(EventSpec::of_tool(self.text, tool)));
                }
                Err(self.fault(self.text.len(), "times take no modifiers".to_owned()))
            }
            _ => Ok(None),
        }
    }

    /// Creates the event that was built from terms. Its name is the value of the term `name`, otherwise the word as given.
    fn spec_of(
        &self,
        built: Result<PmuEvent, BadTerm>,
        modifiers: &Modifiers,
    ) -> Result<EventSpec, SelectorFault> {
        let built = built.map_err(|bad| SelectorFault {
            hint: bad.hint,
            ..self.fault(bad.offset, bad.reason)
        })?;
        let name = built.name.unwrap_or_else(|| self.text.to_owned());
        let event = EventSpec {
            settings: built.settings,
            pmu: built.pmu,
            scale: built.scale,
            per_package: built.per_package,
            ..EventSpec::new(name, built.attr)
        };
        Ok(self.modified(event, modifiers))
    }

    /// Parses the tracepoints of `system:event`, where `event` may have modifiers.
    fn tracepoints(
        &self,
        system: &str,
        event: &str,
        catalogue: &Catalogue<'_>,
    ) -> Result<Vec<EventSpec>, SelectorFault> {
        let (event, letters) = match event.split_once(':') {
            Some((event, letters)) => (event, Some(letters)),
            None => (event, None),
        };
        let modifiers = self.modifiers(system.len() + 1 + event.len(), letters)?;
        // perf marks SDT probes with a percent sign; once created they are ordinary probes.
        let bare_system = system.strip_prefix('%').unwrap_or(system);
        let selected = select(bare_system, event, catalogue);
        let selected =
            selected.map_err(|missing| self.missing(missing, bare_system, event, catalogue))?;
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
        Ok(selected.into_iter().map(spec).collect())
    }

    fn missing(
        &self,
        missing: MissingTracepoint,
        system: &str,
        event: &str,
        catalogue: &Catalogue<'_>,
    ) -> SelectorFault {
        SelectorFault {
            hint: missing.hint(catalogue),
            ..self.fault(0, missing.reason(system, event, catalogue))
        }
    }

    /// Returns the event with these modifiers instead of its own, and with the word's position.
    fn modified(&self, mut event: EventSpec, modifiers: &Modifiers) -> EventSpec {
        modifiers.apply(&mut event.attr);
        EventSpec {
            precise_max: modifiers.has('P'),
            sample_read: modifiers.has('S'),
            weak: modifiers.has('W'),
            bpf: modifiers.has('b'),
            has_guest_or_host_modifier: modifiers.has('G') || modifiers.has('H'),
            position: self.position.clone(),
            ..event
        }
    }

    /// Parses the modifiers after the separator, a colon or the closing slash, at offset `separator` of the word. If `letters` is
    /// `None`, the event has no modifiers.
    fn modifiers(
        &self,
        separator: usize,
        letters: Option<&str>,
    ) -> Result<Modifiers, SelectorFault> {
        let Some(letters) = letters else {
            return Ok(Modifiers::default());
        };
        Modifiers::parse(letters).map_err(|bad| self.fault(separator + 1 + bad.offset, bad.reason))
    }

    /// A fault from `offset` in the word to its end.
    pub(crate) fn fault(&self, offset: usize, reason: String) -> SelectorFault {
        let start = (self.position.start + offset).min(self.position.end);
        SelectorFault {
            position: start..self.position.end,
            reason,
            hint: None,
        }
    }
}

/// Parses `type:config`, where `after` is the text after the first colon; modifiers in it are ignored.
fn numbered(kind: &str, after: Option<&str>) -> Option<Attr> {
    let config = after?.split(':').next()?;
    Some(Attr {
        kind: EventType(u32::try_from(number(kind)?).ok()?),
        config: number(config)?,
        ..Attr::default()
    })
}

/// Whether a word is a source or object file of a BPF program, which some releases of perf accept
/// as an event.
fn is_program(word: &str) -> bool {
    word.ends_with(".c") || word.ends_with(".o")
}

/// The reason for a word with slashes whose name is neither an event nor a PMU.
fn no_pmu(pmu: &str, catalogue: &Catalogue<'_>) -> String {
    if is_program(pmu) {
        return unknown(pmu, catalogue);
    }
    let pmus = catalogue.pmus.iter().map(|(name, _)| name.as_str());
    let advice = if pmu == "cpu" {
        let cores = pmus.filter(|name| is_core_pmu(name, catalogue));
        let cores: Vec<String> = cores.map(|name| format!("`{name}'")).collect();
        match cores.is_empty() {
            true => "this machine has no hardware PMU, try cpu-clock".to_owned(),
            // Hybrid x86, and arm64.
            false => format!("this machine's cores are counted by {}", cores.join(", ")),
        }
    } else {
        match nearest(pmu, pmus).or_else(|| nearest(pmu, all_names())) {
            Some(near) => format!("did you mean `{near}'?"),
            None => "missing kernel support?".to_owned(),
        }
    };
    format!("cannot find PMU `{pmu}': {advice}")
}

/// The reason for a word that is no event.
fn unknown(word: &str, catalogue: &Catalogue<'_>) -> String {
    if is_program(word) {
        return format!("`{word}': BPF programs are not supported as events");
    }
    if word.contains(char::is_whitespace) {
        return format!("unknown event `{word}': separate events by commas without spaces");
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
    let lower = name.to_lowercase();
    let vendor = catalogue.machine.vendor();
    if let [event, ..] = vendor.events_named(name) {
        let pmu = event.pmu.as_deref().unwrap_or("cpu");
        return format!("`{name}' is an event of the PMU `{pmu}', which this machine doesn't have");
    }
    // Names of cache events can contain capital letters (`LLC-loads`), so these are compared with the name as given.
    let caches = cache_event::all_names();
    let near = nearest(&lower, all_names())
        .or_else(|| nearest(name, caches.iter().map(String::as_str)))
        .or_else(|| {
            nearest(
                &lower,
                vendor.events().iter().map(|event| event.name.as_str()),
            )
        });
    match near {
        Some(near) => format!("unknown event `{word}', did you mean `{near}'?"),
        None => format!("unknown event `{word}'"),
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
pub(crate) mod tests;

#[cfg(test)]
#[path = "parse_terms_tests.rs"]
mod terms_tests;
