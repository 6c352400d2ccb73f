//! Selection of printed fields per event class: defaults, `-F`, and the recorded fields.

use rperf_wire::{Attr, BranchSampleType, SampleType};

use crate::{Error, EventClass, LineField, LineFields};

/// The default fields of all classes but tracepoints.
const DEFAULT_FIELDS: [LineField; 10] = [
    LineField::Comm,
    LineField::Tid,
    LineField::Cpu,
    LineField::Time,
    LineField::Event,
    LineField::Ip,
    LineField::Sym,
    LineField::Symoff,
    LineField::Dso,
    LineField::Period,
];
/// Additional default fields of raw events, if recorded: on many CPUs, raw events sample memory accesses.
const MEMORY_FIELDS: [LineField; 7] = [
    LineField::Addr,
    LineField::DataSrc,
    LineField::Weight,
    LineField::PhysAddr,
    LineField::DataPageSize,
    LineField::CodePageSize,
    LineField::InsLat,
];
/// The default fields of tracepoints.
const TRACEPOINT_FIELDS: [LineField; 6] = [
    LineField::Comm,
    LineField::Tid,
    LineField::Cpu,
    LineField::Time,
    LineField::Event,
    LineField::Trace,
];

/// Fields that require the source location of the address.
const SOURCE_FIELDS: LineFields = LineFields::of(&[LineField::Srcline, LineField::Srccode]);
/// Fields that require the code between branches.
const CODE_FLOW_FIELDS: LineFields = LineFields::of(&[
    LineField::Brstackinsn,
    LineField::Brstackinsnlen,
    LineField::Brstackdisasm,
]);

/// A warning about `-F`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldWarning {
    /// A later `-F` replaces an earlier one.
    #[error("Overriding previous field request for all events.")]
    OverridesAll,
    /// A later `-F` replaces an earlier one for this class.
    #[error("Overriding previous field request for {0} events.")]
    Overrides(EventClass),
}

/// The fields of one event class.
#[derive(Debug, Clone, Copy)]
struct ClassFields {
    fields: LineFields,
    /// Fields that a `-F` for all classes names without `-`: an error if they are not recorded.
    requested: LineFields,
    /// Fields removed with `-`.
    removed: LineFields,
    /// Whether any `-F` applied to this class.
    user_set: bool,
    /// After a `-F`, whether the class may have no events. As in perf, false only if the `-F` names the class but no fields.
    may_lack_events: bool,
    /// Whether the defaults were replaced: a `-F` was a complete list, without `+` and `-`.
    replaced: bool,
}

/// The fields of all event classes.
#[derive(Debug, Clone)]
pub struct FieldSelection {
    choices: [ClassFields; EventClass::ALL.len()],
    warnings: Vec<FieldWarning>,
    callchains_hidden: bool,
}

impl Default for FieldSelection {
    fn default() -> Self {
        Self {
            choices: EventClass::ALL.map(|class| ClassFields {
                fields: match class {
                    EventClass::Tracepoint => LineFields::of(&TRACEPOINT_FIELDS),
                    EventClass::Raw => default_and(&MEMORY_FIELDS),
                    EventClass::Software => default_and(&[LineField::BpfOutput]),
                    _ => LineFields::of(&DEFAULT_FIELDS),
                },
                requested: LineFields::default(),
                removed: LineFields::default(),
                user_set: false,
                may_lack_events: false,
                replaced: false,
            }),
            warnings: Vec::new(),
            callchains_hidden: false,
        }
    }
}

/// The change that a word of a list makes to the selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListChange {
    /// A plain name.
    Set,
    /// `+`.
    Add,
    /// `-`.
    Remove,
}

