//! Branch filters: the names in `-j` and in the term `branch_type`.

use rperf_wire::BranchSampleType;

const FILTERS: [(&str, BranchSampleType); 17] = [
    ("u", BranchSampleType::USER),
    ("k", BranchSampleType::KERNEL),
    ("hv", BranchSampleType::HV),
    ("any", BranchSampleType::ANY),
    ("any_call", BranchSampleType::ANY_CALL),
    ("any_ret", BranchSampleType::ANY_RETURN),
    ("ind_call", BranchSampleType::IND_CALL),
    ("abort_tx", BranchSampleType::ABORT_TX),
    ("in_tx", BranchSampleType::IN_TX),
    ("no_tx", BranchSampleType::NO_TX),
    ("cond", BranchSampleType::COND),
    ("stack", BranchSampleType::CALL_STACK),
    ("ind_jmp", BranchSampleType::IND_JUMP),
    ("call", BranchSampleType::CALL),
    ("save_type", BranchSampleType::TYPE_SAVE),
    ("hw_index", BranchSampleType::HW_INDEX),
    ("priv", BranchSampleType::PRIV_SAVE),
];
/// The privilege levels. They don't select a branch type. Neither do the last three of [`FILTERS`], but as in perf,
/// [`branch_filter`] treats these three as types.
const LEVELS: u64 = BranchSampleType::USER.0 | BranchSampleType::KERNEL.0 | BranchSampleType::HV.0;

/// The error of [`branch_filter`]: a name that is not in [`branch_names`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown branch filter {0}")]
pub struct UnknownBranchFilter(pub String);

/// Parses names separated by commas. If all are privilege levels, adds `any`: branches of any type.
///
/// # Errors
/// [`UnknownBranchFilter`] for the first unknown name.
pub fn branch_filter(names: &str) -> Result<BranchSampleType, UnknownBranchFilter> {
    let mut mask = BranchSampleType::default();
    for name in names.split(',') {
        let known = FILTERS.iter().find(|(known, _)| *known == name);
        let (_, bit) = known.ok_or_else(|| UnknownBranchFilter(name.to_owned()))?;
        mask |= *bit;
    }
    Ok(match mask.0 & !LEVELS {
        0 => mask | BranchSampleType::ANY,
        _ => mask,
    })
}

/// All names accepted by [`branch_filter`].
pub fn branch_names() -> impl Iterator<Item = &'static str> {
    FILTERS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privilege_levels_without_a_type_select_any_branch_and_unknown_names_are_refused() {
        let any = BranchSampleType::ANY;
        assert_eq!(branch_filter("u"), Ok(any | BranchSampleType::USER));
        let calls = BranchSampleType::ANY_CALL | BranchSampleType::USER;
        assert_eq!(branch_filter("any_call,u"), Ok(calls));
        assert_eq!(
            branch_filter("any,no"),
            Err(UnknownBranchFilter("no".to_owned()))
        );
    }
}
