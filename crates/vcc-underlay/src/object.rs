//! The object file of an underlay.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::{fmt, str};

use object::elf;
use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection, ObjectSymbol, SectionFlags, SectionKind};
use thiserror::Error;
use vcc_engine::{Slot, sys};

use crate::instruction::{self, BYTES, Instruction, LOAD_IMMEDIATE, class};
use crate::lines::{Line, Lines, btf_strings, core_relocation};

/// Where underlay.bpf.c has `struct vcc_underlay`.
const ABOUT_SECTION: &str = "vcc.underlay";
const MAGIC: &[u8; 8] = b"vcc-cc\0\0";
const NAME_BYTES: usize = 32;
const ABOUT_BYTES: usize = 104;
/// A hundred times as much as the largest built-in underlay has.
const LONGEST_BYTES: u64 = 4 << 20;

/// The names that have the number of a slot, whose place an X has until then.
const NAMES: [&[u8]; 2] = [b"vcc_slot_X", b"vcc_about_X"];

/// An underlay that can be loaded.
#[derive(Clone)]
pub struct Object {
    bytes: Vec<u8>,
    name: String,
    about: String,
    traits: u32,
    instructions: Vec<Instruction>,
    lines: Lines,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} instructions)", self.name, self.instructions.len())
    }
}

/// Why a file is not a loadable underlay.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ObjectError {
    #[error("cannot be read: {0}")]
    Unreadable(String),
    #[error("is not an underlay: make one with `vcc underlay build FILE.h`")]
    NoUnderlay,
    #[error(
        "was built for another version of vcc, whose hooks have other arguments: build it \
         again, with `vcc underlay build`"
    )]
    OtherVersion,
    #[error(
        "calls itself '{0}': a name has lower-case letters, digits and hyphens, and at most 31"
    )]
    BadName(String),
    #[error("calls itself '{0}', which is the name of a built-in underlay: give it another")]
    BuiltInName(String),
    #[error(
        "{at}has data of its own (section {section}): an underlay can use only the words of cc->own"
    )]
    OwnData { at: At, section: String },
    #[error("{at}calls a function that is not inlined: define it with VCC_INLINE")]
    Calls { at: At },
    #[error("{at}has an instruction that vcc does not know")]
    Unknown { at: At },
    #[error("{at}refers to '{name}': a hook can use only its arguments")]
    Refers { at: At, name: String },
    #[error(
        "has code in section {0}: an underlay consists of hooks, which `vcc underlay build` puts \
         into .text"
    )]
    OtherCode(String),
    #[error(
        "{at}has an instruction that depends on the types of the running kernel (CO-RE): a hook can use \
         only the structs of vcc"
    )]
    Relocated { at: At },
    #[error("has a name that is not UTF-8 in section {0}: rename it, and build again")]
    BadText(String),
}

impl ObjectError {
    /// Does it name a line of the source?
    pub fn has_line(&self) -> bool {
        match self {
            Self::OwnData { at, .. }
            | Self::Calls { at }
            | Self::Unknown { at }
            | Self::Refers { at, .. }
            | Self::Relocated { at } => at.0.is_some(),
            _ => false,
        }
    }
}

/// The line of an error, and a colon; nothing if the object has no line information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At(Option<Line>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |line| write!(f, "{line}: "))
    }
}

impl Object {
    /// Reads a regular file. A FIFO would wait for its other end.
    pub fn read(path: &Path) -> Result<Self, ObjectError> {
        let bytes = read_regular(path).map_err(|e| ObjectError::Unreadable(e.to_string()))?;
        Self::parse(bytes)
    }

