//! What is served, and by whom. The page has a binary of its own: a browser beside other tests may draw too late.

mod alerts;
mod dashboard;
mod documents;
mod kernel;
mod server;
mod written;
