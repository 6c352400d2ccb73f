//! `name{a,b}:modifiers`: groups of events that are scheduled together.

use crate::hybrid::hybrid_core_pmus;
use crate::modifier::Modifiers;
use crate::parse::{ListWord, split};
use crate::{Catalogue, EventSpec, SelectorFault};

/// Position of an event in a group; members follow their leader.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum GroupPosition {
    /// Not in a group.
    #[default]
    None,
    /// The leader: the members are only counted while the leader is.
    Leader {
        /// The name before the brace, often empty.
        name: String,
    },
    /// Member of the preceding leader's group.
    Member,
}

/// The byte offsets of the braces in a word.
struct GroupBraces {
    open: usize,
    close: usize,
}

/// Returns the events of a word with braces, or its faults: a fault of the braces or of the group's modifiers, or the faults of
/// all invalid events in the braces.
pub(crate) fn group(
    word: &ListWord<'_>,
    catalogue: &Catalogue<'_>,
) -> Result<Vec<EventSpec>, Vec<SelectorFault>> {
    let GroupBraces { open, close } = braces(word).map_err(|fault| vec![fault])?;
    let part = |from: usize, to: usize| word.text.get(from..to).unwrap_or_default();
    let modifiers = match part(close + 1, word.text.len()).strip_prefix(':') {
        Some(letters) => Modifiers::parse(letters)
            .map_err(|bad| vec![word.fault(close + "}:".len() + bad.offset, bad.reason)])?,
        None => Modifiers::default(),
    };
    let mut events: Vec<EventSpec> = Vec::new();
    let mut faults = Vec::new();
    let start = word.position.start + open + 1;
    for inner in split(part(open + 1, close)) {
        let member = ListWord {
            text: part(open + 1 + inner.start, open + 1 + inner.end),
            position: start + inner.start..start + inner.end,
        };
        match member.events(catalogue) {
            Ok(named) => events.extend(named),
            Err(fault) => faults.push(fault),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut groups = by_cores(events, catalogue);
    for event_group in &mut groups {
        for (index, event) in event_group.iter_mut().enumerate() {
            // Some modifiers (`D`, `e`) are only set for the leader.
            let is_leader = index == 0;
            modifiers.add_to(event, is_leader);
            event.group = match index {
                0 => GroupPosition::Leader {
                    name: part(0, open).to_owned(),
                },
                _ => GroupPosition::Member,
            };
        }
    }
    Ok(groups.concat())
}

/// Splits a group with events of several core PMUs into one group per PMU, because the kernel rejects a group of several: first
/// the groups of the core PMUs, then those of other PMUs. Each group of a core PMU also contains the events that name no PMU.
fn by_cores(events: Vec<EventSpec>, catalogue: &Catalogue<'_>) -> Vec<Vec<EventSpec>> {
    let mut cores = hybrid_core_pmus(catalogue);
    cores.retain(|(core, _)| events.iter().any(|event| event.pmu.as_ref() == Some(core)));
    if cores.len() < 2 {
        return vec![events];
    }
    let mut others: Vec<&String> = Vec::new();
    for pmu in events.iter().filter_map(|event| event.pmu.as_ref()) {
        if !others.contains(&pmu) && !cores.iter().any(|(core, _)| core == pmu) {
            others.push(pmu);
        }
    }
    let events_on = |wanted: &String, with_no_pmu: bool| -> Vec<EventSpec> {
        let is_on =
            |event: &&EventSpec| event.pmu.as_ref().map_or(with_no_pmu, |pmu| pmu == wanted);
        events.iter().filter(is_on).cloned().collect()
    };
    let of_cores = cores.into_iter().map(|(core, _)| {
        let with_no_pmu = true;
        events_on(core, with_no_pmu)
    });
    let of_others = others.into_iter().map(|pmu| {
        let with_no_pmu = false;
        events_on(pmu, with_no_pmu)
    });
    of_cores.chain(of_others).collect()
}

/// Locates the braces.
fn braces(word: &ListWord<'_>) -> Result<GroupBraces, SelectorFault> {
    let text = word.text;
    let count = |brace| text.matches(brace).count();
    if count('{') != count('}') {
        let first = text.find(['{', '}']).unwrap_or_default();
        return Err(word.fault(first, "unbalanced brace".to_owned()));
    }
    let open = text.find('{').unwrap_or_default();
    let (name, rest) = text.split_at_checked(open).unwrap_or((text, ""));
    // `EVENT:{u,k}`: braces around modifiers instead of events.
    if let Some(name) = name.strip_suffix(':') {
        let letters = rest.trim_matches(['{', '}']);
        let each: Vec<String> = letters
            .split(',')
            .map(|letter| format!("{name}:{letter}"))
            .collect();
        let reason = format!("modifiers take no braces, write `{}'", each.join(","));
        return Err(word.fault(open, reason));
    }
    let wrong = |offset, reason: &str| Err(word.fault(offset, reason.to_owned()));
    if count('{') > 1 {
        return wrong(open, "groups hold events, no other groups");
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    match text.find('}') {
        Some(close) if close < open => wrong(close, "unbalanced brace"),
        _ if !name.chars().all(is_name) => wrong(
            0,
            "a group's name must consist of letters, digits, `_' and `-'",
        ),
        Some(close) => match text.get(close + 1..).unwrap_or_default() {
            "" => Ok(GroupBraces { open, close }),
            after if after.starts_with(':') => Ok(GroupBraces { open, close }),
            _ => wrong(close + 1, "expected a colon with modifiers, or a comma"),
        },
        // Not reached: the word has as many closing as opening braces, and at least one.
        None => wrong(open, "unbalanced brace"),
    }
}