    pub fn parse(bytes: Vec<u8>) -> Result<Self, ObjectError> {
        let file: ElfFile64<'_, Endianness> =
            ElfFile64::parse(&*bytes).map_err(|_| ObjectError::NoUnderlay)?;
        if file.elf_header().e_machine.get(file.endian()) != elf::EM_BPF || !file.is_little_endian()
        {
            return Err(ObjectError::NoUnderlay);
        }
        let section = |name| file.section_by_name(name).and_then(|it| it.data().ok());
        let head = section(ABOUT_SECTION).and_then(Head::parse).ok_or(ObjectError::NoUnderlay)?;
        if head.version != (sys::CC_HOOKS_VERSION, sizes()) {
            return Err(ObjectError::OtherVersion);
        }
        if !is_name(&head.name) {
            return Err(ObjectError::BadName(head.name));
        }
        if vcc_engine::Underlay::built_in().any(|it| it.name() == head.name) {
            return Err(ObjectError::BuiltInName(head.name));
        }
        let code = section(".text").ok_or(ObjectError::NoUnderlay)?;
        let lines = section(".BTF")
            .zip(section(".BTF.ext"))
            .and_then(|(btf, ext)| Lines::parse(btf, ext, ".text"))
            .unwrap_or_default();
        let is_function = |name: &str| name.as_bytes() == NAMES[0];
        let begins = file.symbols().find(|it| it.name().is_ok_and(is_function));
        if begins.is_none_or(|it| it.address() != 0 || it.size() != code.len() as u64) {
            // There is another function besides it.
            return Err(ObjectError::Calls { at: At(None) });
        }
        for it in file.sections() {
            let name = it.name().unwrap_or_default();
            let holds_data = matches!(
                it.kind(),
                SectionKind::Data | SectionKind::ReadOnlyData | SectionKind::UninitializedData
            ) || name == ".maps";
            if it.size() != 0 && holds_data && name != ABOUT_SECTION && !name.starts_with(".BTF") {
                let at = file.section_by_name(".text").and_then(|text| text.relocations().next());
                let at = At(at.and_then(|(offset, _)| lines.at(offset as usize / BYTES).cloned()));
                return Err(ObjectError::OwnData { at, section: name.into() });
            }
        }
        check_text(&file)?;
        check_references(&file, &lines)?;
        let instructions = instruction::decode(code);
        check_instructions(&instructions, &lines)?;
        let Head { name, about, traits, .. } = head;
        Ok(Self { bytes, name, about, traits, instructions, lines })
    }

    /// The name in an object that need not be understood.
    pub fn name_in(bytes: &[u8]) -> Option<String> {
        let file: ElfFile64<'_, Endianness> = ElfFile64::parse(bytes).ok()?;
        let section = file.section_by_name(ABOUT_SECTION)?;
        Some(Head::parse(section.data().ok()?)?.name).filter(|name| is_name(name))
    }

    /// In policies and commands.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One line on it.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// `enum vcc_cc_trait`.
    pub fn traits(&self) -> u32 {
        self.traits
    }

    /// What was read.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The object file of its function for a slot, to be linked with the datapath.
    pub fn for_slot(&self, slot: Slot) -> Vec<u8> {
        let digit = b'0' + slot.index() as u8;
        let mut bytes = self.bytes.clone();
        for name in NAMES {
            let mut at = 0;
            while let Some(found) = bytes[at..].windows(name.len()).position(|it| it == name) {
                at += found + name.len();
                bytes[at - 1] = digit;
            }
        }
        bytes
    }

    pub(crate) fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    pub(crate) fn lines(&self) -> &Lines {
        &self.lines
    }
}

/// `struct vcc_underlay`.
struct Head {
    version: (u32, [usize; 3]),
    traits: u32,
    name: String,
    about: String,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let text = |at: usize, bytes_max: usize| {
            let field = bytes.get(at..at + bytes_max)?;
            let end = field.iter().position(|byte| *byte == 0)?;
            Some(String::from_utf8_lossy(&field[..end]).into_owned())
        };
        if bytes.get(..8)? != MAGIC {
            return None;
        }
        let sizes = [half(12)?, half(14)?, half(16)?].map(usize::from);
        Some(Self {
            version: (word(8)?, sizes),
            traits: word(20)?,
            name: text(24, NAME_BYTES)?,
            about: text(24 + NAME_BYTES, ABOUT_BYTES)?,
        })
    }
}

