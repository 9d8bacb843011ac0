//! Tells other processes what the port knows: whoever connects is sent it, and the connection ends.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process;
use std::thread;
use std::time::Duration;

use vcc_domain::Status;

use crate::server::{Card, Error, listen};

/// The sockets' directory is the operator's alone, as connections are nobody else's business.
const DIRECTORY_MODE: u32 = 0o750;
const SOCKET_MODE: u32 = 0o600;
/// A reader that takes nothing for so long is left.
const PATIENCE: Duration = Duration::from_secs(1);

impl Card {
    /// Answers on a socket of this path, in a thread of its own, from now on.
    ///
    /// # Errors
    /// There cannot be such a socket.
    pub fn tell_at(&self, path: &Path) -> Result<(), Error> {
        let cannot = |error| Error::Listen { path: path.to_owned(), error };
        if let Some(directory) = path.parent() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(DIRECTORY_MODE).create(directory).map_err(cannot)?;
        }
        let listener = listen(path)?;
        fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE)).map_err(cannot)?;
        let card = self.clone();
        let answers = thread::Builder::new().name("status".to_owned());
        answers.spawn(move || card.answer(&listener)).map_err(cannot)?;
        Ok(())
    }

    fn answer(&self, listener: &UnixListener) {
        for reader in listener.incoming() {
            // A reader that has gone is no concern; without descriptors, the next may have one.
            match reader {
                Ok(reader) => drop(self.tell(reader)),
                Err(_) => thread::sleep(PATIENCE),
            }
        }
    }

    fn tell(&self, mut reader: UnixStream) -> io::Result<()> {
        reader.set_write_timeout(Some(PATIENCE))?;
        let socket = self.socket().to_string_lossy();
        let status = self.look(|port| Status::of(port, &socket, process::id()));
        reader.write_all(&status.to_bytes())
    }
}
