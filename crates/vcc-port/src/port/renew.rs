//! Replacing the programs that are attached to a port. They only call those of its host.

use std::os::fd::AsFd;
use std::sync::OnceLock;

use super::{Port, Seat};
use crate::tcx::{self, Hook, Tag};
use crate::{Error, Result, object};

impl Port {
    /// Replaces the attached programs unless they are those of this version of vcc. Returns whether
    /// they were replaced. A tag does not show which maps a program has, and the program of a link
    /// does so for CAP_SYS_ADMIN only: where there may be others, [`crate::Predecessor::succeed`]
    /// has replaced them before.
    pub fn renew(&mut self) -> Result<bool> {
        // Of a version that pinned no programs: their run time cannot be read.
        let lacks_pins = self.pin.as_ref().is_some_and(|pin| !pin.has_programs());
        self.renew_if(|running, ours| running != ours || lacks_pins)
    }

    pub(super) fn renew_if(
        &mut self,
        is_stale: impl Fn([Tag; 2], [Tag; 2]) -> bool,
    ) -> Result<bool> {
        let failed = |e| Error::system("read what is attached", e);
        let mut running = [Tag::default(); 2];
        for (tag, link) in running.iter_mut().zip(&self.links) {
            *tag = tcx::attached_tag(link).map_err(failed)?;
        }
        // The tags are the same for every port.
        static OURS: OnceLock<[Tag; 2]> = OnceLock::new();
        if OURS.get().is_some_and(|ours| !is_stale(running, *ours)) {
            return Ok(false);
        }
        let Seat { host, index, .. } = self.seat()?;
        let programs = host.port_programs(*index)?;
        let mut ours = [Tag::default(); 2];
        for (tag, hook) in ours.iter_mut().zip(Hook::BOTH) {
            let program = object::program(&programs, hook.program_name())?;
            *tag = tcx::program_tag(program.as_fd()).map_err(failed)?;
        }
        if !is_stale(running, *OURS.get_or_init(|| ours)) {
            return Ok(false);
        }
        for (link, hook) in self.links.iter_mut().zip(Hook::BOTH) {
            let program = object::program(&programs, hook.program_name())?;
            link.update_prog(&program)
                .map_err(|e| Error::system("replace a program of a port", e))?;
        }
        if let Some(pin) = &self.pin {
            pin.put_programs(object::port_programs(&programs)?)?;
        }
        Ok(true)
    }
}
