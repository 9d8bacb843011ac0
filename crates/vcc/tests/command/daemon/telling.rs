//! Notifications to the service manager, by the protocol of sd_notify(3).

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use vcc_testing::on_a_host;

use super::{POLICY, Place};

/// Listens as systemd does.
struct Manager(UnixDatagram);

impl Manager {
    fn at(place: &Place) -> Self {
        let socket = UnixDatagram::bind(place.path("notify")).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
        Self(socket)
    }

    fn hears(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.0.recv(&mut bytes).expect("a message");
        String::from_utf8(bytes[..length].to_vec()).expect("UTF-8")
    }

    /// The next that is no sign of life.
    fn hears_news(&self) -> String {
        loop {
            let message = self.hears();
            if message.trim_end() != "WATCHDOG=1" {
                return message;
            }
        }
    }
}

#[test]
fn systemd_is_notified_of_each_change() {
    on_a_host(|| {
        let place = Place::new("telling", POLICY);
        let manager = Manager::at(&place);
        let mut command = place.command();
        command.env("NOTIFY_SOCKET", place.path("notify")).env("WATCHDOG_USEC", "10000000");
        let daemon = place.run_by(command);

        let ready = manager.hears_news();
        assert!(ready.contains("READY=1\n"), "{ready}");
        assert!(ready.contains("STATUS=0 ports under "), "{ready}");
        assert!(ready.contains("policy.toml: 0 rules and a default, epoch 1"), "{ready}");
        assert_eq!(manager.hears(), "WATCHDOG=1\n", "a sign of life, unasked");

        daemon.signal(libc::SIGHUP);
        let reloading = manager.hears_news();
        assert!(reloading.contains("RELOADING=1\n"), "{reloading}");
        assert!(reloading.contains("MONOTONIC_USEC="), "or it is taken for a failure: {reloading}");
        assert!(manager.hears_news().contains("epoch 2"));

        fs::write(place.config(), "[default]\nunderlay = 1\n").expect("a file");
        daemon.signal(libc::SIGHUP);
        assert!(manager.hears_news().contains("RELOADING=1\n"));
        assert!(manager.hears_news().contains("epoch 2"), "ready again, with what it had");

        daemon.signal(libc::SIGTERM);
        assert!(manager.hears_news().contains("STOPPING=1"));
        assert_eq!(daemon.end(), 0);
    });
}
