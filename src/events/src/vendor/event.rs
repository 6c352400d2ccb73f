//! An event of a vendor table.

use super::row::Row;
use super::terms::terms;
use super::{TableFinding, UnitScale};

/// An event described by a vendor.
#[derive(Debug, Clone, PartialEq)]
pub struct VendorEvent {
    /// The name in lower case: `mem_load_retired.l3_hit`.
    pub name: String,
    /// Name of the PMU without the instance number (`uncore_cha`). If the row names no unit, or the unit `cpu`, the event is one
    /// of the processor cores: `None`, or on hybrid processors `cpu_core` or `cpu_atom`.
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

/// Units and their PMUs, where the name of the PMU is neither `uncore_UNIT` nor the unit itself ([`PMU_PREFIXES`]).
const UNITS: [(&str, &str); 12] = [
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
    ("PAI-EXT", "pai_ext"),
];
/// A unit with one of these prefixes is already the name of a PMU.
const PMU_PREFIXES: [&str; 6] = ["cpu_", "arm", "hisi_", "ali_drw", "imx", "uncore_"];

/// Returns the name of the PMU that counts the events of a unit, without the instance number.
pub(super) fn pmu_of(unit: &str) -> String {
    if let Some((_, pmu)) = UNITS.iter().find(|(known, _)| *known == unit) {
        return (*pmu).to_owned();
    }
    match PMU_PREFIXES.iter().any(|prefix| unit.starts_with(prefix)) {
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

    /// Returns the event of a row; `None` for rows that are not events. `topic` is the topic of the file. `pmu` is that of the
    /// processor cores on hybrid processors, for rows without a unit or with the unit `cpu`.
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
        let terms = terms(&name, row).map_err(|bad| UnusableRow {
            name: name.clone(),
            reason: bad.to_string(),
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

/// A row whose event cannot be used, and the reason.
pub(super) struct UnusableRow {
    /// The name of the event, in lower case.
    name: String,
    reason: String,
}

impl UnusableRow {
    /// Returns the finding about this row of `file`.
    pub(super) fn at(self, file: &str) -> TableFinding {
        TableFinding::new(file, Some(self.name), self.reason)
    }
}

/// Returns the text in the field `key` in one line; as in perf, without the final full stop.
pub(super) fn description_text(row: &Row, key: &str) -> Option<String> {
    // `text` is trimmed, and `None` for `null`.
    let text = row.text(key)?;
    let text = text.strip_suffix('.').unwrap_or(text);
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns the description in the field `key`, with the additions from other fields that perf makes.
fn description(row: &Row, key: &str) -> Option<String> {
    let mut description = description_text(row, key)?;
    // The vendor's text has a capital E, the text added below a small one.
    let says_precise = description.contains("(Precise Event)");
    let errata = row.text("Errata");
    // In Intel's own tables, events without these properties have `Data_LA` and `PEBS` with the value 0.
    if row.is_set("Data_LA") {
        let stop = if errata.is_some() { "." } else { "" };
        description.push_str(&format!(" Supports address when precise{stop}"));
    }
    if let Some(errata) = errata {
        description.push_str(&format!(" Spec update: {errata}"));
    }
    let precise = row
        .text("PEBS")
        .filter(|value| *value != "0" && !says_precise);
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
            ("imx9_ddr", "imx9_ddr"),
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
        let brief = |row: &Row| {
            let event = VendorEvent::of_row(row, "cache", None).ok().flatten();
            event.unwrap().brief
        };
        let expected = "All retired loads Supports address when precise. Spec update: SKL091 (Must be precise)";
        assert_eq!(brief(&row).as_deref(), Some(expected));
        // These values replace those of `row`.
        let unset = Row::of(&[("Data_LA", "0"), ("Errata", "null"), ("PEBS", "0")]);
        assert_eq!(
            brief(&unset.over(&row)).as_deref(),
            Some("All retired loads")
        );
    }
}
