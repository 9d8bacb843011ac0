//! Reads flows once, without rates: with a million of them, only those that are wanted are kept.

use vcc_port::{Error, Port, SharedPolicy};

use crate::flow::{FlowView, Place};
use crate::names::keys;
use crate::port::Viewer;
use crate::rule::RulesInForce;
use crate::source::Source;

/// One read.
pub struct Once {
    pub flows: Vec<FlowView>,
    /// Devices that are gone, and whose pins were removed.
    pub gone: Vec<String>,
}

impl Once {
    /// Reads the flows of the ports of these devices, or of all ports if `devices` is empty.
    pub fn read(devices: &[String], is_wanted: impl Fn(&FlowView) -> bool) -> Result<Self, Error> {
        let gone = Port::sweep()?;
        let ports = Source::open_all(devices)?;
        let rules = RulesInForce::read(SharedPolicy::find()?.as_ref())?;
        let keys = keys(ports.iter().map(Source::device)).into_iter().enumerate();
        let places: Vec<Place> = keys
            .zip(&ports)
            .map(|((index, key), port)| Place {
                index,
                key,
                port: port.device().into(),
                tenant: None,
            })
            .collect();
        let viewers = ports.iter().zip(&places).map(|(port, place)| Viewer::open(port, place));
        let viewers: Vec<Option<Viewer>> = viewers.collect::<Result<_, _>>()?;
        let mut flows = Vec::new();
        let mut keep = |flow: FlowView| {
            if is_wanted(&flow) {
                flows.push(flow);
            }
        };
        Source::each_kernel_flow(&ports, |at, flow| {
            if let Some(viewer) = &viewers[at] {
                keep(viewer.view(flow, None, &rules));
            }
        })?;
        for (viewer, port) in viewers.iter().zip(&ports) {
            let own = viewer.iter().flat_map(|viewer| viewer.of_domain(port));
            own.for_each(&mut keep);
        }
        Ok(Self { flows, gone })
    }
}
