//! Locations: addresses, each with the frames of the function there and of those inlined into it.

use rustc_hash::FxHashMap;

use crate::profile::Profile;

/// The distinct locations of all samples. Frames are indices in [`Profile::frames`].
#[derive(Debug, Default)]
pub(crate) struct Locations {
    /// The id of each location by its innermost frame. A frame has an address, and all frames there belong to one location. If a
    /// stack ends among inlined functions, its location may lack frames: the one found first counts.
    ids_by_frame: FxHashMap<u32, u64>,
    /// The frames of each location, innermost first.
    frames: Vec<Vec<u32>>,
}

impl Locations {
    /// Returns the ids of a stack's locations, innermost first; adds new locations.
    pub(crate) fn of_stack(&mut self, profile: &Profile, stack: Option<u32>) -> Vec<u64> {
        let mut ids = Vec::new();
        let mut location = Vec::new();
        profile.walk(stack, |frame_index| {
            location.push(frame_index);
            let frame = profile.frames.get(frame_index as usize);
            // The function that is not inlined is the outermost one of its location.
            if frame.is_none_or(|frame| frame.inline_depth == 0) {
                ids.push(self.id(&location));
                location.clear();
            }
        });
        // Inlined functions at the end of the stack, without the function that contains them.
        if !location.is_empty() {
            ids.push(self.id(&location));
        }
        ids
    }

    fn id(&mut self, location: &[u32]) -> u64 {
        let innermost = location.first().copied().unwrap_or_default();
        *self.ids_by_frame.entry(innermost).or_insert_with(|| {
            self.frames.push(location.to_vec());
            self.frames.len() as u64
        })
    }

    /// The frames of each location, innermost first, in the order of ids, which start at 1.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.frames.iter().map(Vec::as_slice)
    }
}
