//! An event of a vendor table.

use super::row::{BadValue, Row};
use super::terms::terms;
use super::{TableFinding, UnitScale};

/// An event described by a vendor.
#[derive(Debug, Clone, PartialEq)]
pub struct VendorEvent {
    /// The name in lower case: `mem_load_retired.l3_hit`.
    pub name: String,
    /// Name of the PMU without the instance number (`uncore_cha`); `None` if the table names none: the processor cores.
    pub pmu: Option<String>,
    /// The terms in the syntax of `-e`: `event=0xd1,period=0xc365,umask=0x4`.
    pub terms: String,
    /// The topic, used as a heading.
    pub topic: String,
    /// Short description.
    pub brief: Option<String>,
    /// Long description.
    pub long: Option<String>,
    /// Factor and unit of counts.
    pub scale: Option<UnitScale>,
    /// Whether the event counts the whole package on any of its CPUs.
    pub per_package: bool,
    /// Whether the vendor deprecated the event.
    pub deprecated: bool,
}

/// Unit and PMU, for units whose PMU is not `uncore_UNIT` with the unit in lower case.
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
/// Prefixes of units that are names of PMUs.
const PMUS: [&str; 4] = ["cpu_", "arm", "hisi_", "uncore_"];

/// Returns the name of the PMU that counts the events of a unit.
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

    /// Returns the event of a row; `None` for rows that are not events. `topic` is the file's, `pmu` is used if the row
    /// has no unit.
    pub(super) fn of_row(
        row: &Row,
        topic: &str,
        pmu: Option<&str>,
    ) -> Result<Option<Self>, UnusableRow> {
        let Some(name) = row.text("EventName") else {
            return Ok(None);
        };
        let name = name.to_lowercase();
        // A name must be usable in `-e`.
        if name.contains([',', '/', '{', '}', ':']) || name.contains(char::is_whitespace) {
            let reason = "the name contains a comma, slash, colon, brace or blank".to_owned();
            return Err(UnusableRow { name, reason });
        }
        let terms = terms(&name, row).map_err(|BadValue { key, value }| UnusableRow {
            name: name.clone(),
            reason: format!("`{key}' is `{value}', which is not a number"),
        })?;
        let unit = row.text("Unit").filter(|unit| *unit != "cpu").map(pmu_of);
        Ok(Some(Self {
            pmu: unit.or_else(|| pmu.map(str::to_owned)),
            brief: description(row, "BriefDescription"),
            long: description(row, "PublicDescription"),
            scale: row.text("ScaleUnit").map(UnitScale::parse),
            per_package: row.is_set("PerPkg"),
            deprecated: row.is_set("Deprecated"),
            ..Self::new(name, terms, topic)
        }))
    }
}

/// An unusable row.
pub(super) struct UnusableRow {
    name: String,
    reason: String,
}

impl UnusableRow {
    pub(super) fn at(self, file: &str) -> TableFinding {
        TableFinding::new(file, Some(self.name), self.reason)
    }
}

/// Returns the description in the field `key`, with additions from other fields; as in perf, without the final full stop.
fn description(row: &Row, key: &str) -> Option<String> {
    let text = row.text(key)?;
    let text = text.trim_end().strip_suffix('.').unwrap_or(text);
    let mut description: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let errata = row.text("Errata");
    if row.text("Data_LA").is_some() {
        let stop = if errata.is_some() { "." } else { "" };
        description.push_str(&format!(" Supports address when precise{stop}"));
    }
    if let Some(errata) = errata {
        description.push_str(&format!(" Spec update: {errata}"));
    }
    let precise = row
        .text("PEBS")
        .filter(|_| !text.contains("(Precise Event)"));
    match precise {
        Some("2") => description.push_str(" (Must be precise)"),
        Some(_) => description.push_str(" (Precise event)"),
        None => {}
    }
    Some(description)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_converted_to_pmus() {
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
    fn descriptions_mention_other_fields() {
        let row = Row::of(&[
            ("EventName", "A.B"),
            ("BriefDescription", "All retired loads. "),
            ("Data_LA", "1"),
            ("Errata", "SKL091"),
            ("PEBS", "2"),
        ]);
        let event = VendorEvent::of_row(&row, "cache", None).ok().flatten();
        let brief = event.unwrap().brief;
        let expected = "All retired loads Supports address when precise. Spec update: SKL091 (Must be precise)";
        assert_eq!(brief.as_deref(), Some(expected));
    }
}
