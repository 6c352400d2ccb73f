//! Memory: NUMA nodes with their sizes and physical memory blocks.

use rperf_wire::{Cursor, DecodeError, Encoder};

use super::text;

/// One node of NUMA_TOPOLOGY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumaNode {
    /// Number of the node.
    pub node: u32,
    /// Memory in kB.
    pub total: u64,
    /// Free memory in kB when recording.
    pub free: u64,
    /// CPU list.
    pub cpus: String,
}

impl NumaNode {
    pub(crate) fn decode_list(at: &mut Cursor<'_>) -> Result<Vec<Self>, DecodeError> {
        let count = at.u32("node count")?;
        (0..count)
            .map(|_| {
                Ok(Self {
                    node: at.u32("node")?,
                    total: at.u64("node memory")?,
                    free: at.u64("node free memory")?,
                    cpus: text::take(at)?,
                })
            })
            .collect()
    }

    pub(crate) fn encode_list(nodes: &[Self], to: &mut Encoder<'_>) {
        text::put_count(to, nodes.len());
        for node in nodes {
            to.u32(node.node);
            to.u64(node.total);
            to.u64(node.free);
            text::put(to, &node.cpus);
        }
    }
}

/// The only version of MEM_TOPOLOGY.
const VERSION: u64 = 1;

/// Physical memory blocks of the nodes (MEM_TOPOLOGY).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryTopology {
    /// Bytes of a block.
    pub block_size: u64,
    /// The blocks of each node.
    pub nodes: Vec<MemoryNode>,
}

/// The blocks of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryNode {
    /// Number of the node.
    pub node: u64,
    /// Number of valid bits in `blocks`.
    pub bits: u64,
    /// Bitmap of the blocks.
    pub blocks: Vec<u64>,
}

impl MemoryTopology {
    pub(crate) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        at.u64("memory topology version")?;
        let block_size = at.u64("memory block size")?;
        let count = at.u64("memory node count")?;
        let nodes = (0..count)
            .map(|_| MemoryNode::decode(at))
            .collect::<Result<_, _>>()?;
        Ok(Self { block_size, nodes })
    }

    pub(crate) fn encode(&self, to: &mut Encoder<'_>) {
        to.u64(VERSION);
        to.u64(self.block_size);
        to.u64(self.nodes.len() as u64);
        for node in &self.nodes {
            to.u64(node.node);
            to.u64(node.bits);
            // The number of bits follows a second time, as the header of the bitmap. Readers derive the number of words from this
            // one, so it must match `blocks`.
            let words = node.blocks.len() as u64;
            let matches_blocks = node.bits.div_ceil(64) == words;
            to.u64(if matches_blocks {
                node.bits
            } else {
                words * 64
            });
            node.blocks.iter().for_each(|word| to.u64(*word));
        }
    }
}

impl MemoryNode {
    fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let node = at.u64("memory node")?;
        let bits = at.u64("memory blocks")?;
        let bitmap_bits = at.u64("memory block bits")?;
        let blocks = at.u64s(bitmap_bits.div_ceil(64), "memory block map")?;
        Ok(Self {
            node,
            bits,
            blocks: blocks.iter().collect(),
        })
    }
}
