//! Answers other processes that ask for what the port knows, for a reload of its policy, or for a
//! recording: a question on each connection.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use vcc_domain::{Ask, Reloaded, Status};

use crate::card::Card;
use crate::channel_state::ChannelState;
use crate::listener::{Error, listen};

/// The sockets' directory is the operator's alone, as connections are nobody else's business.
const DIRECTORY_MODE: u32 = 0o750;
const SOCKET_MODE: u32 = 0o600;
/// A process that sends or takes nothing for so long is left.
const PATIENCE: Duration = Duration::from_secs(1);

/// The policy of a card's port.
#[derive(Clone)]
pub struct PolicyFile {
    pub path: String,
    /// Reads it again. Returns what is in force, or why the policy before it stays.
    pub reload: Arc<dyn Fn() -> Result<String, String> + Send + Sync>,
}

impl Card {
    /// Answers on a socket of this path, in a thread of its own, from now on.
    ///
    /// # Errors
    /// There cannot be such a socket.
    pub fn answer_at(&self, path: &Path, policy: Option<PolicyFile>) -> Result<(), Error> {
        let cannot = |error| Error::Listen { path: path.to_owned(), error };
        if let Some(directory) = path.parent() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(DIRECTORY_MODE).create(directory).map_err(cannot)?;
        }
        let listener = listen(path)?;
        fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE)).map_err(cannot)?;
        let card = self.clone();
        let answers = thread::Builder::new().name("answers".to_owned());
        answers.spawn(move || card.serve(&listener, policy.as_ref())).map_err(cannot)?;
        Ok(())
    }

    fn serve(&self, listener: &UnixListener, policy: Option<&PolicyFile>) {
        for asking in listener.incoming() {
            // A process that has gone is no concern; without descriptors, the next may have one.
            match asking {
                Ok(asking) => drop(self.answer(asking, policy)),
                Err(_) => thread::sleep(PATIENCE),
            }
        }
    }

    fn answer(&self, mut asking: UnixStream, policy: Option<&PolicyFile>) -> io::Result<()> {
        asking.set_read_timeout(Some(PATIENCE))?;
        asking.set_write_timeout(Some(PATIENCE))?;
        let mut bytes = [0; Ask::BYTES];
        asking.read_exact(&mut bytes)?;
        match Ask::from_bytes(&bytes) {
            Ok(Ask::Status(flow)) => {
                let socket = self.socket().to_string_lossy();
                let path = policy.map_or("", |policy| &policy.path);
                let of = |port: &_| Status::new(port, &socket, path, self.front_end(), flow);
                let mut status = self.with_port(of);
                if let Some(ChannelState { is_up, malformed }) = self.channel() {
                    status.channel = if is_up { "up" } else { "down" }.to_owned();
                    status.channel_malformed = malformed;
                }
                asking.write_all(&status.to_bytes())
            }
            Ok(Ask::Reload) => {
                let none = || Err("it has no --policy".to_owned());
                let reloaded = policy.map_or_else(none, |policy| (policy.reload)());
                asking.write_all(&Reloaded(reloaded).to_bytes())
            }
            Ok(Ask::Record(flow)) => self.record(asking, flow),
            // Without an answer, it knows that this is another version.
            Err(_) => Ok(()),
        }
    }
}
