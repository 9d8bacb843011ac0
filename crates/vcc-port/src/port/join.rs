//! Several devices of one guest, which are one port: what passes any of them meets the same flows,
//! treatment, limits and counters.

use std::collections::HashMap;
use std::sync::Arc;

use vcc_policy::Order;

use super::attach::Place;
use super::{Port, Seat};
use crate::clock::now_s;
use crate::{Error, Expedited, Result, lock, params, pins};

impl Port {
    /// Attaches to other devices of the port's guest: to all of them, or to none. Connections that they
    /// had before are unknown to the port, so the grace for such ones begins again.
    pub fn join(&self, devices: &[&str], order: Order) -> Result<Vec<Self>> {
        let mut ports: Vec<Self> = Vec::new();
        for device in devices {
            match self.join_one(device, order) {
                Ok(port) => ports.push(port),
                Err(error) => {
                    // The first error is reported; a later sweep removes what is left.
                    ports.into_iter().for_each(|port| drop(port.detach()));
                    return Err(error);
                }
            }
        }
        Ok(ports)
    }

    fn join_one(&self, device: &str, order: Order) -> Result<Self> {
        let _lock = self.pin.is_some().then(lock::pins).transpose()?;
        let seat = self.seat_to_share()?;
        let place = Place::find(device)?;
        let _expedited = self.pin.is_some().then(Expedited::begin);
        let programs = seat.host.port_programs(seat.index)?;
        let before_s = seat.grace_from(now_s())?;
        let linked = place.link(&programs, order).and_then(|links| {
            let mut port = place.port(links, Arc::clone(seat));
            port.others = [&self.others[..], std::slice::from_ref(&self.device.name)].concat();
            if self.pin.is_some() {
                port.pin(seat.index, &programs)?;
            }
            Ok(port)
        });
        if linked.is_err() {
            // Nothing has come to the port. The first error is reported.
            let _ = seat.grace_from(before_s);
        }
        linked
    }

    /// The caller holds the lock, if the port is pinned.
    fn seat_to_share(&self) -> Result<&Arc<Seat>> {
        let seat = self.seat.as_ref().ok_or_else(|| super::other_version(&self.device))?;
        let is_there = self.pin.as_ref().is_none_or(|pin| pin.is_of(&self.links));
        if !is_there || !self.is_attached()? {
            return Err(self.not_attached());
        }
        if self.drains()? {
            return Err(Error::Draining { device: self.device.name.clone() });
        }
        Ok(seat)
    }

    /// The names of the other devices of the port's guest.
    pub fn others(&self) -> &[String] {
        &self.others
    }

    /// Its number on this host, which devices of one guest have together; None of a port that another
    /// version of vcc attached.
    pub fn number(&self) -> Option<u32> {
        self.seat.as_ref().map(|seat| seat.index)
    }

    /// The device that has what is counted of the port where several of its devices are listed: the
    /// first of them. None at that device.
    pub fn shown_at(&self) -> Option<&str> {
        self.shown_at.as_deref()
    }

    /// Of devices of one guest in a list, lets the first have what is counted.
    pub fn show_once<'a>(ports: impl IntoIterator<Item = &'a mut Self>) {
        let mut first: HashMap<u32, String> = HashMap::new();
        for port in ports {
            let Some(number) = port.number().filter(|_| !port.others.is_empty()) else { continue };
            port.shown_at = first.get(&number).cloned();
            first.entry(number).or_insert_with(|| port.device.name.clone());
        }
    }

    /// Takes the port's seat, unless another device of the guest keeps it. The caller holds the lock, if
    /// the port is pinned.
    pub(super) fn last_seat(&mut self) -> Option<Arc<Seat>> {
        let seat = self.seat.take()?;
        match &self.pin {
            // Where pins cannot be read, what is left expires.
            Some(pin) => pins::is_last(pin).unwrap_or(false).then_some(seat),
            None => Arc::into_inner(seat).map(Arc::new),
        }
    }
}

impl Seat {
    /// Lets the grace of unknown connections begin at that time; returns when it began before.
    fn grace_from(&self, begin_s: u32) -> Result<u32> {
        let mut port = params::read(&self.host.maps.ports, self.index)?;
        let before_s = std::mem::replace(&mut port.attached_s, begin_s);
        params::write(&self.host.maps.ports, self.index, &port)?;
        Ok(before_s)
    }
}
