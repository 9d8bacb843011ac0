//! Policies as their users write them.

mod judging;
