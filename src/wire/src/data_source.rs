//! Source of the data of a memory access: `union perf_mem_data_src` of linux/perf_event.h as text.

use std::fmt;

/// `union perf_mem_data_src` in little-endian layout. `Display` prints it as `script` does: the
/// number in hexadecimal, then its parts as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct DataSource(pub u64);

impl fmt::Display for DataSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self.0))
    }
}

/// Accessors for the parts other than the operation, each as the bits of a bit-field and as text. The text of the level also
/// includes `mem_lvl_num`, `mem_remote` and `mem_hops`; the text of the snoop result also includes `mem_snoopx`.
impl DataSource {
    /// Levels of the memory hierarchy, and whether they were hit or missed, `mem_lvl`.
    #[must_use]
    pub fn level_bits(self) -> u64 {
        LEVEL.field(self.0)
    }

    /// The level as text: `L1 hit`.
    #[must_use]
    pub fn level(self) -> String {
        let mut text = String::new();
        level(self.0, &mut text);
        text
    }

    /// Snoop result of other caches, `mem_snoop`.
    #[must_use]
    pub fn snoop_bits(self) -> u64 {
        SNOOP.field(self.0)
    }

    /// The snoop result as text: `HitM`.
    #[must_use]
    pub fn snoop(self) -> String {
        let mut text = String::new();
        snoop(self.0, &mut text);
        text
    }

    /// TLB access, `mem_dtlb`.
    #[must_use]
    pub fn tlb_bits(self) -> u64 {
        TLB.field(self.0)
    }

    /// The TLB access as text: `L1 or L2 hit`.
    #[must_use]
    pub fn tlb(self) -> String {
        let mut text = String::new();
        tlb(self.0, &mut text);
        text
    }

    /// Whether the instruction was locked, `mem_lock`.
    #[must_use]
    pub fn lock_bits(self) -> u64 {
        LOCK.field(self.0)
    }

    /// The lock as text: `Yes`, `No`, `N/A`.
    #[must_use]
    pub fn lock(self) -> &'static str {
        LOCK.first_name(self.0)
    }

    /// Why a load was blocked, `mem_blk`.
    #[must_use]
    pub fn blocked_bits(self) -> u64 {
        BLOCKED.field(self.0)
    }

    /// The reasons as text, each with a leading blank: ` Data`; ` N/A` if there are none.
    #[must_use]
    pub fn blocked(self) -> String {
        let mut text = String::new();
        blocked(self.0, &mut text);
        text
    }
}

/// Maximum length of number and text in bytes, as in perf; longer text is truncated.
const MAX_TEXT: usize = 99;

/// A bit-field: its first bit, and the names of its bits from the lowest.
struct BitField(u32, &'static [&'static str]);

const OPERATION: BitField = BitField(0, &["N/A", "LOAD", "STORE", "PFETCH", "EXEC"]);
const LEVEL: BitField = BitField(
    5,
    &[
        "N/A",
        "hit",
        "miss",
        "L1",
        "LFB/MAB",
        "L2",
        "L3",
        "Local RAM",
        "Remote RAM (1 hop)",
        "Remote RAM (2 hops)",
        "Remote Cache (1 hop)",
        "Remote Cache (2 hops)",
        "I/O",
        "Uncached",
    ],
);
const SNOOP: BitField = BitField(19, &["N/A", "None", "Hit", "Miss", "HitM"]);
const LOCK: BitField = BitField(24, &["N/A", "Yes"]);
const TLB: BitField = BitField(26, &["N/A", "hit", "miss", "L1", "L2", "Walker", "Fault"]);
const SNOOP_MORE: BitField = BitField(38, &["Fwd", "Peer"]);
const BLOCKED: BitField = BitField(40, &["N/A", "Data", "Addr"]);
/// Number of the bit in [`LEVEL`] and [`TLB`] for a hit. The outcome, hit or miss, is printed after the levels.
const HIT: usize = 1;
/// Number of the bit in [`LEVEL`] and [`TLB`] for a miss.
const MISS: usize = 2;
/// First bit of `mem_lvl_num`, which has four bits.
const LEVEL_NUMBER: u32 = 33;
/// Number of the bit `mem_remote`.
const REMOTE: u32 = 37;
/// First bit of `mem_hops`, which has three bits.
const HOPS: u32 = 43;

/// Name of a level by `mem_lvl_num`; `None` for other numbers, which are printed as cache levels (`L1`).
fn level_name(number: u64) -> Option<&'static str> {
    Some(match number {
        0x9 => "CXL",
        0xa => "I/O",
        0xb => "Any cache",
        0xc => "LFB/MAB",
        0xd => "RAM",
        0xe => "PMEM",
        0xf => "N/A",
        _ => return None,
    })
}

/// Name of a distance by `mem_hops`.
fn distance(number: u64) -> &'static str {
    match number {
        1 => "core, same node",
        2 => "node, same socket",
        3 => "socket, same board",
        4 => "board",
        // In perf, printf(3) prints this for the missing name.
        _ => "(null)",
    }
}

impl BitField {
    fn field(&self, source: u64) -> u64 {
        source >> self.0 & ((1 << self.1.len()) - 1)
    }