impl FieldSelection {
    /// Applies one argument of `-F`: `comm,ip`, `+addr,-dso`, `sw:ip,sym`.
    ///
    /// # Errors
    ///
    /// An empty argument, an unknown field or class, a field that the class does not have, or words with `+` or `-` mixed with
    /// plain ones.
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
        // As in perf, the `-` in `bpf-output` counts: such a list does not replace the fields.
        if !words.contains(['+', '-']) {
            self.clear(class);
        }
        let mut previous: Option<ListChange> = None;
        for word in words.split(',').filter(|word| !word.is_empty()) {
            let (change, name) = match word.as_bytes().first() {
                Some(b'+') => (ListChange::Add, &word[1..]),
                Some(b'-') => (ListChange::Remove, &word[1..]),
                _ => (ListChange::Set, word),
            };
            let is_set = change == ListChange::Set;
            if previous.is_some_and(|previous| (previous == ListChange::Set) != is_set) {
                return Err(Error::Mixed);
            }
            previous = Some(change);
            self.change(class, name, change != ListChange::Remove)?;
        }
        Ok(())
    }

    /// Warnings about the arguments of `-F`.
    #[must_use]
    pub fn warnings(&self) -> &[FieldWarning] {
        &self.warnings
    }

    /// Hides callchains: events with callchains then do not add the fields of frames.
    pub fn hide_callchains(&mut self) {
        self.callchains_hidden = true;
    }

    /// All valid field names, comma-separated.
    #[must_use]
    pub fn valid_fields() -> String {
        let names: Vec<_> = LineFields::ALL.iter().map(LineField::name).collect();
        names.join(",")
    }

    /// The fields of events with this attr.
    #[must_use]
    pub fn fields(&self, attr: &Attr) -> LineFields {
        self.of(EventClass::of(attr.kind)).fields
    }

    /// Whether samples of single branches show the target: always, unless a `-F` listed fields without `addr`, or removed `addr`.
    #[must_use]
    pub fn shows_targets(&self, attr: &Attr) -> bool {
        let choice = self.of(EventClass::of(attr.kind));
        let by_default = !choice.replaced && !choice.removed.has(LineField::Addr);
        choice.fields.has(LineField::Addr) || by_default
    }

    /// Fits the selection to the events of a file: removes fields that the first event of each class lacks, unless a `-F` for
    /// all classes names them. If any tracepoint has callchains, adds the fields of frames to tracepoints, unless a `-F` applied
    /// to them or callchains are hidden.
    ///
    /// # Errors
    ///
    /// A field that a `-F` for all classes names, but that was not recorded; a class without events for which `-F` names no
    /// fields (`hw:`); a field that requires another field, or data that the samples lack.
    pub fn fit_to_events<'a>(
        &mut self,
        events: impl Iterator<Item = (&'a Attr, &'a str)> + Clone,
    ) -> Result<(), Error> {
        let all_branches = has_all_branches(events.clone());
        for class in EventClass::ALL {
            let first = first_of(events.clone(), class);
            let choice = self.of_mut(class);
            match first {
                // Recordings have no events of the class `Synthesized`.
                None if choice.user_set
                    && !choice.may_lack_events
                    && class != EventClass::Synthesized =>
                {
                    return Err(Error::NoSuchEvents { class });
                }
                Some((attr, name)) if !choice.fields.is_empty() => {
                    choice.fit_to(attr, name, all_branches)?;
                }
                _ => {}
            }
        }
        let tracepoints_have_callchains = events
            .filter(|(attr, _)| EventClass::of(attr.kind) == EventClass::Tracepoint)
            .any(|(attr, _)| attr.sample_type.contains(SampleType::CALLCHAIN));
        let hidden = self.callchains_hidden;
        let choice = self.of_mut(EventClass::Tracepoint);
        if tracepoints_have_callchains && !choice.user_set && !hidden {
            for field in [
                LineField::Ip,
                LineField::Sym,
                LineField::Symoff,
                LineField::Dso,
            ] {
                choice.fields.set(field, true);
            }
        }
        Ok(())
    }

    /// Like [`FieldSelection::fit_to_events`] in pipe mode, where more events may follow. As in perf, if any event has
    /// callchains, all events then show addresses and symbols, unless these fields are removed by name or callchains are hidden.
    ///
    /// # Errors
    ///
    /// A field that a `-F` for all classes names, but that was not recorded; a field that requires another field, or data that
    /// the samples lack.
    pub fn fit_to_stream<'a>(
        &mut self,
        events: impl Iterator<Item = (&'a Attr, &'a str)> + Clone,
    ) -> Result<(), Error> {
        let mut attrs = events.clone();
        let shows_callchains = !self.callchains_hidden
            && attrs.any(|(attr, _)| attr.sample_type.contains(SampleType::CALLCHAIN));
        let all_branches = has_all_branches(events.clone());
        for class in EventClass::ALL {
            let Some((attr, name)) = first_of(events.clone(), class) else {
                continue;
            };
            let choice = self.of_mut(class);
            choice.fit_to(attr, name, all_branches)?;
            for field in [LineField::Ip, LineField::Sym] {
                if shows_callchains && !choice.removed.has(field) {
                    choice.fields.set(field, true);
                }
            }
        }
        Ok(())
    }

    fn of(&self, class: EventClass) -> &ClassFields {
        &self.choices[class.index()]
    }

    fn of_mut(&mut self, class: EventClass) -> &mut ClassFields {
        &mut self.choices[class.index()]
    }

    /// Clears the fields of one class, or if `class` is `None`, of all classes.
    fn clear(&mut self, class: Option<EventClass>) {
        match class {
            Some(class) => {
                if self.of(class).user_set {
                    self.warnings.push(FieldWarning::Overrides(class));
                }
                let choice = self.of_mut(class);
                choice.fields = LineFields::default();
                choice.user_set = true;
                choice.may_lack_events = false;
                choice.replaced = true;
            }
            None => {
                if self.choices.iter().any(|choice| choice.user_set) {
                    self.warnings.push(FieldWarning::OverridesAll);
                }
                for choice in &mut self.choices {
                    choice.fields = LineFields::default();
                    choice.user_set = true;
                    choice.may_lack_events = true;
                    choice.replaced = true;
                }
            }
        }
    }

    /// Adds or removes a field: of one class, or if `class` is `None`, of all classes that can have it.
    fn change(&mut self, class: Option<EventClass>, name: &str, add: bool) -> Result<(), Error> {
        let field = LineField::from_name(name).ok_or_else(|| Error::UnknownField {
            field: name.to_owned(),
        })?;
        match class {
            Some(class) if !is_valid(field, class) => {
                return Err(Error::NotOfClass { field, class });
            }
            Some(class) => {
                let choice = self.of_mut(class);
                choice.fields.set(field, add);
                choice.removed.set(field, !add);
                choice.user_set = true;
                choice.may_lack_events = true;
            }
            None => {
                for class in EventClass::ALL {
                    if is_valid(field, class) {
                        let choice = self.of_mut(class);
                        choice.fields.set(field, add);
                        choice.requested.set(field, add);
                        choice.removed.set(field, !add);
                        choice.user_set = true;
                        choice.may_lack_events = true;
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

/// Whether any event records branches of all types.
fn has_all_branches<'a>(mut events: impl Iterator<Item = (&'a Attr, &'a str)>) -> bool {
    events.any(|(attr, _)| attr.branch_sample_type.contains(BranchSampleType::ANY))
}

/// Whether samples of this class can have the field.
fn is_valid(field: LineField, class: EventClass) -> bool {
    match field {
        LineField::Trace => class == EventClass::Tracepoint,
        LineField::BpfOutput => matches!(class, EventClass::Tracepoint | EventClass::Software),
        _ => true,
    }
}

fn default_and(more: &[LineField]) -> LineFields {
    let mut fields = LineFields::of(&DEFAULT_FIELDS);
    for field in more {
        fields.set(*field, true);
    }
    fields
}

impl ClassFields {
    /// Fits the fields to the first event of the class: removes fields that it lacks, and reports those that cannot be shown.
    /// `all_branches` is the result of [`has_all_branches`].
    fn fit_to(&mut self, attr: &Attr, event: &str, all_branches: bool) -> Result<(), Error> {
        let addresses = [SampleType::IP, SampleType::ADDR];
        let no_address = !addresses.iter().any(|bit| attr.sample_type.contains(*bit));
        let mut fit = |field, bits, name| self.fit_field(attr, event, field, bits, name);
        fit(LineField::Ip, SampleType::IP, "IP")?;
        fit(LineField::Addr, SampleType::ADDR, "ADDR")?;
        fit(LineField::DataSrc, SampleType::DATA_SRC, "DATA_SRC")?;
        let weights = SampleType::WEIGHT | SampleType::WEIGHT_STRUCT;
        fit(LineField::Weight, weights, "WEIGHT")?;
        if self.fields.has(LineField::Sym) && no_address {
            return Err(Error::NoAddressForSymbols);
        }
        if self.fields.has(LineField::Symoff) && !self.fields.has(LineField::Sym) {
            return Err(Error::OffsetWithoutSymbol);
        }
        if self.fields.has(LineField::Dsoff) {
            self.fields.set(LineField::Dso, true);
        }
        if self.fields.has(LineField::Dso) && no_address {
            return Err(Error::NoAddressForDso);
        }
        if self.fields.has_any(SOURCE_FIELDS) && !self.fields.has(LineField::Ip) {
            return Err(Error::NoAddressForLines);
        }
        if self.fields.has_any(CODE_FLOW_FIELDS) && !all_branches {
            return Err(Error::NotAllBranches);
        }
        let mut fit = |field, bits, name| self.fit_field(attr, event, field, bits, name);
        fit(LineField::Tid, SampleType::TID, "TID")?;
        fit(LineField::Pid, SampleType::TID, "TID")?;
        fit(LineField::Time, SampleType::TIME, "TIME")?;
        fit(LineField::Cpu, SampleType::CPU, "CPU")?;
        fit(LineField::Iregs, SampleType::REGS_INTR, "IREGS")?;
        fit(LineField::Uregs, SampleType::REGS_USER, "UREGS")?;
        fit(LineField::PhysAddr, SampleType::PHYS_ADDR, "PHYS_ADDR")?;
        let (data, code) = (SampleType::DATA_PAGE_SIZE, SampleType::CODE_PAGE_SIZE);
        fit(LineField::DataPageSize, data, "DATA_PAGE_SIZE")?;
        fit(LineField::CodePageSize, code, "CODE_PAGE_SIZE")?;
        let weight_struct = SampleType::WEIGHT_STRUCT;
        fit(LineField::InsLat, weight_struct, "WEIGHT_STRUCT")?;
        fit(LineField::RetireLat, weight_struct, "WEIGHT_STRUCT")?;
        fit(LineField::Cgroup, SampleType::CGROUP, "CGROUP")
    }

    /// Removes `field` if the event has none of `bits`, which have the name `attribute` in messages; an error if the field was
    /// requested.
    fn fit_field(
        &mut self,
        attr: &Attr,
        event: &str,
        field: LineField,
        bits: SampleType,
        attribute: &'static str,
    ) -> Result<(), Error> {
        if !self.fields.has(field) || !(attr.sample_type & bits).is_empty() {
            return Ok(());
        }
        if self.requested.has(field) {
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
