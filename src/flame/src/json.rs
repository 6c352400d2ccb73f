//! A flame graph in the JSON format of d3-flame-graph, as written by `perf script report flamegraph
//! -f json`.

use std::io::{self, Write};

use crate::kind::FrameKind;
use crate::tree::{Flame, FlameFrame};

/// Writes nested frames: `n` is the name, `l` the type of code (`root` for the root, empty for user space), `v` the own weight,
/// `c` the callees.
///
/// # Errors
///
/// Those of `out`.
pub fn write(flame: &Flame, out: &mut dyn Write) -> io::Result<()> {
    // Number of frames whose JSON objects are not closed yet. A frame follows its caller, so this is the depth of the last
    // written frame plus 1.
    let mut open = 0;
    for (frame, own) in flame.frames.iter().zip(own_weights(&flame.frames)) {
        // Whether the frame is the first callee of its caller, or the root.
        let is_first = open <= frame.depth;
        while open > frame.depth {
            out.write_all(b"]}")?;
            open -= 1;
        }
        if !is_first {
            out.write_all(b", ")?;
        }
        let (name, kind) = flame.label(frame);
        let kind = match kind {
            _ if frame.depth == 0 => "root",
            FrameKind::Kernel => "kernel",
            FrameKind::Inlined => "inlined",
            FrameKind::Jit => "jit",
            FrameKind::User => "",
        };
        write!(
            out,
            r#"{{"n": {}, "l": "{kind}", "v": {own}, "c": ["#,
            serde_json::Value::from(name),
        )?;
        open += 1;
    }
    for _ in 0..open {
        out.write_all(b"]}")?;
    }
    out.write_all(b"\n")
}

/// The own weight of each frame: its weight without that of its callees. `frames` are in depth-first order, callers first.
fn own_weights(frames: &[FlameFrame]) -> Vec<u64> {
    let mut own: Vec<u64> = frames.iter().map(|frame| frame.total).collect();
    let mut callers: Vec<usize> = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        callers.truncate(frame.depth);
        if let Some(weight) = callers.last().and_then(|caller| own.get_mut(*caller)) {
            *weight = weight.saturating_sub(frame.total);
        }
        callers.push(at);
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stacks;

    /// The JSON of these stacks; the frames of each are outermost first.
    fn text(stacks: &[(&[(&str, FrameKind)], u64)]) -> String {
        let mut all = Stacks::default();
        for (frames, weight) in stacks {
            let frames = frames.iter().map(|(name, kind)| all.label(name, *kind));
            let frames: Vec<u32> = frames.collect();
            all.add(&frames, *weight);
        }
        let mut out = Vec::new();
        let reverse = false;
        write(&Flame::new(&all, reverse), &mut out).expect("writing to memory succeeds");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn frames_are_nested_in_their_callers() {
        let user = |name| (name, FrameKind::User);
        let stacks: [(&[_], u64); 3] = [
            (&[user("loop"), user("main"), user("\"leaf\"")], 17),
            (&[user("loop"), user("main")], 2),
            (&[user("loop"), ("read", FrameKind::Kernel)], 3),
        ];
        assert_eq!(
            text(&stacks),
            concat!(
                r#"{"n": "all", "l": "root", "v": 0, "c": [{"n": "loop", "l": "", "v": 0, "c": ["#,
                r#"{"n": "main", "l": "", "v": 2, "c": [{"n": "\"leaf\"", "l": "", "v": 17, "c": []}]}, "#,
                r#"{"n": "read", "l": "kernel", "v": 3, "c": []}]}]}"#,
                "\n"
            )
        );
    }
}
