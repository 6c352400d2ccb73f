//! Events built from terms: `pmu/terms/`, `event/terms/`, and named events of sysfs and vendor tables.

use rperf_names::nearest;
use rperf_wire::{Attr, EventType};

use crate::Catalogue;
use crate::hybrid::generic_event_attr;
use crate::names::raw_code;
use crate::number::number;
use crate::pmu_format::{FieldBits, config_word};
use crate::settings::{CommonTerm, EventSettings, KEYS};
use crate::terms::{Term, split_terms};
use crate::vendor::UnitScale;

/// An event built from terms.
#[derive(Debug, Default)]
pub(crate) struct PmuEvent {
    pub(crate) attr: Attr,
    pub(crate) settings: EventSettings,
    /// The value of the term `name`.
    pub(crate) name: Option<String>,
    /// The PMU of the event; `None` for events of [`PmuEvent::without_pmu`].
    pub(crate) pmu: Option<String>,
    /// Factor and unit of counts.
    pub(crate) scale: Option<UnitScale>,
    /// Whether the event counts the whole package on any of its CPUs.
    pub(crate) per_package: bool,
}

/// An invalid term. `offset` is the position of its key or its value in the word: the event as the user wrote it.
#[derive(Debug)]
pub(crate) struct BadTerm {
    pub(crate) offset: usize,
    pub(crate) reason: String,
    pub(crate) hint: Option<String>,
}

impl BadTerm {
    fn new(offset: usize, reason: String) -> Self {
        let hint = None;
        Self {
            offset,
            reason,
            hint,
        }
    }
}

