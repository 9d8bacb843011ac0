//! Takes over the terminal and restores it.

use std::io::{self, IsTerminal};
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{Context, bail};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};

use crate::interrupt;

/// The whole screen until this is dropped. A panic restores the terminal before it prints.
pub struct Screen {
    pub terminal: DefaultTerminal,
}

impl Screen {
    /// `instead` says what to do without a terminal.
    pub fn take(instead: &str) -> anyhow::Result<Self> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            bail!("this needs a terminal; without one, {instead}");
        }
        interrupt::listen()?;
        let terminal = ratatui::try_init().context("cannot take over the terminal")?;
        Ok(Self { terminal })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone cannot be restored.
        let _ = self.terminal.show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// The next event within `timeout`, or None if there is none or a signal arrives.
///
/// # Errors
/// The terminal has gone, or cannot be read.
pub fn next_event(timeout: Duration) -> anyhow::Result<Option<Event>> {
    const LOOK: Duration = Duration::from_millis(100);
    // crossterm 0.29 reads a terminal that has gone for ever, and returns to nobody.
    if has_gone(timeout.min(LOOK)) {
        bail!("the terminal has gone");
    }
    // In no time, crossterm looks at nothing.
    match event::poll(Duration::from_millis(1)) {
        Ok(true) => Ok(Some(event::read().context("cannot read the terminal")?)),
        Ok(false) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error).context("cannot read the terminal"),
    }
}

/// Waits for input up to `timeout`. Has the other side of the terminal been closed?
fn has_gone(timeout: Duration) -> bool {
    let mut polled = libc::pollfd { fd: io::stdin().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the call writes one pollfd, which `polled` is.
    let count = unsafe { libc::poll(&mut polled, 1, timeout.as_millis() as libc::c_int) };
    count > 0 && polled.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::{Read, Write};
    use std::os::fd::{FromRawFd, OwnedFd};
    use std::os::unix::fs::OpenOptionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};
    use std::thread;

    use super::*;

    #[test]
    #[ignore = "run by the test below, in a terminal"]
    fn panics_with_the_screen() {
        let _screen = Screen::take("").expect("a terminal");
        panic!("on purpose");
    }

    /// Runs an ignored test of this program in a terminal. Returns that and our side of the terminal.
    fn in_terminal(test: &str) -> (Child, File) {
        // Neither side is for programs that other tests start.
        let mut options = OpenOptions::new();
        let ours = options.read(true).write(true).custom_flags(libc::O_NOCTTY).open("/dev/ptmx");
        let ours = ours.expect("a terminal");
        let (unlocked, flags) = (0 as libc::c_int, libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        // SAFETY: the first call reads an int, the second takes its flags by value.
        let theirs = unsafe {
            libc::ioctl(ours.as_raw_fd(), libc::TIOCSPTLCK, &unlocked);
            libc::ioctl(ours.as_raw_fd(), libc::TIOCGPTPEER, flags)
        };
        assert!(theirs >= 0, "{}", io::Error::last_os_error());
        // SAFETY: the call has just made it, and nobody else closes it.
        let theirs = unsafe { OwnedFd::from_raw_fd(theirs) };
        let side = || Stdio::from(theirs.try_clone().expect("a descriptor"));
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args([test, "--exact", "--ignored", "--nocapture"]);
        command.stdin(side()).stdout(side()).stderr(side());
        // As a shell's terminal, so that it hangs up when it goes.
        let controls = || {
            // SAFETY: neither call takes a pointer, and both may follow a fork.
            let status = unsafe { libc::setsid() | libc::ioctl(0, libc::TIOCSCTTY, 0) };
            if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        };
        // SAFETY: it does no more than those calls.
        let child = unsafe { command.pre_exec(controls) }.spawn().expect("this program");
        (child, ours)
    }

    #[test]
    #[ignore = "run by the test below, in a terminal"]
    fn waits_for_keys() {
        let _screen = Screen::take("").expect("a terminal");
        while next_event(Duration::from_secs(1)).is_ok() {}
    }

    /// Reads what a program shows up to some words.
    fn wait_for(ours: &mut File, words: &str) {
        let (mut shown, mut bytes) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&shown).contains(words) {
            let count = ours.read(&mut bytes).expect("output");
            shown.extend_from_slice(&bytes[..count]);
        }
    }

    #[test]
    #[ignore = "run by the test below, in a terminal"]
    fn waits_for_a_key_behind_a_resize() {
        let _screen = Screen::take("").expect("a terminal");
        assert!(next_event(Duration::ZERO).expect("a terminal").is_none());
        // SAFETY: the call takes no pointers.
        unsafe { libc::raise(libc::SIGWINCH) };
        println!("resized");
        // Both have come when either is read.
        has_gone(Duration::from_secs(60));
        let events = (0..10).filter_map(|_| next_event(Duration::ZERO).expect("a terminal"));
        assert!(events.into_iter().any(|event| event.as_key_press_event().is_some()), "no key");
    }

    #[test]
    fn a_key_that_comes_with_a_resize_is_not_lost() {
        let (mut child, mut ours) = in_terminal("terminal::tests::waits_for_a_key_behind_a_resize");
        wait_for(&mut ours, "resized");
        ours.write_all(b"q").expect("a key");
        while matches!(ours.read(&mut [0; 4096]), Ok(1..)) {}
        assert!(child.wait().expect("its end").success());
    }

    #[test]
    fn a_terminal_that_has_gone_ends_the_wait() {
        let (mut child, mut ours) = in_terminal("terminal::tests::waits_for_keys");
        wait_for(&mut ours, "\x1b[?1049h");
        // By now it waits.
        thread::sleep(Duration::from_millis(200));
        drop(ours);
        let has_ended = (0..200).any(|_| {
            thread::sleep(Duration::from_millis(100));
            child.try_wait().expect("its end").is_some()
        });
        let _ = child.kill();
        assert!(has_ended, "not after 20 s");
    }

    #[test]
    fn a_panic_restores_the_terminal_before_it_prints() {
        let (mut child, mut ours) = in_terminal("terminal::tests::panics_with_the_screen");
        let mut shown = Vec::new();
        let mut bytes = [0; 4096];
        // The read fails once the other side is closed.
        while let Ok(count @ 1..) = ours.read(&mut bytes) {
            shown.extend_from_slice(&bytes[..count]);
        }
        assert!(!child.wait().expect("its end").success());
        let shown = String::from_utf8_lossy(&shown);
        let place =
            |what: &str| shown.find(what).unwrap_or_else(|| panic!("no {what:?} in {shown:?}"));
        assert!(place("\x1b[?1049h") < place("\x1b[?1049l"), "{shown:?}");
        assert!(place("\x1b[?1049l") < place("on purpose"), "{shown:?}");
    }
}
