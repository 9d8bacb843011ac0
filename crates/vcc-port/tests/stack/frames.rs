//! The frames of a BPF object's functions, and what they call.

use std::collections::{BTreeMap, BTreeSet};

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind};

const INSTRUCTION_BYTES: u64 = 8;
/// The frame pointer.
const R10: u8 = 10;
/// Classes and codes of instructions (RFC 9669).
const CLASS: u8 = 7;
const CLASS_LOAD: u8 = 1;
const CLASS_STORES: [u8; 2] = [2, 3];
const MOVE_64: u8 = 0xbf;
const ADD_64_IMMEDIATE: u8 = 0x07;
const CALL: u8 = 0x85;
/// In the place of the source register of a call.
const CALL_OF_FUNCTION: u8 = 1;
const LOAD_64_IMMEDIATE: u8 = 0x18;

/// A section and an offset in it.
pub type Place = (usize, u64);

pub struct Function {
    pub name: String,
    pub is_program: bool,
    /// The most that it uses of its own frame, as the verifier counts it.
    pub frame_bytes: u32,
    pub calls: BTreeSet<Place>,
    /// A function that is handed to a helper, which calls it: on this stack, or on one of its own.
    pub callbacks: BTreeSet<Place>,
}

/// All functions of an object.
pub fn functions(bytes: &[u8]) -> BTreeMap<Place, Function> {
    let elf = ElfFile64::<Endianness>::parse(bytes).expect("an ELF object");
    let mut functions = BTreeMap::new();
    for section in elf.sections() {
        let relocations: BTreeMap<u64, _> = section.relocations().collect();
        let code = section.data().expect("the section's bytes");
        for symbol in elf.symbols() {
            if symbol.kind() != SymbolKind::Text || symbol.section_index() != Some(section.index())
            {
                continue;
            }
            let mut function = Function {
                name: symbol.name().expect("its name").to_owned(),
                is_program: section.name() != Ok(".text"),
                frame_bytes: 0,
                calls: BTreeSet::new(),
                callbacks: BTreeSet::new(),
            };
            let mut holds_frame = [false; 16];
            let end = symbol.address() + symbol.size();
            for at in (symbol.address()..end).step_by(INSTRUCTION_BYTES as usize) {
                let word = &code[at as usize..][..INSTRUCTION_BYTES as usize];
                let (code, to, from) = (word[0], word[1] & 15, word[1] >> 4);
                let offset = i16::from_le_bytes([word[2], word[3]]);
                let immediate = i32::from_le_bytes([word[4], word[5], word[6], word[7]]);
                let mut uses = |below: i32| {
                    function.frame_bytes = function.frame_bytes.max((-below).max(0) as u32);
                };
                let class = code & CLASS;
                if (class == CLASS_LOAD && from == R10)
                    || (CLASS_STORES.contains(&class) && to == R10)
                {
                    uses(offset.into());
                }
                if code == MOVE_64 {
                    holds_frame[usize::from(to)] = from == R10;
                } else if code == ADD_64_IMMEDIATE && holds_frame[usize::from(to)] {
                    uses(immediate);
                    holds_frame[usize::from(to)] = false;
                }
                // What a relocation of a section adds, in instructions for a call.
                let target = |bytes: u64| match relocations.get(&at).map(|it| it.target()) {
                    Some(RelocationTarget::Symbol(index)) => {
                        let symbol = elf.symbol_by_index(index).expect("a symbol");
                        let is_section = symbol.kind() == SymbolKind::Section;
                        let add = if is_section { bytes } else { 0 };
                        symbol.section_index().map(|index| (index.0, symbol.address() + add))
                    }
                    _ => None,
                };
                if code == CALL && from == CALL_OF_FUNCTION {
                    let distance = (i64::from(immediate) + 1) * INSTRUCTION_BYTES as i64;
                    let near = (section.index().0, at.wrapping_add_signed(distance));
                    match relocations.contains_key(&at) {
                        true => function.calls.extend(target(distance as u64)),
                        false => function.calls.extend([near]),
                    }
                } else if code == LOAD_64_IMMEDIATE {
                    function.callbacks.extend(target(immediate as u64));
                }
            }
            functions.insert((section.index().0, symbol.address()), function);
        }
    }
    // Other addresses are of maps and variables.
    let places: BTreeSet<Place> = functions.keys().copied().collect();
    for function in functions.values_mut() {
        function.calls.retain(|place| places.contains(place));
        function.callbacks.retain(|place| places.contains(place));
    }
    functions
}
