//! Layouts of BTF: the compiler's description, of this version's object, and the kernel's, of what another
//! version has loaded.

use std::os::fd::BorrowedFd;

use libbpf_rs::btf::types::{Array, Enum, Int, MemberAttr, Struct as BtfStruct};
use libbpf_rs::btf::{Btf, BtfType, HasSize};

use super::{Field, Layout, STRUCTS, Struct};
use crate::{Error, Result, tcx};

impl Layout {
    /// This version's.
    pub(crate) fn ours(object: &[u8]) -> Result<Self> {
        const DOING: &str = "read the layout of the datapath's maps";
        let btf = Btf::from_raw("vcc", object).map_err(|e| Error::system(DOING, e))?;
        let btf = btf.ok_or_else(|| Error::Undescribed { what: "the datapath".into() })?;
        Self::of_btf(&btf)
    }

    /// That of a loaded program's maps.
    pub(crate) fn of_program(program: BorrowedFd<'_>) -> Result<Self> {
        const DOING: &str = "read the layout of another version's maps";
        let info = tcx::program_info(program).map_err(|e| Error::system(DOING, e))?;
        Self::of_btf(&Btf::from_prog_id(info.id).map_err(|e| Error::system(DOING, e))?)
    }

    fn of_btf(btf: &Btf<'_>) -> Result<Self> {
        let each = STRUCTS.iter().map(|name| {
            let found = btf.type_by_name::<BtfStruct<'_>>(name);
            let found = found.ok_or_else(|| Error::Undescribed { what: (*name).into() })?;
            let mut layout = Struct { bytes: found.size(), ..Struct::default() };
            flatten(btf, &found, "", 0, &mut layout)?;
            Ok(((*name).to_owned(), layout))
        });
        each.collect::<Result<_>>().map(Self)
    }
}

fn flatten(
    btf: &Btf<'_>,
    of: &BtfStruct<'_>,
    prefix: &str,
    base: usize,
    into: &mut Struct,
) -> Result<()> {
    for member in of.iter() {
        let name = prefix.to_owned() + &member.name.unwrap_or_default().to_string_lossy();
        let undescribed = || Error::Undescribed { what: name.clone() };
        let MemberAttr::Normal { offset } = member.attr else { return Err(undescribed()) };
        let at = base + offset as usize / 8;
        let kind = btf.type_by_id::<BtfType<'_>>(member.ty).ok_or_else(undescribed)?;
        let kind = kind.skip_mods_and_typedefs();
        match BtfStruct::try_from(kind) {
            Ok(inner) => flatten(btf, &inner, &format!("{name}."), at, into)?,
            Err(kind) => {
                let bytes = bytes_of(kind).ok_or_else(undescribed)?;
                into.fields.insert(name, Field { at, bytes });
            }
        }
    }
    Ok(())
}

/// Of numbers, and of arrays of them.
fn bytes_of(kind: BtfType<'_>) -> Option<usize> {
    if let Ok(int) = Int::try_from(kind) {
        return Some(int.bits as usize / 8);
    }
    if let Ok(named) = Enum::try_from(kind) {
        return Some(named.size());
    }
    let array = Array::try_from(kind).ok()?;
    Some(array.capacity() * bytes_of(array.contained_type().skip_mods_and_typedefs())?)
}
