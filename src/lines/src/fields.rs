//! The fields of a line of `script`, and sets of them.

/// One field of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineField {
    /// The thread's name.
    Comm,
    /// Thread id.
    Tid,
    /// Process id.
    Pid,
    /// Timestamp.
    Time,
    /// CPU number.
    Cpu,
    /// Event name.
    Event,
    /// A tracepoint's fields, formatted.
    Trace,
    /// Instruction pointer, or the callchain.
    Ip,
    /// Symbol names of addresses.
    Sym,
    /// Objects of addresses.
    Dso,
    /// Data address.
    Addr,
    /// Offsets after symbol names.
    Symoff,
    /// Events since the previous sample.
    Period,
    /// Registers at the sample.
    Iregs,
    /// Registers of user space at the sample.
    Uregs,
    /// Branches, by address.
    Brstack,
    /// Branches, by symbol and offset.
    Brstacksym,
    /// Branch type; only for samples decoded from a hardware trace.
    Flags,
    /// Data source of the memory access: its raw value, then operation, level, snoop, TLB, lock and block.
    DataSrc,
    /// Weight of the sample.
    Weight,
    /// Output of a BPF program (`bpf-output` events).
    BpfOutput,
    /// Executed code between branches.
    Brstackinsn,
    /// Executed code between branches, with the lengths of instructions.
    Brstackinsnlen,
    /// Executed code between branches, disassembled.
    Brstackdisasm,
    /// Branches, by offset in the object.
    Brstackoff,
    /// Indentation by call depth; accepted, but never printed.
    Callindent,
    /// The bytes of the instruction.
    Insn,
    /// The length of the instruction.
    Insnlen,
    /// Disassembly of the instruction.
    Disasm,
    /// Data synthesized by decoding a hardware trace; accepted, but never printed.
    Synth,
    /// Physical data address.
    PhysAddr,
    /// Metrics of a group's counters.
    Metric,
    /// CPU mode and flags of the record, as letters.
    Misc,
    /// Text of the source line.
    Srccode,
    /// Instructions per cycle; accepted, but never printed.
    Ipc,
    /// Time of day.
    Tod,
    /// Size of the page of the data address.
    DataPageSize,
    /// Size of the page of the instruction pointer.
    CodePageSize,
    /// Latency of the instruction: the second part of the weight.
    InsLat,
    /// Process id of the guest's virtual machine; accepted, but never printed, since samples of guests are skipped.
    MachinePid,
    /// Virtual CPU of the guest; accepted, but never printed, since samples of guests are skipped.
    Vcpu,
    /// Source locations.
    Srcline,
    /// Offsets after the names of objects.
    Dsoff,
    /// The cgroup's path.
    Cgroup,
    /// Retirement latency: the third part of the weight, on x86 the cycles since the previous instruction retired.
    RetireLat,
}

impl LineField {
    /// The name of the field in `-F`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Comm => "comm",
            Self::Tid => "tid",
            Self::Pid => "pid",
            Self::Time => "time",
            Self::Cpu => "cpu",
            Self::Event => "event",
            Self::Trace => "trace",
            Self::Ip => "ip",
            Self::Sym => "sym",
            Self::Dso => "dso",
            Self::Addr => "addr",
            Self::Symoff => "symoff",
            Self::Period => "period",
            Self::Iregs => "iregs",
            Self::Uregs => "uregs",
            Self::Brstack => "brstack",
            Self::Brstacksym => "brstacksym",
            Self::Flags => "flags",
            Self::DataSrc => "data_src",
            Self::Weight => "weight",
            Self::BpfOutput => "bpf-output",
            Self::Brstackinsn => "brstackinsn",
            Self::Brstackinsnlen => "brstackinsnlen",
            Self::Brstackdisasm => "brstackdisasm",
            Self::Brstackoff => "brstackoff",
            Self::Callindent => "callindent",
            Self::Insn => "insn",
            Self::Insnlen => "insnlen",
            Self::Disasm => "disasm",
            Self::Synth => "synth",
            Self::PhysAddr => "phys_addr",
            Self::Metric => "metric",
            Self::Misc => "misc",
            Self::Srccode => "srccode",
            Self::Ipc => "ipc",
            Self::Tod => "tod",
            Self::DataPageSize => "data_page_size",
            Self::CodePageSize => "code_page_size",
            Self::InsLat => "ins_lat",
            Self::MachinePid => "machine_pid",
            Self::Vcpu => "vcpu",
            Self::Srcline => "srcline",
            Self::Dsoff => "dsoff",
            Self::Cgroup => "cgroup",
            Self::RetireLat => "retire_lat",
        }
    }

    /// The field called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        LineFields::ALL
            .into_iter()
            .find(|field| field.name() == name)
    }
}

