//! Decoding of a raw code (`r1d2`): its terms, and the events with this code.

use crate::Catalogue;
use crate::pmu_event::PmuEvent;
use crate::pmu_format::FieldBits;

/// A raw code decoded for the core PMU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedEvent {
    /// The PMU.
    pub pmu: String,
    /// The terms, such as `event=0xd2,umask=0x1`; `config=` has the bits that no other term covers.
    pub terms: String,
    /// The events with exactly this code.
    pub names: Vec<String>,
}

impl DecodedEvent {
    /// Decodes `config` for the core PMU whose name sorts first; `None` without a core PMU.
    #[must_use]
    pub fn new(config: u64, catalogue: &Catalogue<'_>) -> Option<Self> {
        let pmus = catalogue.pmus.iter();
        let cores = pmus.filter(|(name, _)| catalogue.machine.is_core(name));
        // `kind` is the PMU's `perf_event_attr::type`.
        let (pmu, kind) = cores.min_by_key(|(name, _)| name)?;
        Some(Self {
            pmu: pmu.clone(),
            terms: terms(config, pmu, catalogue),
            names: names(config, pmu, *kind, catalogue),
        })
    }
}

fn terms(config: u64, pmu: &str, catalogue: &Catalogue<'_>) -> String {
    // The names of the PMU's terms; `format` returns the bits of a term.
    let formats = catalogue.machine.formats(pmu).into_iter();
    let mut fields: Vec<(FieldBits, String)> = formats
        .filter_map(|term| {
            Some((
                FieldBits::parse(&catalogue.machine.format(pmu, &term)?)?,
                term,
            ))
        })
        .filter(|(bits, _)| bits.is_of_config())
        .collect();
    fields.sort_by_key(|(bits, _)| bits.lowest());
    let mut uncovered = config;
    let mut terms = Vec::new();
    for (bits, term) in fields {
        let value = bits.get(uncovered);
        if value != 0 {
            uncovered &= !bits.mask();
            terms.push(format!("{term}={value:#x}"));
        }
    }
    if uncovered != 0 || terms.is_empty() {
        terms.push(format!("config={uncovered:#x}"));
    }
    terms.join(",")
}

/// Returns the names of the PMU's events in sysfs and in vendor tables whose attr has this `config`, and 0 in all other
/// words.
fn names(config: u64, pmu: &str, kind: u32, catalogue: &Catalogue<'_>) -> Vec<String> {
    let mut names = catalogue.event_names(pmu);
    names.retain(|name| {
        let no_terms = [];
        let event = PmuEvent::named(pmu, kind, name, &no_terms, catalogue);
        event.is_ok_and(|event| {
            let attr = &event.attr;
            let others = [attr.config1, attr.config2, attr.config3, attr.config4];
            attr.config == config && others == [0; 4]
        })
    });
    names
}
