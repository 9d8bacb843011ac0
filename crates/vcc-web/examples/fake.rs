//! Serves a host that does not exist, to look at its page.

use std::net::SocketAddr;
use std::sync::Arc;
use std::{env, process, thread};

use vcc_web::testing::Fake;

fn main() {
    let listen = match env::args().nth(1).map(|address| address.parse::<SocketAddr>()) {
        None => vcc_web::DEFAULT_LISTEN,
        Some(Ok(address)) => address,
        Some(Err(_)) => {
            eprintln!("usage: fake [ADDRESS:PORT]");
            process::exit(2);
        }
    };
    match vcc_web::serve(listen, Arc::new(Fake::live())) {
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
