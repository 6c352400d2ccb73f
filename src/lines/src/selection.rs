//! Which fields are printed for which events: the defaults, `-F`, and what the recording has.

use rperf_wire::{Attr, BranchSampleType, SampleType};

use crate::{Error, EventClass, Field, Fields};

/// What a default line shows.
const COMMON: [Field; 10] = [
    Field::Comm,
    Field::Tid,
    Field::Cpu,
    Field::Time,
    Field::Event,
    Field::Ip,
    Field::Sym,
    Field::Symoff,
    Field::Dso,
    Field::Period,
];
/// What raw events show beside it, where it was recorded: those of many CPUs sample memory.
const MEMORY: [Field; 7] = [
    Field::Addr,
    Field::DataSrc,
    Field::Weight,
    Field::PhysAddr,
    Field::DataPageSize,
    Field::CodePageSize,
    Field::InsLat,
];
const TRACEPOINT: [Field; 6] = [
    Field::Comm,
    Field::Tid,
    Field::Cpu,
    Field::Time,
    Field::Event,
    Field::Trace,
];

/// Fields that follow the source of the address.
const SOURCE: Fields = Fields::of(&[Field::Srcline, Field::Srccode]);
/// Fields that follow the code from branch to branch.
const CODE_FLOW: Fields = Fields::of(&[
    Field::Brstackinsn,
    Field::Brstackinsnlen,
    Field::Brstackdisasm,
]);

/// Something to say about `-F` that stops nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A later `-F` replaces an earlier one.
    #[error("Overriding previous field request for all events.")]
    OverridesAll,
    /// A later `-F` replaces an earlier one for this class.
    #[error("Overriding previous field request for {0} events.")]
    Overrides(EventClass),
}

/// The fields of one class of events.
#[derive(Debug, Clone, Copy)]
struct Choice {
    fields: Fields,
    /// Those named in `-F`: it is an error if the recording lacks one.
    asked: Fields,
    /// Those taken out with `-`.
    removed: Fields,
    /// Whether any `-F` spoke of this class, and whether one did so without naming it.
    user_set: bool,
    wildcard: bool,
    /// Whether the defaults are forgotten: a `-F` chose all fields, not one more or less.
    replaced: bool,
}

/// The fields of all classes.
#[derive(Debug, Clone)]
pub struct Selection {
    choices: [Choice; EventClass::ALL.len()],
    warnings: Vec<Warning>,
    callchains_hidden: bool,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            choices: EventClass::ALL.map(|class| Choice {
                fields: match class {
                    EventClass::Tracepoint => Fields::of(&TRACEPOINT),
                    EventClass::Raw => common_and(&MEMORY),
                    EventClass::Software => common_and(&[Field::BpfOutput]),
                    _ => Fields::of(&COMMON),
                },
                asked: Fields::default(),
                removed: Fields::default(),
                user_set: false,
                wildcard: false,
                replaced: false,
            }),
            warnings: Vec::new(),
            callchains_hidden: false,
        }
    }
}

/// How the words of one list relate to what is chosen already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Default,
    Set,
    Add,
    Remove,
}

impl Selection {
    /// Applies one argument of `-F`: `comm,ip`, `+addr,-dso`, `sw:ip,sym`.
    ///
    /// # Errors
    ///
    /// Words that are no fields or no class, `+` and `-` mixed with plain words.
    pub fn apply(&mut self, list: &str) -> Result<(), Error> {
        let (class, words) = match list.split_once(':') {
            Some((prefix, words)) => {
                let class = EventClass::from_prefix(prefix).ok_or_else(|| Error::UnknownClass {
                    prefix: prefix.to_owned(),
                })?;
                (Some(class), words)
            }
            None if list.is_empty() => return Err(Error::Empty),
            None => (None, list),
        };
        if !words.contains(['+', '-']) {
            self.clear(class);
        }
        let mut change = Change::Default;
        for word in words.split(',').filter(|word| !word.is_empty()) {
            let (next, name) = match word.as_bytes().first() {
                Some(b'+') => (Change::Add, &word[1..]),
                Some(b'-') => (Change::Remove, &word[1..]),
                _ => (Change::Set, word),
            };
            let mixes = match next {
                Change::Set => !matches!(change, Change::Set | Change::Default),
                _ => change == Change::Set,
            };
            if mixes {
                return Err(Error::Mixed);
            }
            change = next;
            self.change(class, name, change != Change::Remove)?;
        }
        Ok(())
    }

    /// What there is to say about the lists that were applied.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Callchains don't count: tracepoints that have them are shown without their address.
    pub fn hide_callchains(&mut self) {
        self.callchains_hidden = true;
    }

