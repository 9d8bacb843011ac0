use super::*;

fn layout(fields: &[(&str, usize, usize)]) -> Struct {
    let bytes = fields.iter().map(|(_, at, bytes)| at + bytes).max().unwrap_or_default();
    let fields = fields
        .iter()
        .map(|(name, at, bytes)| ((*name).to_owned(), Field { at: *at, bytes: *bytes }));
    Struct { bytes, fields: fields.collect() }
}

/// `value` as `ours` has it, of 7 as `theirs` has it.
fn filled(
    ours: &[(&str, usize, usize)],
    theirs: &[(&str, usize, usize)],
    others: &[u8],
) -> Vec<u8> {
    let (ours, theirs) = (layout(ours), layout(theirs));
    let mut value = vec![9; ours.bytes];
    ours.fill(&mut value, &theirs, others).expect("it fits");
    value
}

#[test]
fn numbers_are_found_by_name_wherever_they_are() {
    let value =
        filled(&[("a", 0, 2), ("b.c", 2, 4)], &[("b.c", 0, 4), ("a", 4, 2)], &[1, 2, 3, 4, 5, 6]);
    assert_eq!(value, [5, 6, 1, 2, 3, 4]);
}

#[test]
fn what_the_other_version_lacks_stays_and_what_it_has_beside_is_left() {
    let value = filled(&[("a", 0, 1), ("new", 1, 1)], &[("old", 0, 1), ("a", 1, 1)], &[1, 2]);
    assert_eq!(value, [2, 9]);
}

#[test]
fn numbers_grow_and_shrink_if_they_fit() {
    let number = 513_u16.to_ne_bytes();
    let wide = filled(&[("a", 0, 4)], &[("a", 0, 2)], &number);
    assert_eq!(wide, 513_u32.to_ne_bytes());
    assert_eq!(filled(&[("a", 0, 2)], &[("a", 0, 4)], &wide), number);
    let (ours, theirs) = (layout(&[("a", 0, 1)]), layout(&[("a", 0, 4)]));
    let refused = ours.fill(&mut [0], &theirs, &wide).expect_err("513 is more than a byte");
    assert!(refused.to_string().contains("`a`"), "{refused}");
}

#[test]
fn an_array_is_only_one_of_the_same_length() {
    let (ours, theirs) = (layout(&[("a", 0, 16)]), layout(&[("a", 0, 4)]));
    ours.fill(&mut [0; 16], &theirs, &[0; 4]).expect_err("another array");
}

/// By the object's description, and by the bindings that the compiler made of the same headers.
#[test]
fn our_layout_is_that_of_the_bindings() {
    use std::mem::offset_of;
    use vcc_engine::sys;
    let ours = crate::host::layout().expect("the object's");
    let entry = ours.structure("vcc_entry").expect("described");
    assert_eq!(entry.bytes, size_of::<sys::vcc_entry>());
    let flow = offset_of!(sys::vcc_entry, flow);
    let at = |name: &str| entry.fields[name];
    let cwnd_at = flow + offset_of!(sys::vcc_flow, cc) + offset_of!(sys::vcc_cc_state, cwnd_segs);
    assert_eq!(at("flow.cc.cwnd_segs"), Field { at: cwnd_at, bytes: 4 });
    let scale_at = flow + offset_of!(sys::vcc_flow, wscale_shown);
    assert_eq!(at("flow.wscale_shown"), Field { at: scale_at, bytes: 1 });
    let key = ours.structure("vcc_key").expect("described");
    assert_eq!(key.fields["peer_addr"], Field { at: 16, bytes: 16 });
    // All of it is described: no byte is in no field, and none in two.
    for name in STRUCTS {
        let of = ours.structure(name).expect("described");
        assert_eq!(of.fields.values().map(|field| field.bytes).sum::<usize>(), of.bytes, "{name}");
    }
    let text = serde_json::to_string(&ours).expect("text");
    assert_eq!(serde_json::from_str::<Layout>(&text).expect("a layout"), ours);
    assert!(text.len() < 64 << 10, "{} bytes", text.len());
}
