//! Runs an underlay's code in user space. It has what the kernel gives it, and nothing else: the
//! three structs that a hook is passed, and a stack.

use std::fmt;

use vcc_engine::{Hooks, sys};

use crate::bytes;
use crate::instruction::{Instruction, LOAD_IMMEDIATE, class, code};
use crate::lines::{Line, Lines};
use crate::object::Object;

const STACK_BYTES: usize = 512;

/// A hook that runs longer costs every segment too much, if it ends at all.
const INSTRUCTIONS_MAX: u32 = 4096;

/// An address has the number of its memory above and the offset into it below. 0 is null.
const MEMORY_SHIFT: u32 = 32;
const CC: u64 = 1;
const ACK: u64 = 2;
const PARAMS: u64 = 3;
const STACK: u64 = 4;

/// Runs an underlay.
#[derive(Clone, Debug)]
pub struct Machine {
    instructions: Vec<Instruction>,
    lines: Lines,
}

/// What an underlay must not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub what: String,
    /// None if the object has no line information.
    pub line: Option<Line>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.line {
            Some(line) => write!(f, "{line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Which instruction has last written each word of the state.
#[derive(Debug, Default)]
pub struct Writers([Option<usize>; size_of::<sys::vcc_cc_state>() / 4]);

impl Writers {
    fn note(&mut self, it: Option<&Instruction>, at: usize, registers: &[u64; 11]) {
        let Some(it) = it.filter(|it| matches!(it.class(), class::ST | class::STX)) else { return };
        let address = registers[it.destination as usize].wrapping_add(i64::from(it.offset) as u64);
        for byte in (0..it.width_bytes() as u64).step_by(4) {
            let word = address.wrapping_add(byte).wrapping_sub(CC << MEMORY_SHIFT) / 4;
            if let Some(writer) = self.0.get_mut(word as usize) {
                *writer = Some(at);
            }
        }
    }
}

struct Memory<'a> {
    cc: &'a mut [u8],
    ack: &'a [u8],
    params: &'a [u8],
    stack: [u8; STACK_BYTES],
}

impl Memory<'_> {
    fn load(&self, address: u64, width: usize) -> Option<u64> {
        let memory = match address >> MEMORY_SHIFT {
            CC => &*self.cc,
            ACK => self.ack,
            PARAMS => self.params,
            STACK => &self.stack,
            _ => return None,
        };
        let at = address as u32 as usize;
        let mut value = [0; 8];
        value[..width].copy_from_slice(memory.get(at..at.checked_add(width)?)?);
        Some(u64::from_le_bytes(value))
    }

    fn store(&mut self, address: u64, width: usize, value: u64) -> Option<()> {
        let memory = match address >> MEMORY_SHIFT {
            CC => &mut *self.cc,
            STACK => &mut self.stack,
            _ => return None,
        };
        let at = address as u32 as usize;
        let place = memory.get_mut(at..at.checked_add(width)?)?;
        place.copy_from_slice(&value.to_le_bytes()[..width]);
        Some(())
    }
}

impl Machine {
    pub fn from_object(object: &Object) -> Self {
        Self { instructions: object.instructions().to_vec(), lines: object.lines().clone() }
    }

    /// Runs the hook that `call` names. Writes before a fault are kept. What C leaves open and
    /// the kernel does not is a fault if `is_strict`: a division by 0, which yields 0 there, and a
    /// shift by too many bits.
    pub fn run(
        &self,
        cc: &mut sys::vcc_cc_state,
        ack: Option<&sys::vcc_cc_ack>,
        params: Option<&sys::vcc_params>,
        call: u64,
        is_strict: bool,
    ) -> Result<Writers, Fault> {
        let pointer =
            |memory: u64, is_there: bool| if is_there { memory << MEMORY_SHIFT } else { 0 };
        let mut registers = [0u64; 11];
        registers[1] = pointer(CC, true);
        registers[2] = pointer(ACK, ack.is_some());
        registers[3] = pointer(PARAMS, params.is_some());
        registers[4] = call;
        registers[10] = pointer(STACK, true) + STACK_BYTES as u64;
        let mut memory = Memory {
            cc: bytes::of_mut(cc),
            ack: ack.map_or(&[], bytes::from_plain),
            params: params.map_or(&[], bytes::from_plain),
            stack: [0; STACK_BYTES],
        };
        let (mut at, mut writers) = (0, Writers::default());
        for _ in 0..INSTRUCTIONS_MAX {
            writers.note(self.instructions.get(at), at, &registers);
            match self.step(at, &mut registers, &mut memory, is_strict) {
                Ok(Some(next)) => at = next,
                Ok(None) => return Ok(writers),
                Err(what) => return Err(self.fault(at, what)),
            }
        }
        let what = format!(
            "has run for {INSTRUCTIONS_MAX} instructions without returning: its loop does not end"
        );
        Err(self.fault(at, what))
    }

    fn fault(&self, at: usize, what: impl Into<String>) -> Fault {
        Fault { what: what.into(), line: self.lines.at(at).cloned() }
    }

    /// A fault in what a hook has left at `offset` of its state.
    pub(crate) fn fault_in(&self, writers: &Writers, offset: usize, what: String) -> Fault {
        let line = writers.0.get(offset / 4).copied().flatten().and_then(|at| self.lines.at(at));
        Fault { what, line: line.cloned() }
    }

