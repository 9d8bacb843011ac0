//! Policies as their users write them.

mod agreement;
mod checking;
mod explaining;
mod files;
mod hostile;
mod judging;
mod random;
mod size;
