//! Replacing the programs of a port by those of this version of vcc.

use std::io;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use super::{Port, other_version};
use crate::sweep::{self, Sweep};
use crate::tcx::{self, Hook, Tag};
use crate::{Datapath, Error, Program, Result, SharedPolicy, lock};

impl Port {
    /// Replaces the programs unless they are those of this version of vcc; the flows stay. `policy`
    /// is the one that the port was attached under, if any. An error before the first program was
    /// replaced changes nothing. Returns whether programs were replaced.
    pub fn take_over(&mut self, policy: Option<&SharedPolicy>) -> Result<bool> {
        self.take_over_if(policy, |running, ours| running != Some(ours))
    }

    /// The tags of the attached programs, and of the sweep, which may be missing.
    fn running_tags(&self) -> Result<[Option<Tag>; 3]> {
        let failed = |e| Error::system("read what is attached", e);
        let [from_guest, to_guest] = &self.links;
        Ok([
            Some(tcx::attached_tag(from_guest).map_err(failed)?),
            Some(tcx::attached_tag(to_guest).map_err(failed)?),
            self.sweep
                .as_ref()
                .map(|sweep| tcx::program_tag(sweep.as_fd()))
                .transpose()
                .map_err(failed)?,
        ])
    }

    pub(super) fn take_over_if(
        &mut self,
        policy: Option<&SharedPolicy>,
        stale_if: impl Fn(Option<Tag>, Tag) -> bool,
    ) -> Result<bool> {
        let failed = |e: io::Error| Error::system("take a port over", e);
        let _lock = self.pin.is_some().then(lock::pins).transpose()?;
        let running = self.running_tags()?;
        // Loading takes the verifier a while, and gives the same tags for every port.
        static OURS: OnceLock<[Tag; 3]> = OnceLock::new();
        let is_stale = |ours: &[Tag; 3]| running.iter().zip(ours).any(|(a, b)| stale_if(*a, *b));
        if OURS.get().is_some_and(|ours| !is_stale(ours)) {
            return Ok(false);
        }
        let Some(maps) = self.maps.as_mut() else { return Err(other_version(&self.device)) };
        let datapath = Datapath::load_over(maps, policy)?;
        let [from_guest, to_guest] = Hook::BOTH.map(|hook| datapath.program(hook.into()));
        let programs = [from_guest?, to_guest?, datapath.program(Program::Sweep)?];
        let mut ours = [Tag::default(); 3];
        for (tag, program) in ours.iter_mut().zip(&programs) {
            *tag = tcx::program_tag(program.as_fd()).map_err(failed)?;
        }
        if !is_stale(OURS.get_or_init(|| ours)) {
            return Ok(false);
        }
        let [from_guest, to_guest, sweep] = &programs;
        // In this order, a process that is killed in between does the least harm; the next one goes
        // on.
        let sweep = sweep::keep(sweep)?;
        if let Some(pin) = &self.pin {
            pin.replace_sweep(&sweep)?;
        }
        for (link, program) in self.links.iter_mut().zip([from_guest, to_guest]) {
            link.update_prog(program)
                .map_err(|e| Error::system("replace a program of a port", e))?;
        }
        sweep::start_timer(&sweep)?;
        sweep::run(&sweep, Sweep::Judge)?;
        self.sweep = Some(sweep);
        Ok(true)
    }
}
