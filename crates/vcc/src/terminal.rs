//! Takes over the terminal and restores it.

use std::io::{self, IsTerminal};
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
pub fn next_event(timeout: Duration) -> anyhow::Result<Option<Event>> {
    const LOOK: Duration = Duration::from_millis(100);
    match event::poll(timeout.min(LOOK)) {
        Ok(true) => Ok(Some(event::read().context("cannot read the terminal")?)),
        Ok(false) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error).context("cannot read the terminal"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{FromRawFd, OwnedFd};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    #[ignore = "run by the test below, in a terminal"]
    fn panics_with_the_screen() {
        let _screen = Screen::take("").expect("a terminal");
        panic!("on purpose");
    }

    #[test]
    fn a_panic_restores_the_terminal_before_it_prints() {
        let (mut ours, mut theirs) = (-1, -1);
        let null = std::ptr::null_mut();
        // SAFETY: both point to live values for the length of the call; the rest may be null.
        let status = unsafe {
            libc::openpty(&mut ours, &mut theirs, null, std::ptr::null(), std::ptr::null())
        };
        assert_eq!(status, 0, "{}", io::Error::last_os_error());
        // SAFETY: the call has just made them, and nobody else closes them.
        let (mut ours, theirs) = unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
        let side = || Stdio::from(theirs.try_clone().expect("a descriptor"));
        let test = "terminal::tests::panics_with_the_screen";
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args([test, "--exact", "--ignored", "--nocapture"])
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .expect("this program");
        drop(theirs);
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
