//! The fields of a line, and sets of them.

/// One field of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
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
    /// Offsets behind symbol names.
    Symoff,
    /// Events since the sample before.
    Period,
    /// Registers at the interrupt.
    Iregs,
    /// Registers of user space.
    Uregs,
    /// Branches, by address.
    Brstack,
    /// Branches, by symbol.
    Brstacksym,
    /// Kind of branch; known only of samples decoded from a hardware trace.
    Flags,
    /// Where data came from.
    DataSrc,
    /// What an access cost.
    Weight,
    /// What a BPF program put out.
    BpfOutput,
    /// The code that ran between branches.
    Brstackinsn,
    /// The same with the lengths of instructions.
    Brstackinsnlen,
    /// The code that ran between branches, as text.
    Brstackdisasm,
    /// Branches, by offset in the object.
    Brstackoff,
    /// Indentation by calls; only of samples decoded from a hardware trace.
    Callindent,
    /// The bytes of the instruction.
    Insn,
    /// The length of the instruction.
    Insnlen,
    /// The text of the instruction.
    Disasm,
    /// What decoding a hardware trace found out.
    Synth,
    /// Physical data address.
    PhysAddr,
    /// What the counters of a group say together.
    Metric,
    /// The record's mode bits, by letter.
    Misc,
    /// The text of the source's line.
    Srccode,
    /// Instructions per cycle; only of samples decoded from a hardware trace.
    Ipc,
    /// Time of day.
    Tod,
    /// Size of the page of the data address.
    DataPageSize,
    /// Size of the page of the instruction pointer.
    CodePageSize,
    /// Latency of the instruction.
    InsLat,
    /// Process of the guest; samples of guests are left out.
    MachinePid,
    /// CPU of the guest; samples of guests are left out.
    Vcpu,
    /// Places in the source.
    Srcline,
    /// Offsets behind the names of objects.
    Dsoff,
    /// The cgroup.
    Cgroup,
    /// Latency of the instruction's retirement.
    RetireLat,
}

impl Field {
    /// The word for it in `-F`.
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
        Fields::ALL.into_iter().find(|field| field.name() == name)
    }
}

/// A set of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fields(u64);

impl Fields {
    /// Every field, in the order in which help lists them.
    pub const ALL: [Field; 45] = [
        Field::Comm,
        Field::Tid,
        Field::Pid,
        Field::Time,
        Field::Cpu,
        Field::Event,
        Field::Trace,
        Field::Ip,
        Field::Sym,
        Field::Dso,
        Field::Addr,
        Field::Symoff,
        Field::Period,
        Field::Iregs,
        Field::Uregs,
        Field::Brstack,
        Field::Brstacksym,
        Field::Flags,
        Field::DataSrc,
        Field::Weight,
        Field::BpfOutput,
        Field::Brstackinsn,
        Field::Brstackinsnlen,
        Field::Brstackoff,
        Field::Callindent,
        Field::Insn,
        Field::Insnlen,
        Field::Synth,
        Field::PhysAddr,
        Field::Metric,
        Field::Misc,
        Field::Srccode,
        Field::Ipc,
        Field::Tod,
        Field::DataPageSize,
        Field::CodePageSize,
        Field::InsLat,
        Field::MachinePid,
        Field::Vcpu,
        Field::Srcline,
        Field::Dsoff,
        Field::Cgroup,
        Field::RetireLat,
        Field::Disasm,
        Field::Brstackdisasm,
    ];

    /// The set of `fields`.
    #[must_use]
    pub const fn of(fields: &[Field]) -> Self {
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
    pub const fn has(self, field: Field) -> bool {
        self.0 & 1 << field as u16 != 0
    }

    /// Whether any field of `others` is in the set.
    #[inline]
    #[must_use]
    pub const fn has_any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// Puts `field` in, or takes it out.
    pub const fn set(&mut self, field: Field, present: bool) {
        if present {
            self.0 |= 1 << field as u16;
        } else {
            self.0 &= !(1 << field as u16);
        }
    }

    /// Whether there is no field in it.
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
        let mut set = Fields::default();
        for field in Fields::ALL {
            assert!(!set.has(field), "{field:?}");
            set.set(field, true);
            assert!(set.has(field), "{field:?}");
            assert_eq!(Field::from_name(field.name()), Some(field));
        }
        assert_eq!(set, Fields::of(&Fields::ALL));
        set.set(Field::Dso, false);
        assert!(!set.has(Field::Dso) && set.has(Field::Addr));
        let left = Fields::of(&[Field::Addr, Field::Comm]);
        assert!(set.has_any(left) && !left.has_any(Fields::of(&[Field::Dso])));
        assert_eq!(Field::from_name("nosuch"), None);
    }
}
