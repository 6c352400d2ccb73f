//! One event of a table.

use super::row::{BadValue, Row};
use super::terms::terms;
use super::{Finding, Scale};

/// An event as a vendor describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct VendorEvent {
    /// In small letters: `mem_load_retired.l3_hit`.
    pub name: String,
    /// Whose it is: the name of a PMU without the number of the unit (`uncore_cha`); `None` for the processor's cores.
    pub pmu: Option<String>,
    /// What `-e` would take between the slashes: `event=0xd1,period=0xc365,umask=0x4`.
    pub terms: String,
    /// The heading that it is listed under.
    pub topic: String,
    /// In one sentence.
    pub brief: Option<String>,
    /// At length.
    pub long: Option<String>,
    /// What its count is multiplied with, and the unit of that.
    pub scale: Option<Scale>,
    /// Whether it counts the same whichever CPU of a package is asked.
    pub per_package: bool,
    /// Whether its vendor advises against it.
    pub deprecated: bool,
}

/// Units whose PMU has another name than `uncore_` and the unit in small letters.
const UNITS: [(&str, &str); 11] = [
    ("CBO", "uncore_cbox"),
    ("QPI LL", "uncore_qpi"),
    ("SBO", "uncore_sbox"),
    ("iMPH-U", "uncore_arb"),
    ("UPI LL", "uncore_upi"),
    ("CPU-M-CF", "cpum_cf"),
    ("CPU-M-SF", "cpum_sf"),
    ("L3PMC", "amd_l3"),
    ("DFPMC", "amd_df"),
    ("UMCPMC", "amd_umc"),
    ("PAI-CRYPTO", "pai_crypto"),
];
/// Units that are called as their PMUs are.
const PMUS: [&str; 4] = ["cpu_", "arm", "hisi_", "uncore_"];

/// The PMU of a unit.
pub(super) fn pmu_of(unit: &str) -> String {
    if let Some((_, pmu)) = UNITS.iter().find(|(known, _)| *known == unit) {
        return (*pmu).to_owned();
    }
    match PMUS.iter().any(|prefix| unit.starts_with(prefix)) {
        true => unit.to_owned(),
        false => format!("uncore_{}", unit.to_lowercase()),
    }
}

impl VendorEvent {
    pub(super) fn new(name: String, terms: String, topic: &str) -> Self {
        Self {
            name,
            pmu: None,
            terms,
            topic: topic.to_owned(),
            brief: None,
            long: None,
            scale: None,
            per_package: false,
            deprecated: false,
        }
    }

    /// The event of a row, of whose file these are the name, the topic and the PMU of rows that name none; `None` for rows
    /// that are no events.
    pub(super) fn of_row(row: &Row, topic: &str, pmu: Option<&str>) -> Result<Option<Self>, Wrong> {
        let Some(name) = row.text("EventName") else {
            return Ok(None);
        };
        let name = name.to_lowercase();
        // A name is a word of `-e`.
        if name.contains([',', '/', '{', '}', ':']) || name.contains(char::is_whitespace) {
            let reason = "a name with commas, slashes, colons, braces or blanks".to_owned();
            return Err(Wrong { name, reason });
        }
        let terms = terms(&name, row).map_err(|BadValue { key, value }| Wrong {
            name: name.clone(),
            reason: format!("`{key}' is `{value}', which is no number"),
        })?;
        let unit = row.text("Unit").filter(|unit| *unit != "cpu").map(pmu_of);
        Ok(Some(Self {
            pmu: unit.or_else(|| pmu.map(str::to_owned)),
            brief: told(row, "BriefDescription"),
            long: told(row, "PublicDescription"),
            scale: row.text("ScaleUnit").map(Scale::parse),
            per_package: row.is_set("PerPkg"),
            deprecated: row.is_set("Deprecated"),
            ..Self::new(name, terms, topic)
        }))
    }
}

/// A row that cannot be used.
pub(super) struct Wrong {
    name: String,
    reason: String,
}

impl Wrong {
    pub(super) fn at(self, file: &str) -> Finding {
        Finding::new(file, Some(self.name), self.reason)
    }
}

/// A description with what other fields say in it; the full stop at its end is left out, as in perf.
fn told(row: &Row, key: &str) -> Option<String> {
    let text = row.text(key)?;
    let text = text.trim_end().strip_suffix('.').unwrap_or(text);
    let mut told: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let errata = row.text("Errata");
    if row.text("Data_LA").is_some() {
        let stop = if errata.is_some() { "." } else { "" };
        told.push_str(&format!(" Supports address when precise{stop}"));
    }
    if let Some(errata) = errata {
        told.push_str(&format!(" Spec update: {errata}"));
    }
    let precise = row
        .text("PEBS")
        .filter(|_| !text.contains("(Precise Event)"));
    match precise {
        Some("2") => told.push_str(" (Must be precise)"),
        Some(_) => told.push_str(" (Precise event)"),
        None => {}
    }
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_pmus() {
        for (unit, pmu) in [
            ("CBO", "uncore_cbox"),
            ("CHA", "uncore_cha"),
            ("iMC", "uncore_imc"),
            ("cpu_atom", "cpu_atom"),
            ("L3PMC", "amd_l3"),
            ("hisi_sccl,ddrc", "hisi_sccl,ddrc"),
        ] {
            assert_eq!(pmu_of(unit), pmu);
        }
    }

    #[test]
    fn descriptions_say_what_the_fields_do() {
        let row = Row::of(&[
            ("EventName", "A.B"),
            ("BriefDescription", "All retired loads. "),
            ("Data_LA", "1"),
            ("Errata", "SKL091"),
            ("PEBS", "2"),
        ]);
        let event = VendorEvent::of_row(&row, "cache", None).ok().flatten();
        let brief = event.unwrap().brief;
        let told = "All retired loads Supports address when precise. Spec update: SKL091 (Must be precise)";
        assert_eq!(brief.as_deref(), Some(told));
    }
}