/// A set of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineFields(u64);

impl LineFields {
    /// Every field, in the order in which messages list them.
    pub const ALL: [LineField; 45] = [
        LineField::Comm,
        LineField::Tid,
        LineField::Pid,
        LineField::Time,
        LineField::Cpu,
        LineField::Event,
        LineField::Trace,
        LineField::Ip,
        LineField::Sym,
        LineField::Dso,
        LineField::Addr,
        LineField::Symoff,
        LineField::Period,
        LineField::Iregs,
        LineField::Uregs,
        LineField::Brstack,
        LineField::Brstacksym,
        LineField::Flags,
        LineField::DataSrc,
        LineField::Weight,
        LineField::BpfOutput,
        LineField::Brstackinsn,
        LineField::Brstackinsnlen,
        LineField::Brstackoff,
        LineField::Callindent,
        LineField::Insn,
        LineField::Insnlen,
        LineField::Synth,
        LineField::PhysAddr,
        LineField::Metric,
        LineField::Misc,
        LineField::Srccode,
        LineField::Ipc,
        LineField::Tod,
        LineField::DataPageSize,
        LineField::CodePageSize,
        LineField::InsLat,
        LineField::MachinePid,
        LineField::Vcpu,
        LineField::Srcline,
        LineField::Dsoff,
        LineField::Cgroup,
        LineField::RetireLat,
        LineField::Disasm,
        LineField::Brstackdisasm,
    ];

    /// The set of `fields`.
    #[must_use]
    pub const fn of(fields: &[LineField]) -> Self {
        let mut set = Self(0);
        let mut index = 0;
        while index < fields.len() {
            set.0 |= 1 << fields[index] as u16;
            index += 1;
        }
        set
    }

    /// Whether `field` is in the set.
    #[inline]
    #[must_use]
    pub const fn has(self, field: LineField) -> bool {
        self.0 & 1 << field as u16 != 0
    }

    /// Whether any field of `others` is in the set.
    #[inline]
    #[must_use]
    pub const fn has_any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// Adds or removes `field`.
    pub const fn set(&mut self, field: LineField, present: bool) {
        if present {
            self.0 |= 1 << field as u16;
        } else {
            self.0 &= !(1 << field as u16);
        }
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_bit_and_its_name() {
        let mut set = LineFields::default();
        for field in LineFields::ALL {
            assert!(!set.has(field), "{field:?}");
            set.set(field, true);
            assert!(set.has(field), "{field:?}");
            assert_eq!(LineField::from_name(field.name()), Some(field));
        }
        assert_eq!(set, LineFields::of(&LineFields::ALL));
        set.set(LineField::Dso, false);
        assert!(!set.has(LineField::Dso) && set.has(LineField::Addr));
        // Both fields are in `set`.
        let other = LineFields::of(&[LineField::Addr, LineField::Comm]);
        assert!(set.has_any(other) && !other.has_any(LineFields::of(&[LineField::Dso])));
        assert_eq!(LineField::from_name("nosuch"), None);
    }
}
