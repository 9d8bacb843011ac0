//! What the process serves: a card behind a socket, or the guest behind a device.

use std::fmt;
use std::path::PathBuf;

use vcc_command::output;
use vcc_command::signals::Signals;
use vcc_domain::Port;
use vcc_port::Detour;
use vcc_vhost::{Card, Event, OnEvent, RelayServer, Server, Tap};

#[derive(Clone)]
pub enum Place {
    /// An absolute path, and the tap behind it.
    Card {
        socket: PathBuf,
        tap: String,
        /// The socket of the channel to the guest's congestion control.
        channel: Option<PathBuf>,
    },
    Device(String),
}

impl Place {
    /// By which the port is known.
    pub fn device(&self) -> &str {
        let (Self::Card { tap: device, .. } | Self::Device(device)) = self;
        device
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Card { socket, tap, .. } => write!(f, "{} on {tap}", socket.display()),
            Self::Device(device) => write!(f, "the guest behind {device}"),
        }
    }
}

pub enum Serving {
    Card(Server),
    /// The detour ends before its taps.
    Device(Detour, RelayServer),
}

impl Serving {
    pub fn begin(place: &Place, port: Port) -> anyhow::Result<Self> {
        let on_event: OnEvent = Box::new(|event: Event| output::complain(&event.to_string()));
        match place {
            Place::Card { socket, tap, channel } => {
                let tap = Tap::open(tap)?;
                let mut server = Server::new(socket, port, Box::new(tap), on_event)?;
                if let Some(channel) = channel {
                    server.open_channel(channel)?;
                }
                Ok(Self::Card(server))
            }
            Place::Device(device) => {
                let guest = Tap::temporary(Detour::GUEST_TAP)?;
                let fabric = Tap::temporary(Detour::FABRIC_TAP)?;
                let mut detour = Detour::prepare(device, guest.name(), fabric.name())?;
                guest.set_up()?;
                fabric.set_up()?;
                let (guest, fabric) = (Box::new(guest), Box::new(fabric));
                let server = RelayServer::new(device, port, guest, fabric, on_event)?;
                detour.open()?;
                Ok(Self::Device(detour, server))
            }
        }
    }

    pub fn card(&self) -> Card {
        match self {
            Self::Card(server) => server.card(),
            Self::Device(_, server) => server.card(),
        }
    }

    /// Until a signal comes.
    pub fn run(&mut self, stop: &Signals) -> Result<(), vcc_vhost::Error> {
        match self {
            Self::Card(server) => server.run(stop),
            Self::Device(detour, server) => {
                server.run(stop, detour.gone())?;
                detour.close();
                server.end();
                Ok(())
            }
        }
    }
}
