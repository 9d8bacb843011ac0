//! `vcc domain --channel`, up to its socket: what a guest does there is tested in vcc-guest and vcc-vhost.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use vcc_channel::{FromGuest, FromHost, MESSAGE_BYTES, Message, VERSION};
use vcc_testing::{ip, on_a_host};

use super::{Domain, at, port};
use crate::CommandOutput;

fn hears(stream: &mut UnixStream) -> FromHost {
    let mut bytes = [0; MESSAGE_BYTES];
    stream.read_exact(&mut bytes).expect("a message");
    FromHost::from_bytes(&bytes).expect("of a host")
}

fn greeted(path: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(path).expect("the channel");
    stream.write_all(&FromGuest::Hello { version: VERSION }.to_bytes()).expect("written");
    assert!(matches!(hears(&mut stream), FromHost::Hello { version: VERSION, .. }));
    stream
}

#[test]
fn the_process_reports_on_its_channel_whether_it_holds() {
    on_a_host(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let (socket, channel) = (directory.path().join("card"), directory.path().join("channel"));
        ip("tuntap add dev tap0 mode tap");
        for (act, holds) in [("hold", true), ("split", true), ("window", false)] {
            let options = format!("--act {act} --channel {}", channel.display());
            let domain = Domain::start(&socket, &options);
            let mut stream = greeted(&channel);
            let is_online = matches!(hears(&mut stream), FromHost::Online { .. });
            assert_eq!(is_online, holds, "{act}");
            let port = port(&socket);
            assert_eq!((&port["channel"], &port["channel_malformed"]), (&"up".into(), &0.into()));
            let shown: CommandOutput =
                at(&socket).arg("ports").output().expect("the command").into();
            assert!(shown.well().contains("connections, channel up\n"));
            // Killed, it leaves a socket that the next one replaces.
            drop(domain);
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).expect("its end");
        }
    });
}
