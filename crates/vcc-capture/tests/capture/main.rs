//! Captures of connections, as files have them.

mod both;
mod connections;
mod damaged;
mod formats;
mod reading;
