//! Captures of connections, as files have them.

mod connections;
mod damaged;
mod formats;
mod reading;
