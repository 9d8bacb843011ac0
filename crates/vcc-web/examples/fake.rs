//! Serves a host that does not exist, to look at its page.

use std::sync::Arc;
use std::{env, process, thread};

use vcc_web::testing::Fake;

/// None: the words name no host.
fn host(words: &[String]) -> Option<Fake> {
    match words {
        [] => Some(Fake::live()),
        [shape, first, second] if shape == "crowded" => {
            Some(Fake::crowded(first.parse().ok()?, second.parse().ok()?))
        }
        [shape, first, second] if shape == "sized" => {
            Some(Fake::sized(first.parse().ok()?, second.parse().ok()?))
        }
        _ => None,
    }
}

fn main() {
    let mut words = env::args().skip(1);
    let listen = words.next().map_or(Ok(vcc_web::DEFAULT_LISTEN), |address| address.parse());
    let (listen, host) = match (listen, host(&words.collect::<Vec<_>>())) {
        (Ok(listen), Some(host)) => (listen, host),
        _ => {
            eprintln!("usage: fake [ADDRESS:PORT [crowded RULES CHARACTERS | sized PORTS FLOWS]]");
            process::exit(2);
        }
    };
    match vcc_web::serve(listen, Arc::new(host)) {
        Ok(server) => {
            println!("http://{}/", server.address());
            loop {
                thread::park();
            }
        }
        Err(error) => {
            eprintln!("{error}");
            process::exit(1);
        }
    }
}
