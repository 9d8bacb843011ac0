//! BPF instructions (RFC 9669).

/// Bytes of an instruction; one that loads 64 bits takes twice as many.
pub(crate) const BYTES: usize = 8;

/// The class of an instruction, the low 3 bits of its opcode (RFC 9669, 3.1).
pub(crate) mod class {
    pub const LD: u8 = 0;
    pub const LDX: u8 = 1;
    pub const ST: u8 = 2;
    pub const STX: u8 = 3;
    pub const ALU: u8 = 4;
    pub const JMP: u8 = 5;
    pub const JMP32: u8 = 6;
    pub const ALU64: u8 = 7;
}

/// What an arithmetic or a jump instruction does: the high 4 bits of its opcode.
pub(crate) mod code {
    pub const ADD: u8 = 0x0;
    pub const SUB: u8 = 0x1;
    pub const MUL: u8 = 0x2;
    pub const DIV: u8 = 0x3;
    pub const OR: u8 = 0x4;
    pub const AND: u8 = 0x5;
    pub const LSH: u8 = 0x6;
    pub const RSH: u8 = 0x7;
    pub const NEG: u8 = 0x8;
    pub const MOD: u8 = 0x9;
    pub const XOR: u8 = 0xa;
    pub const MOV: u8 = 0xb;
    pub const ARSH: u8 = 0xc;

    pub const JA: u8 = 0x0;
    pub const JEQ: u8 = 0x1;
    pub const JGT: u8 = 0x2;
    pub const JGE: u8 = 0x3;
    pub const JSET: u8 = 0x4;
    pub const JNE: u8 = 0x5;
    pub const JSGT: u8 = 0x6;
    pub const JSGE: u8 = 0x7;
    pub const CALL: u8 = 0x8;
    pub const EXIT: u8 = 0x9;
    pub const JLT: u8 = 0xa;
    pub const JLE: u8 = 0xb;
    pub const JSLT: u8 = 0xc;
    pub const JSLE: u8 = 0xd;
}

/// An instruction's second operand is a register, not its immediate.
pub(crate) const BY_REGISTER: u8 = 0x08;
/// LD with 64 bits, of this and the next instruction.
pub(crate) const LOAD_IMMEDIATE: u8 = 0x18;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub opcode: u8,
    pub destination: u8,
    pub source: u8,
    pub offset: i16,
    pub immediate: i32,
}

impl Instruction {
    pub(crate) fn from_bytes(bytes: &[u8; BYTES]) -> Self {
        Self {
            opcode: bytes[0],
            destination: bytes[1] & 0xf,
            source: bytes[1] >> 4,
            offset: i16::from_le_bytes([bytes[2], bytes[3]]),
            immediate: i32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        }
    }

    pub(crate) fn class(&self) -> u8 {
        self.opcode & 7
    }

    pub(crate) fn code(&self) -> u8 {
        self.opcode >> 4
    }

    pub(crate) fn is_by_register(&self) -> bool {
        self.opcode & BY_REGISTER != 0
    }

    /// Where a jump at `at` leads to.
    pub(crate) fn target(&self, at: usize) -> usize {
        (at + 1).wrapping_add_signed(self.offset.into())
    }

    pub(crate) fn calls(&self) -> bool {
        self.class() == class::JMP && self.code() == code::CALL
    }

    /// How many bytes a load or store is of (RFC 9669, 5.1).
    pub(crate) fn width_bytes(&self) -> usize {
        match self.opcode & 0x18 {
            0x00 => 4,
            0x08 => 2,
            0x10 => 1,
            _ => 8,
        }
    }
}

/// The instructions of a function. The second half of one that loads 64 bits is one of them.
pub(crate) fn decode(code: &[u8]) -> Vec<Instruction> {
    code.chunks_exact(BYTES)
        .map(|bytes| Instruction::from_bytes(bytes.try_into().expect("so many bytes")))
        .collect()
}
