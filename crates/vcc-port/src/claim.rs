//! Which process leads a device's traffic through a detour: one at a time. An abstract socket is of the device's
//! network namespace, like the device's index, and ends with its process. Programs at the device would not tell:
//! reading their names requires CAP_SYS_ADMIN.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};
use vcc_net::peer::credentials;

use crate::device::Device;
use crate::{Error, Result};

/// Who asks is answered, so that none waits in the queue for ever; this is for those at one moment.
const QUEUE: i32 = 128;

/// Held until it is dropped.
pub(crate) struct Claim {
    socket: Arc<Socket>,
}

impl Claim {
    /// # Errors
    /// Another process has it.
    pub(crate) fn take(device: &Device) -> Result<Self> {
        let failed = |error| Error::system(format!("claim `{}`", device.name), error);
        let socket = Arc::new(Socket::new(Domain::UNIX, Type::STREAM, None).map_err(failed)?);
        match address(device).and_then(|address| socket.bind(&address)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                return Err(Error::HeldByProcess { device: device.name.clone() });
            }
            bound => bound.map_err(failed)?,
        }
        socket.listen(QUEUE).map_err(failed)?;
        let listener = Arc::clone(&socket);
        let named = thread::Builder::new().name("claim".into());
        named.spawn(move || answer(&listener)).map_err(failed)?;
        Ok(Self { socket })
    }

    /// Has a process of vcc claimed the device? Another user's does not count, nor one whose queue is full: it
    /// does not answer, so it may be anybody's.
    pub(crate) fn is_taken(device: &Device) -> bool {
        let connect = || -> io::Result<UnixStream> {
            let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
            socket.connect(&address(device)?)?;
            Ok(socket.into())
        };
        connect().ok().and_then(|holder| credentials(&holder)).is_some_and(|holder| {
            // SAFETY: the call cannot fail.
            holder.uid == 0 || holder.uid == unsafe { libc::geteuid() }
        })
    }
}

impl Drop for Claim {
    /// The thread that answers ends.
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Until the listener is shut down.
fn answer(listener: &Socket) {
    const PAUSE: Duration = Duration::from_millis(100);
    loop {
        match listener.accept() {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return,
            // As long as the process has no descriptors left.
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// An abstract one.
fn address(device: &Device) -> io::Result<SockAddr> {
    SockAddr::unix(format!("\0vcc-detour-{}", device.ifindex))
}

#[cfg(test)]
mod tests {
    use vcc_testing::eventually;

    use super::*;

    #[test]
    fn a_device_is_claimed_once_until_its_process_ends() {
        let device = Device { name: "veth0".into(), ifindex: u32::MAX, netns_inode: 0 };
        assert!(!Claim::is_taken(&device));
        let claim = Claim::take(&device).expect("nobody has it");
        assert!(Claim::is_taken(&device));
        assert!(matches!(Claim::take(&device), Err(Error::HeldByProcess { .. })));
        drop(claim);
        eventually("it is free", || !Claim::is_taken(&device));
        eventually("it can be taken again", || Claim::take(&device).is_ok());
    }

    #[test]
    fn it_may_be_asked_for_as_often_as_one_likes() {
        let device = Device { name: "veth0".into(), ifindex: u32::MAX - 1, netns_inode: 0 };
        let _claim = Claim::take(&device).expect("nobody has it");
        for _ in 0..20 * QUEUE {
            eventually("it is taken", || Claim::is_taken(&device));
        }
    }

    /// Any user can have the name, and let others wait.
    #[test]
    fn one_who_does_not_answer_keeps_nobody_waiting() {
        let device = Device { name: "veth0".into(), ifindex: u32::MAX - 2, netns_inode: 0 };
        let address = address(&device).expect("an address");
        let silent = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
        silent.bind(&address).expect("a name");
        silent.listen(0).expect("a listener");
        let first = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
        first.connect(&address).expect("room for one");
        assert!(!Claim::is_taken(&device), "with a full queue");
    }
}
