//! Opening and loading the BPF objects that a crate embeds.

use std::os::fd::AsFd;

use libbpf_rs::{ErrorKind, MapHandle, Object, ObjectBuilder, OpenMapMut, OpenObject, ProgramMut};

use crate::error::VerifierRefusal;
use crate::libbpf::Refusal;
use crate::tcx::Hook;
use crate::{Error, Result, kernel, libbpf, verifier_log};

/// Opens an object; `what` names it in messages.
pub fn open(object: &[u8], what: &str) -> Result<OpenObject> {
    let (result, output) = libbpf::listen(|| ObjectBuilder::default().open_memory(object));
    result.map_err(|e| Error::System {
        doing: format!("open {what}"),
        why: format!("{e:#} ({})", output.lines().last().unwrap_or_default()),
    })
}

/// A map of an object that is not loaded yet.
pub(crate) fn map<'object>(
    open: &'object mut OpenObject,
    name: &str,
) -> Result<OpenMapMut<'object>> {
    open.maps_mut().find(|map| map.name() == name).ok_or_else(|| lacks(name))
}

/// Sets the constants in a section of an object that is not loaded yet.
pub(crate) fn set_constants(open: &mut OpenObject, section: &str, bytes: &[u8]) -> Result<()> {
    map(open, section)?
        .set_initial_value(bytes)
        .map_err(|e| Error::system("set the constants of the datapath", e))
}

/// Makes an object that is not loaded yet use these maps instead of its own.
pub(crate) fn lend<'map>(
    open: &mut OpenObject,
    maps: impl IntoIterator<Item = (&'static str, &'map MapHandle)>,
    doing: &str,
) -> Result<()> {
    for (name, lent) in maps {
        map(open, name)?.reuse_fd(lent.as_fd()).map_err(|e| Error::system(doing, e))?;
    }
    Ok(())
}

/// A program of a loaded object.
pub(crate) fn program<'object>(object: &'object Object, name: &str) -> Result<ProgramMut<'object>> {
    object.progs_mut().find(|program| program.name() == name).ok_or_else(|| lacks(name))
}

/// Those that are attached to a port, in the order of [`Hook::BOTH`].
pub(crate) fn port_programs(object: &Object) -> Result<[ProgramMut<'_>; 2]> {
    let [from_guest, to_guest] = Hook::BOTH.map(|hook| program(object, hook.program_name()));
    Ok([from_guest?, to_guest?])
}

pub(crate) fn lacks(name: &str) -> Error {
    Error::System { doing: "use the datapath".into(), why: format!("the object has no `{name}`") }
}

pub fn load(open: OpenObject, what: &str) -> Result<Object> {
    #[cfg(test)]
    let open = spoilt::spoil(open);
    let (result, output) = libbpf::listen(|| open.load());
    result.map_err(|e| match libbpf::refusal(&output) {
        // The verifier gives up when a signal comes. libbpf asks again, but not for ever.
        _ if e.kind() == ErrorKind::WouldBlock => Error::System {
            doing: format!("load {what}"),
            why: "signals interrupted the verifier each time: stop what sends them, and try again"
                .into(),
        },
        Some(Refusal { program, last_line, log }) => Error::Verifier {
            what: what.into(),
            experience: kernel::experience(),
            refusal: Box::new(VerifierRefusal {
                release: kernel::release(),
                last_line,
                log: verifier_log::keep(&program, &log),
                program,
            }),
        },
        None => Error::system(format!("load {what}"), e),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;
    use std::thread;
    use std::time::Duration;

    use vcc_testing::{EndOnDrop, can_attach};

    use crate::{AttachOptions, Datapath};

    extern "C" fn ignore(_signal: libc::c_int) {}

    #[test]
    fn a_verifier_that_signals_interrupt_has_refused_nothing() {
        if !can_attach() {
            return;
        }
        let handler = ignore as extern "C" fn(libc::c_int);
        // SAFETY: the handler does nothing; no other test uses this signal.
        unsafe { libc::signal(libc::SIGUSR2, handler as libc::sighandler_t) };
        // SAFETY: the call takes nothing.
        let loader = unsafe { libc::pthread_self() };
        let is_over = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            let _end = EndOnDrop(&is_over);
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    // SAFETY: the loader waits for this thread.
                    unsafe { libc::pthread_kill(loader, libc::SIGUSR2) };
                    thread::sleep(Duration::from_millis(1));
                }
            });
            Datapath::load_without_timer(&AttachOptions::default())
        });
        let error = result.err().expect("each attempt takes longer than a millisecond");
        assert_eq!(
            error.to_string(),
            "cannot load the datapath: signals interrupted the verifier each time: stop what sends them, \
             and try again"
        );
    }
}

/// Programs that the verifier refuses, for tests of what is left then.
#[cfg(test)]
pub(crate) mod spoilt {
    use std::cell::Cell;

    use libbpf_rs::{OpenObject, ProgramType};

    thread_local! {
        static NAME: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// While `work` runs on this thread, the kernel refuses the program.
    pub(crate) fn during<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
        NAME.set(Some(name));
        let result = work();
        NAME.set(None);
        result
    }

    pub(super) fn spoil(mut open: OpenObject) -> OpenObject {
        for mut program in open.progs_mut() {
            if NAME.get().is_some_and(|name| program.name() == name) {
                // Its context has no such fields.
                program.set_prog_type(ProgramType::Xdp);
            }
        }
        open
    }
}