    /// The fields that lists may name, joined with commas.
    #[must_use]
    pub fn valid_fields() -> String {
        let names: Vec<_> = Fields::ALL.iter().map(Field::name).collect();
        names.join(",")
    }

    /// The fields of events with this attr.
    #[must_use]
    pub fn fields(&self, attr: &Attr) -> Fields {
        self.of(EventClass::of(attr.kind)).fields
    }

    /// Whether samples of single branches show where each led to: unless fields were chosen, and that was not among them.
    #[must_use]
    pub fn shows_targets(&self, attr: &Attr) -> bool {
        let choice = self.of(EventClass::of(attr.kind));
        let usual = !choice.replaced && !choice.removed.has(Field::Addr);
        choice.fields.has(Field::Addr) || usual
    }

    /// Compares the choice with what the events of a file have: takes out what no `-F` named and the first event of its
    /// class lacks, and gives tracepoints with callchains their frames.
    ///
    /// # Errors
    ///
    /// A field that was asked for and not recorded; a class asked for without events; fields that make no sense alone.
    pub fn check<'a>(
        &mut self,
        events: impl Iterator<Item = (&'a Attr, &'a str)> + Clone,
    ) -> Result<(), Error> {
        let has_branches = has_all_branches(events.clone());
        for class in EventClass::ALL {
            let first = first_of(events.clone(), class);
            let choice = self.choice(class);
            match first {
                None if choice.user_set && !choice.wildcard && class != EventClass::Synthesized => {
                    return Err(Error::NoSuchEvents { class });
                }
                Some((attr, name)) if !choice.fields.is_empty() => {
                    choice.check(attr, name, has_branches)?;
                }
                _ => {}
            }
        }
        let tracepoint_chains = events
            .filter(|(attr, _)| EventClass::of(attr.kind) == EventClass::Tracepoint)
            .any(|(attr, _)| attr.sample_type.contains(SampleType::CALLCHAIN));
        let hidden = self.callchains_hidden;
        let choice = self.choice(EventClass::Tracepoint);
        if tracepoint_chains && !choice.user_set && !hidden {
            for field in [Field::Ip, Field::Sym, Field::Symoff, Field::Dso] {
                choice.fields.set(field, true);
            }
        }
        Ok(())
    }

    /// The same for pipe mode, where more events may follow. As in perf, all events with callchains then show their
    /// frames and the names of these, unless that was taken out by name.
    ///
    /// # Errors
    ///
    /// A field that was asked for and not recorded; fields that make no sense alone.
    pub fn check_stream<'a>(
        &mut self,
        events: impl Iterator<Item = (&'a Attr, &'a str)> + Clone,
    ) -> Result<(), Error> {
        let mut attrs = events.clone();
        let chains = !self.callchains_hidden
            && attrs.any(|(attr, _)| attr.sample_type.contains(SampleType::CALLCHAIN));
        let has_branches = has_all_branches(events.clone());
        for class in EventClass::ALL {
            let Some((attr, name)) = first_of(events.clone(), class) else {
                continue;
            };
            let choice = self.choice(class);
            choice.check(attr, name, has_branches)?;
            for field in [Field::Ip, Field::Sym] {
                if chains && !choice.removed.has(field) {
                    choice.fields.set(field, true);
                }
            }
        }
        Ok(())
    }

    fn of(&self, class: EventClass) -> &Choice {
        &self.choices[class.index()]
    }

    fn choice(&mut self, class: EventClass) -> &mut Choice {
        &mut self.choices[class.index()]
    }

    /// Forgets the defaults, or an earlier choice, of one class or of all.
    fn clear(&mut self, class: Option<EventClass>) {
        match class {
            Some(class) => {
                if self.of(class).user_set {
                    self.warnings.push(Warning::Overrides(class));
                }
                let choice = self.choice(class);
                choice.fields = Fields::default();
                choice.user_set = true;
                choice.wildcard = false;
                choice.replaced = true;
            }
            None => {
                if self.choices.iter().any(|choice| choice.user_set) {
                    self.warnings.push(Warning::OverridesAll);
                }
                for choice in &mut self.choices {
                    choice.fields = Fields::default();
                    choice.user_set = true;
                    choice.wildcard = true;
                    choice.replaced = true;
                }
            }
        }
    }

    fn change(&mut self, class: Option<EventClass>, name: &str, add: bool) -> Result<(), Error> {
        let field = Field::from_name(name).ok_or_else(|| Error::UnknownField {
            field: name.to_owned(),
        })?;
        match class {
            Some(class) if !is_valid(field, class) => {
                return Err(Error::NotOfClass { field, class });
            }
            Some(class) => {
                let choice = self.choice(class);
                choice.fields.set(field, add);
                choice.removed.set(field, !add);
                choice.user_set = true;
                choice.wildcard = true;
            }
            None => {
                for class in EventClass::ALL {
                    if is_valid(field, class) {
                        let choice = self.choice(class);
                        choice.fields.set(field, add);
                        choice.asked.set(field, add);
                        choice.removed.set(field, !add);
                        choice.user_set = true;
                        choice.wildcard = true;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The first event of a class.
fn first_of<'a>(
    mut events: impl Iterator<Item = (&'a Attr, &'a str)>,
    class: EventClass,
) -> Option<(&'a Attr, &'a str)> {
    events.find(|(attr, _)| EventClass::of(attr.kind) == class)
}

/// Whether any event records branches of all kinds.
fn has_all_branches<'a>(mut events: impl Iterator<Item = (&'a Attr, &'a str)>) -> bool {
    events.any(|(attr, _)| attr.branch_sample_type.contains(BranchSampleType::ANY))
}

/// Whether samples of this class can have the field at all.
fn is_valid(field: Field, class: EventClass) -> bool {
    match field {
        Field::Trace => class == EventClass::Tracepoint,
        Field::BpfOutput => matches!(class, EventClass::Tracepoint | EventClass::Software),
        _ => true,
    }
}

fn common_and(more: &[Field]) -> Fields {
    let mut fields = Fields::of(&COMMON);
    for field in more {
        fields.set(*field, true);
    }
    fields
}

impl Choice {
    fn check(&mut self, attr: &Attr, event: &str, has_branches: bool) -> Result<(), Error> {
        let addresses = [SampleType::IP, SampleType::ADDR];
        let no_address = !addresses.iter().any(|bit| attr.sample_type.contains(*bit));
        let mut need = |field, bit, name| self.need(attr, event, field, (bit, name));
        need(Field::Ip, SampleType::IP, "IP")?;
        need(Field::Addr, SampleType::ADDR, "ADDR")?;
        need(Field::DataSrc, SampleType::DATA_SRC, "DATA_SRC")?;
        let weights = SampleType::WEIGHT | SampleType::WEIGHT_STRUCT;
        need(Field::Weight, weights, "WEIGHT")?;
        if self.fields.has(Field::Sym) && no_address {
            return Err(Error::NoAddressForSymbols);
        }
        if self.fields.has(Field::Symoff) && !self.fields.has(Field::Sym) {
            return Err(Error::OffsetWithoutSymbol);
        }
        if self.fields.has(Field::Dsoff) {
            self.fields.set(Field::Dso, true);
        }
        if self.fields.has(Field::Dso) && no_address {
            return Err(Error::NoAddressForDso);
        }
        if self.fields.has_any(SOURCE) && !self.fields.has(Field::Ip) {
            return Err(Error::NoAddressForLines);
        }
        if self.fields.has_any(CODE_FLOW) && !has_branches {
            return Err(Error::NotAllBranches);
        }
        let mut need = |field, bit, name| self.need(attr, event, field, (bit, name));
        need(Field::Tid, SampleType::TID, "TID")?;
        need(Field::Pid, SampleType::TID, "TID")?;
        need(Field::Time, SampleType::TIME, "TIME")?;
        need(Field::Cpu, SampleType::CPU, "CPU")?;
        need(Field::Iregs, SampleType::REGS_INTR, "IREGS")?;
        need(Field::Uregs, SampleType::REGS_USER, "UREGS")?;
        need(Field::PhysAddr, SampleType::PHYS_ADDR, "PHYS_ADDR")?;
        let (data, code) = (SampleType::DATA_PAGE_SIZE, SampleType::CODE_PAGE_SIZE);
        need(Field::DataPageSize, data, "DATA_PAGE_SIZE")?;
        need(Field::CodePageSize, code, "CODE_PAGE_SIZE")?;
        need(Field::InsLat, SampleType::WEIGHT_STRUCT, "WEIGHT_STRUCT")?;
        let parts = SampleType::WEIGHT_STRUCT;
        need(Field::RetireLat, parts, "WEIGHT_STRUCT")?;
        need(Field::Cgroup, SampleType::CGROUP, "CGROUP")
    }

    /// Drops `field` where the event has none of the bits, unless it was asked for.
    fn need(
        &mut self,
        attr: &Attr,
        event: &str,
        field: Field,
        (bit, attribute): (SampleType, &'static str),
    ) -> Result<(), Error> {
        if !self.fields.has(field) || !(attr.sample_type & bit).is_empty() {
            return Ok(());
        }
        if self.asked.has(field) {
            return Err(Error::NotRecorded {
                event: event.to_owned(),
                attribute,
                field,
            });
        }
        self.fields.set(field, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