/// A hook's argument.
fn sizes() -> [usize; 3] {
    [size_of::<sys::vcc_cc_state>(), size_of::<sys::vcc_cc_ack>(), size_of::<sys::vcc_params>()]
}

fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_BYTES {
        let why = format!("larger than {} MiB", LONGEST_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Names are UTF-8: libbpf's messages are read as that, and they may have any of them.
fn check_text(file: &ElfFile64<'_, Endianness>) -> Result<(), ObjectError> {
    for section in file.sections() {
        let name = section.name_bytes().unwrap_or_default();
        let is_text = match name {
            b".BTF" => section.data().ok().and_then(btf_strings),
            _ if section.kind() == SectionKind::Metadata && name.ends_with(b"strtab") => {
                section.data().ok()
            }
            _ => Some(name),
        };
        if is_text.is_none_or(|text| str::from_utf8(text).is_err()) {
            return Err(ObjectError::BadText(String::from_utf8_lossy(name).into_owned()));
        }
    }
    let names = file.symbols().map(|it| it.name_bytes().unwrap_or_default());
    match names.into_iter().find(|name| str::from_utf8(name).is_err()) {
        Some(_) => Err(ObjectError::BadText(".symtab".to_owned())),
        None => Ok(()),
    }
}

/// A relocation that links the code to other code or data: the linker would put an address in its place that was
/// not there when its hooks were run.
fn check_references(file: &ElfFile64<'_, Endianness>, lines: &Lines) -> Result<(), ObjectError> {
    let at = |offset: u64| At(lines.at(offset as usize / BYTES).cloned());
    for section in file.sections() {
        let name = section.name().unwrap_or_default();
        // Of types and lines, whose own strings and instructions they refer to.
        if name.starts_with(".BTF") {
            continue;
        }
        if let Some((offset, it)) = section.relocations().next() {
            let symbol = match it.target() {
                object::RelocationTarget::Symbol(index) => file.symbol_by_index(index).ok(),
                _ => None,
            };
            let name = symbol.and_then(|it| it.name().ok().map(str::to_owned));
            let at = if section.name() == Ok(".text") { at(offset) } else { At(None) };
            return Err(ObjectError::Refers { at, name: name.unwrap_or_default() });
        }
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        if sh_flags.contains(elf::SHF_EXECINSTR) && section.size() != 0 && name != ".text" {
            return Err(ObjectError::OtherCode(name.to_owned()));
        }
    }
    // Another name might take the place of one of the datapath's.
    let is_ours = |name: &str| NAMES.contains(&name.as_bytes());
    let mut symbols = file.symbols().filter(|it| it.is_global() || it.is_undefined());
    if let Some(other) =
        symbols.find(|it| !it.name().is_ok_and(|name| name.is_empty() || is_ours(name)))
    {
        let name = other.name().unwrap_or_default().to_owned();
        return Err(ObjectError::Refers { at: At(None), name });
    }
    let ext = file.section_by_name(".BTF.ext").and_then(|it| it.data().ok());
    match ext.and_then(core_relocation) {
        Some(offset) => Err(ObjectError::Relocated { at: at(offset) }),
        None => Ok(()),
    }
}

/// Operators type these.
fn is_name(name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() < NAME_BYTES && name.bytes().all(is_fine)
}

/// A relocation that lets a hook reach memory outside of its arguments.
fn check_instructions(all: &[Instruction], lines: &Lines) -> Result<(), ObjectError> {
    let mut at = 0;
    while let Some(it) = all.get(at) {
        let here = at;
        let line = || At(lines.at(here).cloned());
        if it.calls() {
            return Err(ObjectError::Calls { at: line() });
        }
        if it.class() == class::LD {
            if it.opcode != LOAD_IMMEDIATE {
                return Err(ObjectError::Unknown { at: line() });
            }
            if it.source != 0 {
                return Err(ObjectError::OwnData { at: line(), section: "of a map".into() });
            }
            at += 1;
        }
        if it.destination > 10 || it.source > 10 {
            return Err(ObjectError::Unknown { at: line() });
        }
        at += 1;
    }
    Ok(())
}
