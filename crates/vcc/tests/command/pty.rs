//! A terminal for the command: a real pseudo-terminal, whose screen is read by an emulator.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::command;

/// A shared machine may stop for seconds.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Pty {
    pub child: Child,
    master: File,
    /// The command's side, kept so that the terminal outlives the command and can be looked at.
    terminal: OwnedFd,
    before: libc::termios,
    screen: vt100::Parser,
}

impl Pty {
    pub fn run(arguments: &str, size: (u16, u16)) -> Self {
        let mut command = command();
        command.args(arguments.split_whitespace());
        Self::start(command, size)
    }

    pub fn start(mut command: Command, (columns, rows): (u16, u16)) -> Self {
        let (master, terminal) = open(columns, rows);
        let before = attributes(&terminal);
        let side = || Stdio::from(terminal.try_clone().expect("a descriptor"));
        command.env("TERM", "xterm-256color");
        command.stdin(side()).stdout(side()).stderr(side());
        // SAFETY: both calls may be made between fork and exec.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().expect("the command");
        let screen = vt100::Parser::new(rows, columns, 0);
        Self { child, master, terminal, before, screen }
    }

    pub fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("written");
    }

    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: the call takes no pointers; the child has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, signal) }, 0);
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        let size = size(columns, rows);
        // SAFETY: the structure outlives the call.
        let status = unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &size) };
        assert_eq!(status, 0);
        self.screen.screen_mut().set_size(rows, columns);
    }

    /// The present content of the screen.
    pub fn text(&mut self) -> String {
        let mut bytes = [0; 16_384];
        loop {
            match self.master.read(&mut bytes) {
                Ok(count) if count > 0 => self.screen.process(&bytes[..count]),
                _ => return self.screen.screen().contents(),
            }
        }
    }

    #[track_caller]
    pub fn eventually(&mut self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if holds(&text) {
                return text;
            }
            assert!(Instant::now() < until, "not after a minute: {what}\n{text}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The exit code; the terminal is as it was.
    #[track_caller]
    pub fn end(self) -> i32 {
        self.end_with_text().0
    }

    /// The exit code, and what is on the screen.
    #[track_caller]
    pub fn end_with_text(mut self) -> (i32, String) {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            // A command that cannot write does not end.
            self.text();
            if let Some(status) = self.child.try_wait().expect("a status") {
                break status;
            }
            assert!(Instant::now() < until, "it does not end: {}", self.text());
            thread::sleep(Duration::from_millis(20));
        };
        let text = self.text();
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen(), "the screen is not given back: {text}");
        assert!(!screen.hide_cursor(), "the cursor is hidden: {text}");
        let after = attributes(&self.terminal);
        let modes = |it: &libc::termios| (it.c_iflag, it.c_oflag, it.c_cflag, it.c_lflag);
        assert_eq!(modes(&after), modes(&self.before), "the terminal's modes");
        (status.code().expect("an exit code"), text)
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // The command still runs if a test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(columns: u16, rows: u16) -> libc::winsize {
    libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Our side, whose reads do not wait, and the command's.
fn open(columns: u16, rows: u16) -> (File, OwnedFd) {
    let (mut master, mut terminal) = (-1, -1);
    let size = size(columns, rows);
    // SAFETY: all three point to live values for the length of the call; the rest may be null.
    let status = unsafe {
        let null = std::ptr::null_mut();
        libc::openpty(&mut master, &mut terminal, null, std::ptr::null(), &size)
    };
    assert_eq!(status, 0, "{}", io::Error::last_os_error());
    for descriptor in [master, terminal] {
        // SAFETY: both descriptors are open and ours.
        assert_eq!(unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) }, 0);
    }
    // SAFETY: as above.
    assert_eq!(unsafe { libc::fcntl(master, libc::F_SETFL, libc::O_NONBLOCK) }, 0);
    // SAFETY: the call has just made them, and nobody else closes them.
    unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(terminal)) }
}

fn attributes(terminal: &OwnedFd) -> libc::termios {
    // SAFETY: all-zero bytes are a valid termios.
    let mut attributes: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the structure outlives the call.
    assert_eq!(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &mut attributes) }, 0);
    attributes
}
