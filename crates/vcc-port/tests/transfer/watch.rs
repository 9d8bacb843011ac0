//! A classifier that counts the segments at a device, and marks them if asked to.

use std::ffi::CString;

use libbpf_rs::{
    MapCore, MapFlags, MapHandle, Object, ObjectBuilder, TC_INGRESS, TcHook, TcHookBuilder,
};
use std::os::fd::AsFd;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/watch.bpf.o"));
const ONLY_ENTRY: [u8; 4] = [0; 4];

/// `struct seen` of watch.bpf.c.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Seen {
    pub segments: u64,
    pub payload_bytes: u64,
    pub ect_bytes: u64,
    pub marked_bytes: u64,
    pub ce: u64,
    pub ect: u64,
    pub ece: u64,
    pub cwr: u64,
    pub hello: u64,
    pub pack: u64,
    pub fack: u64,
    pub pack_on_data: u64,
    pub bad_sums: u64,
    pub unlike: u64,
}

const WORDS: usize = size_of::<Seen>() / size_of::<u64>();

pub struct Watch {
    /// Keeps the program loaded.
    _object: Object,
    seen: MapHandle,
}

impl Watch {
    /// Watches a device of the calling thread's namespace at ingress. Marks one of `mark_one_of`
    /// ECN-capable data segments; none if it is 0.
    pub fn attach(device: &str, mark_one_of: u32, verify_sums: bool) -> Self {
        let mut open = ObjectBuilder::default().open_memory(OBJECT).expect("the object opens");
        let constants =
            open.maps_mut().find(|map| map.name().to_string_lossy().ends_with("rodata"));
        let values = [mark_one_of, u32::from(verify_sums)].map(u32::to_ne_bytes).concat();
        constants
            .expect("constants")
            .initial_value_mut()
            .expect("their values")
            .copy_from_slice(&values);
        let object = open.load().expect("it loads");
        let program = object.progs_mut().find(|program| program.name() == "watch");
        hook(program.expect("its program").as_fd(), device);
        let seen = object.maps().find(|map| map.name() == "seen").expect("its map");
        let seen = MapHandle::try_from(&seen).expect("a handle");
        Watch { _object: object, seen }
    }

    pub fn seen(&self) -> Seen {
        let bytes = self.seen.lookup(&ONLY_ENTRY, MapFlags::ANY).expect("read").expect("there");
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        }
        // SAFETY: a C struct of just so many u64.
        unsafe { std::mem::transmute::<[u64; WORDS], Seen>(words) }
    }

    pub fn reset(&self) {
        let zeros = [0; size_of::<Seen>()];
        self.seen.update(&ONLY_ENTRY, &zeros, MapFlags::ANY).expect("reset");
    }
}

/// The classifier stays attached until the device goes away with its namespace.
fn hook(program: std::os::fd::BorrowedFd, device: &str) -> TcHook {
    let name = CString::new(device).expect("a name");
    // SAFETY: the name is a C string.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    assert_ne!(index, 0, "{device}");
    let mut builder = TcHookBuilder::new(program);
    builder.ifindex(index as i32).replace(true).handle(1).priority(1);
    let mut hook = builder.hook(TC_INGRESS);
    hook.create().expect("clsact");
    hook.attach().expect("attached")
}