    fn has(&self, source: u64, bit: usize) -> bool {
        self.field(source) >> bit & 1 == 1
    }

    /// Names of the set bits.
    fn set_names(&self, source: u64) -> impl Iterator<Item = &'static str> {
        let field = self.field(source);
        let bits = self.1.iter().enumerate();
        bits.filter(move |(bit, _)| field >> bit & 1 == 1)
            .map(|(_, name)| *name)
    }

    /// Name of the lowest set bit, `No` if none is set.
    fn first_name(&self, source: u64) -> &'static str {
        self.set_names(source).next().unwrap_or("No")
    }

    /// Names of the set bits other than those of the outcome.
    fn levels(&self, source: u64) -> impl Iterator<Item = &'static str> {
        self.set_names(source)
            .filter(|name| !matches!(*name, "hit" | "miss"))
    }

    /// Appends the outcome: hit or miss.
    fn outcome(&self, source: u64, text: &mut String) {
        for (bit, name) in [(HIT, " hit"), (MISS, " miss")] {
            if self.has(source, bit) {
                text.push_str(name);
            }
        }
    }
}

/// Appends the names, joined as in `a or b`; returns `false` if there are none.
fn join(names: impl Iterator<Item = &'static str>, text: &mut String) -> bool {
    let mut some = false;
    for name in names {
        if some {
            text.push_str(" or ");
        }
        text.push_str(name);
        some = true;
    }
    some
}

/// Appends like [`join`], or `N/A` if there are no names.
fn join_or_na(names: impl Iterator<Item = &'static str>, text: &mut String) {
    if !join(names, text) {
        text.push_str("N/A");
    }
}

fn text(source: u64) -> String {
    let mut text = format!("{source:16x} |OP {}|LVL ", OPERATION.first_name(source));
    level(source, &mut text);
    text.push_str("|SNP ");
    snoop(source, &mut text);
    text.push_str("|TLB ");
    tlb(source, &mut text);
    text.push_str("|LCK ");
    text.push_str(LOCK.first_name(source));
    text.push_str("|BLK ");
    blocked(source, &mut text);
    text.truncate(MAX_TEXT);
    text
}

fn snoop(source: u64, text: &mut String) {
    join_or_na(
        SNOOP.set_names(source).chain(SNOOP_MORE.set_names(source)),
        text,
    );
}

fn tlb(source: u64, text: &mut String) {
    join_or_na(TLB.levels(source), text);
    TLB.outcome(source, text);
}

fn blocked(source: u64, text: &mut String) {
    let before = text.len();
    // Bit 0 is `N/A`: if it is set, the other bits have no meaning.
    if !BLOCKED.has(source, 0) {
        for name in BLOCKED.set_names(source) {
            text.push(' ');
            text.push_str(name);
        }
    }
    if text.len() == before {
        text.push_str(" N/A");
    }
}

/// Appends the level: `mem_remote`, then the distance in `mem_hops` or, if `mem_hops` is 0, the levels in `mem_lvl`, then the
/// level in `mem_lvl_num`; `N/A` if all of them are missing. The outcome in `mem_lvl`, hit or miss, is last.
fn level(source: u64, text: &mut String) {
    let before = text.len();
    if source >> REMOTE & 1 == 1 {
        text.push_str("Remote ");
    }
    let (number, hops) = (source >> LEVEL_NUMBER & 0xf, source >> HOPS & 7);
    let has_levels = if hops == 0 {
        join(LEVEL.levels(source), text)
    } else {
        text.push_str(distance(hops));
        text.push(' ');
        false
    };
    if number != 0 {
        if has_levels {
            text.push_str(" or ");
        }
        match level_name(number) {
            Some(name) => text.push_str(name),
            None => text.push_str(&format!("L{number}")),
        }
    }
    if text.len() == before {
        text.push_str("N/A");
    }
    LEVEL.outcome(source, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_printed_as_text() {
        for (source, expected) in [
            (
                0x6810_0142,
                "|OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A",
            ),
            (
                1 << 40 | 1 << 24 | 1 << 20 | 1 << 8 | 1 << 7 | 8,
                "|OP PFETCH|LVL L1 miss|SNP None|TLB N/A|LCK N/A|BLK  N/A",
            ),
            (
                2 << 43 | 1 << 37 | 0xd << 33,
                "|OP No|LVL Remote node, same socket RAM|SNP N/A|TLB N/A|LCK No|BLK  N/A",
            ),
            (
                3 << 41,
                "|OP No|LVL N/A|SNP N/A|TLB N/A|LCK No|BLK  Data Addr",
            ),
        ] {
            assert!(
                text(source).contains(expected),
                "{source:x}: {}",
                text(source)
            );
        }
    }

    #[test]
    fn every_number_has_text_of_bounded_length() {
        let mut source: u64 = 1;
        for _ in 0..10_000 {
            source = source
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let text = text(source);
            assert!(
                text.is_ascii() && (30..=MAX_TEXT).contains(&text.len()),
                "{text}"
            );
            assert!(text.starts_with(&format!("{source:16x} |OP ")), "{text}");
        }
    }
}
