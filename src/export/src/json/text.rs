//! Samples as JSON objects, in parallel.

use rperf_lines::{TextKey, Texts};
use rperf_replay::{Epoch, Recent, Render, Sample, World};
use rperf_resolve::{Frame, Place, Resolver, StackScratch, UserStacks};
use rperf_wire::{
    CpuMode, Endian, PERF_CONTEXT_HV, PERF_CONTEXT_KERNEL, PERF_CONTEXT_MAX, PERF_CONTEXT_USER,
    SampleType, U64s,
};

use super::{push_key, push_line, push_string};

/// Renders the samples of one recording. Each begins with the comma that parts it from the one before.
pub struct Text<'r, 'w> {
    resolver: &'r Resolver<'w>,
    stacks: &'r UserStacks<'r, 'w>,
    endian: Endian,
    /// By event: whether samples tell their processor.
    cpus: Vec<bool>,
}

/// The text of a block of samples.
#[derive(Debug, Default)]
pub struct Block {
    /// The objects.
    pub text: Vec<u8>,
    /// How many there are.
    pub samples: u64,
}

/// What one worker has rendered.
#[derive(Default)]
pub struct Scratch {
    recent: Recent,
    unwinding: StackScratch,
    /// Frames, and several callers at once, each with the comma that follows its callee.
    known: [Texts; 2],
}

/// Whose stack it is.
#[derive(Clone, Copy)]
struct Who {
    at: Place,
    epoch: Epoch,
}

impl<'r, 'w> Text<'r, 'w> {
    /// Names frames with `resolver`; `stacks` completes their callchains. `sample_types` are those of the events.
    #[must_use]
    pub fn new(
        resolver: &'r Resolver<'w>,
        stacks: &'r UserStacks<'r, 'w>,
        endian: Endian,
        sample_types: impl Iterator<Item = SampleType>,
    ) -> Self {
        Self {
            resolver,
            stacks,
            endian,
            cpus: sample_types
                .map(|kind| kind.contains(SampleType::CPU))
                .collect(),
        }
    }

    /// The frames of a callchain.
    fn chain(&self, who: Who, chain: U64s<'_>, known: &mut [Texts; 2], out: &mut Vec<u8>) {
        let start = out.len();
        let Some(split) = Resolver::split_first(chain) else {
            return self.corrupted(who, chain, known, out);
        };
        let [frames, parts] = known;
        self.frame(who, (split.mode, split.ip), frames, out);
        // The comma before the first frame.
        out.remove(start);
        let callers = U64s::new(split.callers, self.endian);
        let whole = Resolver::parts(split.mode, callers, usize::MAX, |mode, part| {
            let key = TextKey {
                words: [who.epoch.user, who.epoch.kernel, mode as u64],
                bytes: part.as_bytes(),
            };
            if let Some(text) = parts.get(&key) {
                return out.extend_from_slice(text);
            }
            let from = out.len();
            Resolver::walk_on(mode, part, part.len(), |mode, ip| {
                self.frame(who, (mode, ip), frames, out);
            });
            parts.insert(&key, out.get(from..).unwrap_or_default());
        });
        if !whole {
            out.truncate(start);
            self.corrupted(who, chain, known, out);
        }
    }

    /// The frames of a callchain with markers that mean nothing. As in perf's JSON, and nowhere else, they are skipped.
    #[cold]
    fn corrupted(&self, who: Who, chain: U64s<'_>, known: &mut [Texts; 2], out: &mut Vec<u8>) {
        let start = out.len();
        let mut mode = CpuMode::User;
        for ip in chain.iter() {
            match ip {
                PERF_CONTEXT_HV => mode = CpuMode::Hypervisor,
                PERF_CONTEXT_KERNEL => mode = CpuMode::Kernel,
                PERF_CONTEXT_USER => mode = CpuMode::User,
                PERF_CONTEXT_MAX.. => {}
                _ => self.frame(who, (mode, ip), &mut known[0], out),
            }
        }
        if out.len() > start {
            out.remove(start);
        }
    }

    /// A comma and the object of one frame.
    fn frame(&self, who: Who, (mode, ip): (CpuMode, u64), known: &mut Texts, out: &mut Vec<u8>) {
        let key = TextKey {
            words: [who.epoch.side(mode), mode as u64, ip],
            bytes: &[],
        };
        if let Some(text) = known.get(&key) {
            return out.extend_from_slice(text);
        }
        let from = out.len();
        out.push(b',');
        self.push_frame(&self.resolver.locate(who.at, mode, ip), out);
        known.insert(&key, out.get(from..).unwrap_or_default());
    }

    fn push_frame(&self, frame: &Frame, out: &mut Vec<u8>) {
        push_line(out, 4);
        out.push(b'{');
        push_key(out, 5, "ip");
        out.extend(format!("\"{:#x}\"", frame.ip).into_bytes());
        let name = frame.symbol.map(|symbol| self.resolver.symbol_name(symbol));
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            out.push(b',');
            push_key(out, 5, "symbol");
            push_string(out, name);
            let dso = frame.dso.map(|dso| self.resolver.world().dso(dso));
            if let Some(dso) = dso.filter(|dso| !dso.short_name.is_empty()) {
                out.push(b',');
                push_key(out, 5, "dso");
                push_string(out, &dso.short_name);
            }
        }
        push_line(out, 4);
        out.push(b'}');
    }
}

fn push_number(out: &mut Vec<u8>, key: &'static str, number: i64) {
    push_key(out, 3, key);
    let _ = serde_json::to_writer(&mut *out, &number);
    out.push(b',');
}

impl Render for Text<'_, '_> {
    type Out = Block;
    type Scratch = Scratch;

    fn reuse(&self, block: &mut Block) {
        block.text.clear();
        block.samples = 0;
    }

    fn render(&self, world: &World, sample: &Sample<'_>, scratch: &mut Scratch, block: &mut Block) {
        let moment = scratch.recent.moment(world, sample.who(), sample.order);
        let who = Who {
            at: Place::of(sample),
            epoch: moment.epoch,
        };
        block.samples += 1;
        let out = &mut block.text;
        out.push(b',');
        push_line(out, 2);
        out.push(b'{');
        let time = sample.wire.time.unwrap_or(u64::MAX);
        push_number(out, "timestamp", time.cast_signed());
        push_number(out, "pid", sample.pid.cast_signed().into());
        push_number(out, "tid", sample.tid.cast_signed().into());
        if self.cpus.get(sample.event.0 as usize) == Some(&true) {
            push_number(out, "cpu", sample.cpu.cast_signed().into());
        }
        push_key(out, 3, "comm");
        push_string(out, world.comm(moment.comm_at));
        out.push(b',');
        push_key(out, 3, "callchain");
        out.push(b'[');
        match sample.wire.callchain {
            Some(recorded) => {
                let unwound = self.stacks.chain(sample, &mut scratch.unwinding);
                let chain = unwound.unwrap_or(recorded);
                self.chain(who, chain, &mut scratch.known, out);
            }
            None => {
                let ip = sample.wire.ip.unwrap_or_default();
                let frame = self.resolver.locate(who.at, sample.cpu_mode(), ip);
                self.push_frame(&frame, out);
            }
        }
        push_line(out, 3);
        out.push(b']');
        push_line(out, 2);
        out.push(b'}');
    }
}
