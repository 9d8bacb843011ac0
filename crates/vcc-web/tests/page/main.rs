//! The live page in a real browser.

#[path = "../../../vcc/tests/command/browser.rs"]
mod browser;
mod keyboard;
mod names;
mod screens;
mod tables;
mod time;
mod visit;
