//! Raw codes read backwards: the terms that a number is made of, and the names that stand for it.

use crate::Catalogue;
use crate::pmu_event::PmuEvent;
use crate::pmu_format::Bits;

/// What a raw code means to the PMU of the processor's cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The PMU.
    pub pmu: String,
    /// `event=0xd2,umask=0x1`, and `config=` for bits that no term has.
    pub terms: String,
    /// The events that have this code and nothing else.
    pub names: Vec<String>,
}

impl Decoded {
    /// Decodes `config`; `None` where no PMU of cores is there.
    #[must_use]
    pub fn new(config: u64, catalogue: &Catalogue<'_>) -> Option<Self> {
        let pmus = catalogue.pmus.iter();
        let cores = pmus.filter(|(name, _)| catalogue.machine.is_core(name));
        let pmu = cores.min_by_key(|(name, _)| name)?;
        Some(Self {
            pmu: pmu.0.clone(),
            terms: terms(config, &pmu.0, catalogue),
            names: names(config, pmu, catalogue),
        })
    }
}

/// The values of all terms that are not 0, in the order of their lowest bits.
fn terms(config: u64, pmu: &str, catalogue: &Catalogue<'_>) -> String {
    let formats = catalogue.machine.formats(pmu).into_iter();
    let mut bits: Vec<(Bits, String)> = formats
        .filter_map(|term| Some((Bits::parse(&catalogue.machine.format(pmu, &term)?)?, term)))
        .filter(|(bits, _)| bits.is_of_config())
        .collect();
    bits.sort_by_key(|(bits, _)| bits.lowest());
    let mut rest = config;
    let mut terms = Vec::new();
    for (bits, term) in bits {
        let value = bits.get(rest);
        if value != 0 {
            rest &= !bits.mask();
            terms.push(format!("{term}={value:#x}"));
        }
    }
    if rest != 0 || terms.is_empty() {
        terms.push(format!("config={rest:#x}"));
    }
    terms.join(",")
}

fn names(config: u64, pmu: &(String, u32), catalogue: &Catalogue<'_>) -> Vec<String> {
    let described = catalogue.machine.vendor().events().iter();
    let described = described.filter(|event| catalogue.is_of(event, &pmu.0));
    let mut names = catalogue.machine.events(&pmu.0);
    names.extend(described.map(|event| event.name.clone()));
    names.retain(|name| {
        let event = PmuEvent::named(pmu, name, &[], catalogue);
        event.is_ok_and(|event| {
            event.attr.config == config && (event.attr.config1, event.attr.config2) == (0, 0)
        })
    });
    names
}