    /// Where execution continues; None: the function has returned.
    fn step(
        &self,
        at: usize,
        registers: &mut [u64; 11],
        memory: &mut Memory<'_>,
        is_strict: bool,
    ) -> Result<Option<usize>, &'static str> {
        const OUTSIDE: &str = "reads outside of the hook's arguments";
        const WRITTEN: &str = "writes memory that a hook may not write";
        let it = self.instructions.get(at).ok_or("runs beyond its end")?;
        let destination = it.destination as usize;
        let immediate = i64::from(it.immediate) as u64;
        let operand = if it.is_by_register() { registers[it.source as usize] } else { immediate };
        let offset = i64::from(it.offset) as u64;
        match it.class() {
            class::LD if it.opcode == LOAD_IMMEDIATE => {
                let high = self.instructions.get(at + 1).ok_or("runs beyond its end")?;
                let low = u64::from(it.immediate as u32);
                registers[destination] = u64::from(high.immediate as u32) << 32 | low;
                return Ok(Some(at + 2));
            }
            class::LDX => {
                let address = registers[it.source as usize].wrapping_add(offset);
                registers[destination] = memory.load(address, it.width_bytes()).ok_or(OUTSIDE)?;
            }
            class::ST | class::STX => {
                let address = registers[destination].wrapping_add(offset);
                let value =
                    if it.class() == class::ST { immediate } else { registers[it.source as usize] };
                memory.store(address, it.width_bytes(), value).ok_or(WRITTEN)?;
            }
            class::ALU64 => {
                let left = registers[destination];
                if is_strict {
                    require_defined(it.code(), operand, u64::BITS)?;
                }
                registers[destination] = alu64(it.code(), left, operand)?;
            }
            class::ALU => {
                let (left, operand) = (registers[destination] as u32, operand as u32);
                if is_strict {
                    require_defined(it.code(), operand.into(), u32::BITS)?;
                }
                registers[destination] = alu32(it.code(), left, operand)?.into();
            }
            class::JMP if it.code() == code::EXIT => return Ok(None),
            class::JMP | class::JMP32 => {
                let left = registers[destination];
                let taken = if it.class() == class::JMP {
                    is_taken(it.code(), left, operand, left as i64, operand as i64)
                } else {
                    let (left, right) = (left as u32, operand as u32);
                    is_taken(it.code(), left.into(), right.into(), left as i32, right as i32)
                };
                return Ok(Some(if taken { it.target(at) } else { at + 1 }));
            }
            _ => return Err(UNKNOWN),
        }
        Ok(Some(at + 1))
    }
}

fn is_taken<Signed: PartialOrd>(
    condition: u8,
    left: u64,
    right: u64,
    left_signed: Signed,
    right_signed: Signed,
) -> bool {
    match condition {
        code::JA => true,
        code::JEQ => left == right,
        code::JNE => left != right,
        code::JGT => left > right,
        code::JGE => left >= right,
        code::JLT => left < right,
        code::JLE => left <= right,
        code::JSET => left & right != 0,
        code::JSGT => left_signed > right_signed,
        code::JSGE => left_signed >= right_signed,
        code::JSLT => left_signed < right_signed,
        code::JSLE => left_signed <= right_signed,
        _ => unreachable!("Object::parse() takes no others"),
    }
}

const UNKNOWN: &str = "has an instruction that vcc does not know";

/// Is the result one that C defines (C11, 6.5.5 and 6.5.7)?
fn require_defined(code: u8, right: u64, bits: u32) -> Result<(), &'static str> {
    match code {
        code::DIV | code::MOD if right == 0 => Err("divides by 0"),
        code::LSH | code::RSH | code::ARSH if right >= bits.into() => {
            Err("shifts by the width of the operand, or more")
        }
        _ => Ok(()),
    }
}

/// As the kernel has it (RFC 9669, 4.1).
fn alu64(code: u8, left: u64, right: u64) -> Result<u64, &'static str> {
    Ok(match code {
        code::ADD => left.wrapping_add(right),
        code::SUB => left.wrapping_sub(right),
        code::MUL => left.wrapping_mul(right),
        code::DIV => left.checked_div(right).unwrap_or(0),
        code::MOD => left.checked_rem(right).unwrap_or(left),
        code::OR => left | right,
        code::AND => left & right,
        code::XOR => left ^ right,
        code::LSH => left.wrapping_shl(right as u32),
        code::RSH => left.wrapping_shr(right as u32),
        code::ARSH => (left as i64).wrapping_shr(right as u32) as u64,
        code::NEG => left.wrapping_neg(),
        code::MOV => right,
        _ => return Err(UNKNOWN),
    })
}

fn alu32(code: u8, left: u32, right: u32) -> Result<u32, &'static str> {
    Ok(match code {
        code::DIV => left.checked_div(right).unwrap_or(0),
        code::MOD => left.checked_rem(right).unwrap_or(left),
        code::LSH => left.wrapping_shl(right),
        code::RSH => left.wrapping_shr(right),
        code::ARSH => (left as i32).wrapping_shr(right) as u32,
        _ => alu64(code, left.into(), right.into())? as u32,
    })
}

/// As the kernel runs it.
impl Hooks for Machine {
    fn run(
        &self,
        cc: &mut sys::vcc_cc_state,
        ack: Option<&sys::vcc_cc_ack>,
        params: Option<&sys::vcc_params>,
        call: u64,
    ) {
        // What the kernel's verifier takes has no other faults; without one, the hook has ended.
        let _ = Machine::run(self, cc, ack, params, call, false);
    }
}