impl PmuEvent {
    /// Builds a PMU's event from `terms`.
    pub(crate) fn of(
        pmu: &str,
        kind: u32,
        terms: &[Term<'_>],
        catalogue: &Catalogue<'_>,
    ) -> Result<Self, BadTerm> {
        let attr = Attr {
            kind: EventType(kind),
            ..Attr::default()
        };
        let mut event = Self {
            attr,
            pmu: Some(pmu.to_owned()),
            ..Self::default()
        };
        for term in terms {
            event.apply_term(term, pmu, kind, catalogue)?;
        }
        Ok(event)
    }

    /// Builds the PMU's event `name`, modified by `terms`.
    pub(crate) fn named(
        pmu: &str,
        kind: u32,
        name: &str,
        terms: &[Term<'_>],
        catalogue: &Catalogue<'_>,
    ) -> Result<Self, BadTerm> {
        // The word starts with the name of the event, which is looked up like a term.
        let first = Term {
            key: name,
            value: None,
            offset: 0,
        };
        let all: Vec<Term<'_>> = std::iter::once(first)
            .chain(terms.iter().copied())
            .collect();
        Self::of(pmu, kind, &all, catalogue)
    }

    /// Builds an event without a PMU from the attr that its name gives. It accepts only terms that need no format of a PMU, and
    /// not `config`, which would replace the event.
    pub(crate) fn without_pmu(attr: Attr, terms: &[Term<'_>]) -> Result<Self, BadTerm> {
        let mut event = Self {
            attr,
            ..Self::default()
        };
        for term in terms {
            if term.key == "config" || !event.apply_common(term)? {
                let near = nearest(term.key, KEYS).filter(|near| *near != "config");
                let reason = match near {
                    Some(near) => format!("unknown term `{}', did you mean `{near}'?", term.key),
                    None => format!("unknown term `{}'", term.key),
                };
                // `config` is the first key.
                let all_but_config = KEYS.get(1..).unwrap_or_default();
                return Err(BadTerm {
                    hint: Some(format!("this event takes {}", all_but_config.join(","))),
                    ..BadTerm::new(term.offset, reason)
                });
            }
        }
        Ok(event)
    }

    /// Applies a term of an event of `pmu`, whose type is `kind`.
    fn apply_term(
        &mut self,
        term: &Term<'_>,
        pmu: &str,
        kind: u32,
        catalogue: &Catalogue<'_>,
    ) -> Result<(), BadTerm> {
        if self.apply_common(term)? {
            return Ok(());
        }
        if term.value.is_none()
            && let Some(definition) = catalogue.definition(pmu, term.key)
        {
            self.apply_definition(&definition.terms, term, pmu, catalogue)?;
            self.scale = definition.scale;
            self.per_package = definition.per_package;
            return Ok(());
        }
        if let Some(format) = catalogue.machine.format(pmu, term.key) {
            return self.set(term, &format);
        }
        // `flatten`: a raw code of more than 64 bits is treated as an unknown term.
        if term.value.is_none()
            && let Some(config) = raw_code(term.key).flatten()
        {
            self.attr.config |= config;
            return Ok(());
        }
        let generic_attr = || generic_event_attr(pmu, kind, term.key, catalogue);
        if let Some(attr) = term.value.is_none().then(generic_attr).flatten() {
            self.attr.kind = attr.kind;
            self.attr.config |= attr.config;
            return Ok(());
        }
        Err(unknown(term, pmu, catalogue))
    }

    /// Applies a term that needs no format of a PMU (`config…`, `name`, `period`, …); returns false for other terms.
    fn apply_common(&mut self, term: &Term<'_>) -> Result<bool, BadTerm> {
        let taken = self.settings.read_term(term);
        let taken = taken.map_err(|reason| BadTerm::new(term.value_offset(), reason))?;
        match taken {
            None => return Ok(false),
            Some(CommonTerm::Stored) => {}
            Some(CommonTerm::Name(name)) => self.name = Some(name),
            // `number` is not the function here, but the number of the `config` word: 3 for `config3`.
            Some(CommonTerm::Config(number, value)) => {
                if let Some(config) = config_word(&mut self.attr, number) {
                    *config = value;
                }
            }
        }
        Ok(true)
    }

    /// Applies `definition`: the terms, in sysfs or a vendor table, of the event that the term `event` names. A period in the
    /// definition is only a default: one that the user gives, which is kept in `settings`, replaces it later.
    fn apply_definition(
        &mut self,
        definition: &str,
        event: &Term<'_>,
        pmu: &str,
        catalogue: &Catalogue<'_>,
    ) -> Result<(), BadTerm> {
        // Faults are reported at the term `event`, since the definition is not part of the word.
        let unused_offset = 0;
        for term in split_terms(definition.trim(), unused_offset) {
            let wrong = |reason: &str| {
                let text = definition.trim();
                let reason = format!("{reason} in `{text}', the definition of `{}'", event.key);
                BadTerm::new(event.offset, reason)
            };
            if term.key == "period" {
                let period = term.value.and_then(number);
                self.attr.sample_period = period.ok_or_else(|| wrong("no number"))?;
            } else if let Some(format) = catalogue.machine.format(pmu, term.key) {
                self.set(&term, &format).map_err(|bad| wrong(&bad.reason))?;
            } else if !self.apply_common(&term).map_err(|bad| wrong(&bad.reason))? {
                return Err(wrong(&format!("unknown term `{}'", term.key)));
            }
        }
        Ok(())
    }

    /// Sets the bits of `format` to the value of the term, or to 1 if the term has no value.
    fn set(&mut self, term: &Term<'_>, format: &str) -> Result<(), BadTerm> {
        let at = term.value_offset();
        let bits = FieldBits::parse(format).ok_or_else(|| {
            BadTerm::new(
                term.offset,
                format!(
                    "the kernel describes `{}' as `{}', which is not a range of bits",
                    term.key,
                    format.trim()
                ),
            )
        })?;
        let value = match term.value {
            None => 1,
            Some(text) => number(text).ok_or_else(|| {
                BadTerm::new(
                    at,
                    format!("`{}' needs a number: {}=0x10", term.key, term.key),
                )
            })?,
        };
        let max = bits.max();
        if value > max {
            return Err(BadTerm::new(
                at,
                format!("value too big for format, maximum is {max}"),
            ));
        }
        bits.set(value, &mut self.attr);
        Ok(())
    }
}

/// The error for a term that `pmu` does not have.
fn unknown(term: &Term<'_>, pmu: &str, catalogue: &Catalogue<'_>) -> BadTerm {
    if term.key.starts_with('@') {
        let reason = format!("terms for drivers are not available yet: `{}'", term.key);
        return BadTerm::new(term.offset, reason);
    }
    let mut names = catalogue.machine.formats(pmu);
    let formats = names.join(",");
    if term.value.is_none() {
        names.extend(catalogue.event_names(pmu));
    }
    let all = names.iter().map(String::as_str).chain(KEYS);
    let mut reason = format!("unknown term '{}' for pmu '{pmu}'", term.key);
    if let Some(near) = nearest(term.key, all) {
        reason.push_str(&format!(", did you mean `{near}'?"));
    }
    let valid = match formats.is_empty() {
        true => KEYS.join(","),
        false => format!("{formats},{}", KEYS.join(",")),
    };
    BadTerm {
        hint: Some(format!("valid terms: {valid}")),
        ..BadTerm::new(term.offset, reason)
    }
}
