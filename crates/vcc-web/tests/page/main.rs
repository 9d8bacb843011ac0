//! The live page in a real browser.

mod browser;
mod choices;
mod keyboard;
mod names;
mod screens;
mod tables;
mod time;
mod visit;
