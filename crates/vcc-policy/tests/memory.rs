//! Parsing any text takes bounded memory, because a daemon parses text from clients. A counting
//! allocator measures it, therefore this test is a process of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use vcc_policy::Policy;

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is done by the system's allocator, with what it is given.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: as for this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as for this call.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Beyond the text.
fn cost_bytes(text: &str) -> usize {
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let shown = match Policy::parse(text, "large.toml") {
        Ok(checked) => checked.warnings.len(),
        Err(wrong) => wrong.to_string().len(),
    };
    assert!(shown < 1 << 17, "{shown}");
    MOST.load(Ordering::Relaxed) - before
}

#[test]
fn no_text_takes_more_than_the_largest_policy_may() {
    const BYTES: usize = 4_000_000;
    /// A number of pieces that is small enough to be parsed.
    const PIECES: usize = 120_000;
    const MOST_BYTES: usize = 60 << 20;
    for (begin, piece, end) in [
        ("", "=", ""),
        ("", "=\n", ""),
        ("", "]", ""),
        ("", "[", ""),
        ("", "\"", ""),
        ("", "a\n", ""),
        ("", "a=\n", ""),
        ("", "a=1\n", ""),
        ("", "[a]\n", ""),
        ("", "[[a]]\n", ""),
        ("", "[[ports]]\n", ""),
        ("", "[[rules]]\n", ""),
        ("", "[[rules]]\nname=''\n", ""),
        ("", "a.", ""),
        ("", "#\u{1}\n", ""),
        ("a=", "{a=", ""),
        ("a=[", "1,", "]"),
        ("a=[", "{},", "]"),
        ("a=[", "[],", "]"),
        ("a=[", "x,", "]"),
        ("[[rules]]\nvlan=[", "9999,", "]"),
        ("[[rules]]\ntenant=[", "'a',", "]"),
        ("[[rules]]\nguest_port=[", "1,", "]"),
        ("a='", "a", "'"),
        ("a='", "\u{1}", "'"),
        ("a=\"", "\\q", "\""),
        ("a=\"\"\"", "\u{1}\n", "\"\"\""),
        ("", "a", "=1"),
    ] {
        for pieces in [BYTES / piece.len(), PIECES] {
            let text = format!("{begin}{}{end}", piece.repeat(pieces));
            let cost = cost_bytes(&text);
            println!("{begin:?} {piece:?} {pieces}: {} MB", cost / 1_000_000);
            assert!(cost < MOST_BYTES, "{begin:?} {piece:?} {pieces}: {cost} bytes");
        }
    }
}
