//! Starts a guest and connects its clock.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::rc::Rc;

use super::{By, CLOCK_ALONE, CardState, Guest, GuestSpec, State};
use crate::card::CardSpec;
use crate::error::{Doing, Error, Result};
use crate::kernel::Kernel;
use crate::process::Process;
use crate::time_travel::{ClockLine, Heard, Message, Op, Schedule};
use crate::turns::Turns;

/// The calendar's socket, relative to the guests' working directory.
pub(crate) const CLOCK_SOCKET: &str = "clock";
pub(crate) const ROOT: &str = "root";

pub(crate) fn plan_file(guest: usize) -> String {
    format!("{ROOT}/plan/{guest}")
}

/// Maximum length of a socket's path (unix(7)), without the terminating zero.
const SOCKET_PATH_BYTES: usize = 107;

/// Checks that the paths of the guests' sockets fit into socket addresses.
pub(crate) fn check_sockets(directory: &Path, guests: usize) -> Result<()> {
    let longest = directory.join(card_socket(guests.saturating_sub(1)));
    let excess = longest.as_os_str().len().saturating_sub(SOCKET_PATH_BYTES);
    if excess == 0 {
        return Ok(());
    }
    let bytes = directory.as_os_str().len();
    let directory = directory.display().to_string();
    Err(Error::LongPath { directory, bytes, most: bytes - excess })
}

fn card_socket(guest: usize) -> String {
    format!("card{guest}")
}

/// A guest that was started and has not sent its first message.
pub(crate) struct Started {
    process: Process,
    card_listener: UnixListener,
    card: CardSpec,
}

impl Started {
    pub fn start(kernel: &Kernel, directory: &Path, guest: usize, spec: GuestSpec) -> Result<Self> {
        let socket = directory.join(card_socket(guest));
        let card_listener =
            UnixListener::bind(&socket).doing(|| format!("listen on {}", socket.display()))?;
        let mtu_bytes = spec.card.mtu_bytes;
        let mut arguments = vec![
            format!("mem={}M", spec.memory_mib),
            "root=/dev/root".into(),
            "rootfstype=hostfs".into(),
            // The command line contributes to the guest's entropy, so it must not contain a path of
            // this run.
            format!("rootflags=/proc/self/cwd/{ROOT}"),
            "ro".into(),
            "init=/init".into(),
            format!("plan=/plan/{guest}"),
            format!("mtu={mtu_bytes}"),
            format!("umid=guest{guest}"),
            "uml_dir=uml/".into(),
            "con0=null,fd:1".into(),
            "con=null".into(),
            "quiet".into(),
            format!("time-travel=ext:{guest}:{CLOCK_SOCKET}"),
            format!("virtio_uml.device={}:1", card_socket(guest)),
        ];
        if !spec.small_queues {
            // The driver then orphans what it sends (skb_orphan) and frees it with the next
            // transmission.
            arguments.push("virtio_net.napi_tx=0".into());
        }
        let name = format!("guest{guest}");
        let process = Process::start(
            spec.kernel.as_ref().unwrap_or(kernel).path(),
            &arguments,
            directory,
            &name,
        )?;
        Ok(Self { process, card_listener, card: spec.card })
    }

    pub fn last_lines(&self) -> String {
        self.process.last_lines()
    }

    pub fn has_ended(&mut self) -> bool {
        self.process.has_ended()
    }

    pub fn into_guest(
        self,
        number: usize,
        clock: ClockLine,
        schedule: Schedule,
        turns: Rc<Turns>,
    ) -> Guest {
        Guest {
            number,
            process: self.process,
            clock,
            schedule,
            turns,
            waits_by: By::Message,
            card: CardState::Offered(self.card_listener, Some(Box::new(self.card))),
            has_closed_card: false,
            now_ns: 0,
            wants_ns: None,
            state: State::Running,
        }
    }
}

/// Receives the first message of a guest. Returns its number, its clock and the message.
pub(crate) fn greet(mut clock: ClockLine, guests: usize) -> Result<(usize, ClockLine, Message)> {
    let message = clock.receive().doing(|| "receive from a new guest".into())?;
    match message {
        Heard::Message(message)
            if message.op == Op::Start && (message.time_ns as usize) < guests =>
        {
            Ok((message.time_ns as usize, clock, message))
        }
        Heard::Message(message) => Err(Error::Stranger {
            what: format!("{message:?} as its first message, with {guests} guests"),
        }),
        Heard::Nothing | Heard::End => {
            Err(Error::Stranger { what: "it ended without a message".into() })
        }
    }
}

/// Answers the first message. The guest runs from then on, at time 0.
pub(crate) fn accept(
    clock: &mut ClockLine,
    start: &Message,
    guest: usize,
    turns: &Turns,
) -> Result<Schedule> {
    let doing = || format!("start the clock of guest {guest}");
    let schedule = Schedule::create(guest).doing(doing)?;
    clock.accept(start, &schedule, turns).doing(doing)?;
    clock.look_up_every(CLOCK_ALONE).doing(doing)?;
    Ok(schedule)
}
