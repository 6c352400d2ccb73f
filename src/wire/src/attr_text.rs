//! An attr as text: the keys and values that `evlist -v` and the `# event :` header lines print.

use std::fmt;

use crate::{Attr, AttrFlags, BranchSampleType, ReadFormat, SampleType};

/// The named bits of a sample type in perf's print order: ascending, but data source and weight follow the interrupt registers.
/// `TRANSACTION`, for which perf 6.1 has no name, is never printed.
const SAMPLE_TYPES: [SampleType; 24] = [
    SampleType::IP,
    SampleType::TID,
    SampleType::TIME,
    SampleType::ADDR,
    SampleType::READ,
    SampleType::CALLCHAIN,
    SampleType::ID,
    SampleType::CPU,
    SampleType::PERIOD,
    SampleType::STREAM_ID,
    SampleType::RAW,
    SampleType::BRANCH_STACK,
    SampleType::REGS_USER,
    SampleType::STACK_USER,
    SampleType::IDENTIFIER,
    SampleType::REGS_INTR,
    SampleType::DATA_SRC,
    SampleType::WEIGHT,
    SampleType::PHYS_ADDR,
    SampleType::AUX,
    SampleType::CGROUP,
    SampleType::DATA_PAGE_SIZE,
    SampleType::CODE_PAGE_SIZE,
    SampleType::WEIGHT_STRUCT,
];

/// The non-zero fields of an attr as names and values, in perf's print order, without [`Attr::unknown`].
/// Unnamed bits are printed as one hexadecimal number: those of a bit mask at the end of its value, those among the one-bit
/// fields as a field `flags`. Fields that perf 6.1 does not know come last, except one-bit fields: all of these are in the
/// kernel's order.
///
/// `size` is the size of the structure in the file or the kernel, in bytes.
#[must_use]
pub fn attr_fields(attr: &Attr, size: u32) -> Vec<(&'static str, String)> {
    let mut fields = AttrFields(Vec::new());
    fields.number("type", u64::from(attr.kind.0));
    fields.number("size", u64::from(size));
    fields.hex("config", attr.config);
    fields.number("{ sample_period, sample_freq }", attr.sample_period);
    fields.text("sample_type", sample_type_text(attr.sample_type));
    fields.text(
        "read_format",
        named_bits(
            attr.read_format.0,
            ReadFormat::NAMED.iter().map(|(bit, name)| (bit.0, *name)),
        ),
    );
    fields.flags(attr);
    fields.number(
        "{ wakeup_events, wakeup_watermark }",
        u64::from(attr.wakeup),
    );
    fields.number("bp_type", u64::from(attr.bp_type));
    fields.hex("{ bp_addr, config1 }", attr.config1);
    fields.hex("{ bp_len, config2 }", attr.config2);
    let branches = BranchSampleType::NAMED
        .iter()
        .map(|(bit, name)| (bit.0, *name));
    fields.text(
        "branch_sample_type",
        named_bits(attr.branch_sample_type.0, branches),
    );
    fields.hex("sample_regs_user", attr.sample_regs_user);
    fields.number("sample_stack_user", u64::from(attr.sample_stack_user));
    if attr.clockid != 0 {
        fields.text("clockid", attr.clockid.to_string());
    }
    fields.hex("sample_regs_intr", attr.sample_regs_intr);
    fields.number("aux_watermark", u64::from(attr.aux_watermark));
    fields.number("sample_max_stack", u64::from(attr.sample_max_stack));
    fields.number("aux_sample_size", u64::from(attr.aux_sample_size));
    fields.number("sig_data", attr.sig_data);
    fields.hex("aux_action", u64::from(attr.aux_action));
    fields.hex("config3", attr.config3);
    fields.hex("config4", attr.config4);
    fields.0
}

