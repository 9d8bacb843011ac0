//! Serves a host that does not exist, to look at its page.

use std::net::SocketAddr;
use std::sync::Arc;
use std::{env, process, thread};

use vcc_web::testing::Fake;

fn main() {
    let mut words = env::args().skip(1);
    let listen = match words.next().map(|address| address.parse::<SocketAddr>()) {
        None => vcc_web::DEFAULT_LISTEN,
        Some(Ok(address)) => address,
        Some(Err(_)) => {
            eprintln!("usage: fake [ADDRESS:PORT [RULES CHARACTERS]]");
            process::exit(2);
        }
    };
    let crowd: Vec<usize> = words.filter_map(|word| word.parse().ok()).collect();
    let host = match crowd[..] {
        [rules, characters] => Fake::crowded(rules, characters),
        _ => Fake::live(),
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
