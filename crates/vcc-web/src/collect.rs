//! A snapshot of what the kernel keeps.

use std::sync::Arc;
use std::time::SystemTime;

use vcc_policy::Policy;
use vcc_port::{Error, Flow, SharedPolicy};
use vcc_view::{FlowView, Place, PoolUse, PortView, RulesInForce, Source, keys, view_flows};

use crate::Snapshot;
use crate::snapshot::{Daemon, Pool};

/// The number of attempts to read all, each repeated if another edition came into force meanwhile.
const TRIES: usize = 3;

/// Reads the ports, and the policy that they share. `policy` is the one that was applied last. A
/// port that cannot be read is in the snapshot with the reason, and does not affect the others.
pub fn collect(
    shared: Option<&SharedPolicy>,
    ports: &[Source],
    policy: Option<&Policy>,
    daemon: Daemon,
) -> Result<Snapshot, Error> {
    let mut tries = 0;
    loop {
        let in_force = RulesInForce::read(shared)?;
        let epoch = in_force.epoch();
        // Before the flows: a connection that ends in between is missed for a moment, and not
        // counted twice.
        let mut rules = in_force.views(shared)?;
        ports.iter().for_each(|port| port.add_rules(&mut rules));
        let mut pools = pools(shared, policy)?;
        pools.extend(ports.iter().flat_map(own_pools));
        let mut flows = Vec::new();
        let in_kernel = Source::kernel_flows(ports)?;
        let tables_bytes = Source::tables_bytes(ports);
        let keys = keys(ports.iter().map(Source::device)).into_iter();
        let views = keys.zip(ports).enumerate().map(|(index, (key, port))| {
            let selector = policy.and_then(|policy| match port.socket() {
                Some(socket) => policy.port_of_domain(socket, port.device()),
                None => policy.port_of(port.device()),
            });
            let tenant = selector.and_then(|selector| selector.tenant()).map(Arc::from);
            let place = Place { index, key, port: port.device().into(), tenant };
            read_port(port, &in_kernel[index], place, &in_force, &mut flows)
        });
        let ports = views.collect();
        tries += 1;
        if tries == TRIES || shared.map_or(Ok(0), SharedPolicy::epoch)? == epoch {
            let at = SystemTime::now();
            return Ok(Snapshot { at, daemon, epoch, ports, rules, pools, flows, tables_bytes });
        }
    }
}

fn read_port(
    port: &Source,
    in_kernel: &[Flow],
    place: Place,
    rules: &RulesInForce,
    flows: &mut Vec<FlowView>,
) -> PortView {
    let read = view_flows(port, in_kernel, &place, rules);
    let read = read.and_then(|own| Ok((PortView::read(port)?, own)));
    let view = match read {
        Ok((view, mut own)) => {
            flows.append(&mut own);
            view
        }
        Err(error) => PortView::unreadable(port, &error),
    };
    PortView { tenant: place.tenant, run_time: port.run_time(), ..view }
}

/// Of a process of `vcc domain`, by its own policy.
fn own_pools(port: &Source) -> impl Iterator<Item = Pool> {
    port.own_pools().iter().map(|PoolUse { name, window_bytes, totals }| Pool {
        name: name.clone(),
        port: Some(port.device().to_owned()),
        window_bytes: *window_bytes,
        held_bytes: totals.held_bytes,
        idle_bytes: totals.idle_bytes,
        weight: totals.weight,
        most_held_bytes: totals.most_held_bytes,
        overdrawn: totals.overdrawn,
    })
}

fn pools(shared: Option<&SharedPolicy>, policy: Option<&Policy>) -> Result<Vec<Pool>, Error> {
    let declared = policy.map(Policy::pools).unwrap_or_default();
    // By the whole name: one name may begin with another.
    let window_of =
        |name: &str| declared.iter().find(|pool| pool.name == name).map(|pool| pool.window_bytes);
    let used = shared.map_or(Ok(Vec::new()), SharedPolicy::pools)?;
    let pools = used.into_iter().map(|used| Pool {
        window_bytes: window_of(&used.name),
        name: used.name,
        port: None,
        held_bytes: used.held_bytes,
        idle_bytes: used.idle_bytes,
        weight: used.weight,
        most_held_bytes: used.most_held_bytes,
        overdrawn: used.overdrawn,
    });
    // A pool of an earlier edition is shown only while connections hold some of it.
    Ok(pools
        .filter(|pool| pool.window_bytes.is_some() || pool.held_bytes + pool.idle_bytes > 0)
        .collect())
}