/// The non-zero fields of an attr as text, joined with `, `.
#[derive(Debug, Clone, Copy)]
pub struct AttrText<'a> {
    /// The attr to print.
    pub attr: &'a Attr,
    /// Size of the structure in bytes, as for [`attr_fields`].
    pub size: u32,
    /// Text between a key and its value: `": "` for `evlist -v` on the control channel of `record`, `" = "` in file headers. (The
    /// command `evlist -v` formats [`attr_fields`] itself, to add a `config` of 0.)
    pub key_value_separator: &'static str,
}

impl fmt::Display for AttrText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in attr_fields(self.attr, self.size).iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{key}{}{value}", self.key_value_separator)?;
        }
        Ok(())
    }
}

struct AttrFields(Vec<(&'static str, String)>);

impl AttrFields {
    fn text(&mut self, key: &'static str, value: String) {
        if !value.is_empty() {
            self.0.push((key, value));
        }
    }

    fn number(&mut self, key: &'static str, value: u64) {
        if value != 0 {
            self.text(key, value.to_string());
        }
    }

    fn hex(&mut self, key: &'static str, value: u64) {
        if value != 0 {
            self.text(key, format!("{value:#x}"));
        }
    }

    /// The one-bit fields in the kernel's order; the two bits of `precise_ip` form one number.
    fn flags(&mut self, attr: &Attr) {
        for (flag, name) in AttrFlags::NAMED {
            if *flag == AttrFlags::PRECISE_LOW {
                self.number(name, u64::from(attr.precise_ip()));
            } else if *flag != AttrFlags::PRECISE_HIGH {
                self.number(name, u64::from(attr.flags.contains(*flag)));
            }
        }
        self.hex("flags", attr.flags.unnamed());
    }
}

fn sample_type_text(sample_type: SampleType) -> String {
    let name = |bit: SampleType| {
        SampleType::NAMED
            .iter()
            .find(|(named, _)| *named == bit)
            .map_or("", |(_, name)| *name)
    };
    let printed = sample_type.with(SampleType::TRANSACTION, false);
    named_bits(
        printed.0,
        SAMPLE_TYPES.into_iter().map(|bit| (bit.0, name(bit))),
    )
}

fn named_bits(bits: u64, names: impl Iterator<Item = (u64, &'static str)>) -> String {
    let mut rest = bits;
    let mut set: Vec<String> = Vec::new();
    for (bit, name) in names.filter(|(bit, _)| bits & bit != 0) {
        rest &= !bit;
        set.push(name.to_owned());
    }
    if rest != 0 {
        set.push(format!("{rest:#x}"));
    }
    set.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventType;

    #[test]
    fn prints_only_fields_that_are_set() {
        let mut attr = Attr {
            kind: EventType::SOFTWARE,
            config: 3,
            sample_period: 4000,
            sample_type: SampleType::IP
                | SampleType::TRANSACTION
                | SampleType::DATA_SRC
                | SampleType::REGS_INTR,
            read_format: ReadFormat::ID | ReadFormat::LOST,
            flags: AttrFlags::DISABLED | AttrFlags::FREQ | AttrFlags::MMAP2,
            clockid: -1,
            ..Attr::default()
        };
        attr.set_precise_ip(2);
        let text = AttrText {
            attr: &attr,
            size: 128,
            key_value_separator: ": ",
        }
        .to_string();
        assert_eq!(
            text,
            "type: 1, size: 128, config: 0x3, { sample_period, sample_freq }: 4000, \
             sample_type: IP|REGS_INTR|DATA_SRC, read_format: ID|LOST, disabled: 1, freq: 1, \
             precise_ip: 2, mmap2: 1, clockid: -1"
        );
    }

    #[test]
    fn prints_the_last_config_words() {
        let attr = Attr {
            config3: 3,
            config4: 5,
            ..Attr::default()
        };
        let fields = attr_fields(&attr, 144);
        let words: Vec<_> = fields
            .iter()
            .filter(|(key, _)| matches!(*key, "config3" | "config4"))
            .map(|(key, value)| (*key, value.as_str()))
            .collect();
        assert_eq!(words, [("config3", "0x3"), ("config4", "0x5")]);
    }
}
