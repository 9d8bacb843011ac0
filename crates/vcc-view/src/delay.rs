//! The two parts of round trips, in words; the engine measures them.

use vcc_engine::{DelayedBy, FlowState};
use vcc_vcpu::Want;

use crate::FlowView;
use crate::cpu::GuestCpu;
use crate::units::duration;

/// Of a connection. `cpu` adds the state of the guest's CPU.
pub fn text(state: &FlowState, cpu: Option<&GuestCpu>) -> Option<String> {
    let by = state.delayed_by()?;
    let most = |us: Option<u32>| us.map(|us| format!(" (at most {})", duration(us.into())));
    let guest = answer("the guest", state.guest_delay_us(), most(state.guest_worst_us()));
    let verb = if guest.is_none() { " answers" } else { "" };
    let fabric =
        part(&format!("the fabric{verb}"), state.fabric_delay_us(), most(state.fabric_worst_us()));
    Some(sentence(by, cpu, [guest, fabric]))
}

/// Of a guest, by the medians of its connections.
pub fn text_of_medians(
    guest_us: Option<u32>,
    fabric_us: Option<u32>,
    cpu: Option<&GuestCpu>,
) -> Option<String> {
    let by = DelayedBy::from_delays(guest_us, fabric_us)?;
    let median = || Some(" at the median".to_owned());
    let guest = answer(if by == DelayedBy::Guest { "it" } else { "the guest" }, guest_us, median());
    let fabric = match guest {
        Some(_) => part("the fabric", fabric_us, None),
        None => answer("the fabric", fabric_us, median()),
    };
    Some(sentence(by, cpu, [guest, fabric]))
}

/// Does the guest delay the connection?
pub fn is_guests(flow: &FlowView) -> bool {
    matches!(flow.state.delayed_by(), Some(DelayedBy::Guest | DelayedBy::Both))
}

fn sentence(by: DelayedBy, cpu: Option<&GuestCpu>, parts: [Option<String>; 2]) -> String {
    let is_guests = matches!(by, DelayedBy::Guest | DelayedBy::Both);
    let cpu = cpu.filter(|_| is_guests);
    let guest = match cpu.map(|cpu| cpu.shares.want()) {
        None => "the guest is not running, or busy",
        Some(Want::Turns) => "the guest is not running",
        Some(Want::Speed) => "the guest is busy",
        Some(Want::Nothing) => "the guest is late, though its CPU is idle",
    };
    let reason = match by {
        DelayedBy::Guest => format!("slow because {guest}"),
        DelayedBy::Fabric => "slow because of the fabric or the peer".to_owned(),
        DelayedBy::Both => format!("slow because of the fabric or the peer, and because {guest}"),
        DelayedBy::Neither => "not slow".to_owned(),
    };
    let parts = parts.into_iter().flatten().chain(cpu.map(GuestCpu::to_string)).collect::<Vec<_>>();
    format!("{reason}: {}", parts.join(", "))
}

fn answer(who: &str, delay_us: Option<u32>, note: Option<String>) -> Option<String> {
    part(&format!("{who} answers"), delay_us, note)
}

fn part(what: &str, delay_us: Option<u32>, note: Option<String>) -> Option<String> {
    Some(format!("{what} after {}{}", duration(delay_us?.into()), note.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use vcc_engine::sys;
    use vcc_vcpu::Shares;

    use super::*;
    use crate::testing;

    fn text_of(guest_us: u32, fabric_us: u32, cpu: Option<&GuestCpu>) -> Option<String> {
        let state = FlowState(sys::vcc_flow {
            guest_us64: guest_us * 64,
            guest_worst_us: 2 * guest_us,
            fabric_us64: fabric_us * 64,
            fabric_worst_us: 2 * fabric_us,
            ..Default::default()
        });
        text(&state, cpu)
    }

    fn cpu(waiting: f64, running: f64) -> GuestCpu {
        let idle = 1.0 - waiting - running;
        GuestCpu { machine: None, shares: Shares { waiting, running, idle } }
    }

    #[test]
    fn the_parts_that_were_measured_are_named() {
        assert_eq!(text_of(0, 0, None), None);
        assert_eq!(
            text_of(31_000, 200, None).unwrap(),
            "slow because the guest is not running, or busy: the guest answers after 31.0 ms (at most \
             62.0 ms), the fabric after 200 us (at most 400 us)"
        );
        assert_eq!(
            text_of(0, 80_000, None).unwrap(),
            "slow because of the fabric or the peer: the fabric answers after 80.0 ms (at most 160 ms)"
        );
        assert_eq!(
            text_of(100, 200, None).unwrap(),
            "not slow: the guest answers after 100 us (at most 200 us), the fabric after 200 us (at most \
             400 us)"
        );
    }

    #[test]
    fn a_guest_that_owes_an_answer_now_is_late() {
        let state = FlowState(sys::vcc_flow {
            asked: sys::ASKED_DATA as u8,
            asked_us: 0u32.wrapping_sub(2_000_000),
            guest_us64: 100 * 64,
            guest_worst_us: 300,
            ..testing::state().0
        });
        let flow = testing::flow_of("10.0.0.1:1", "192.0.2.9:80", state);
        assert!(is_guests(&flow));
        assert_eq!(
            text(&flow.state, None).unwrap(),
            "slow because the guest is not running, or busy: the guest answers after 2.00 s (at most 2.00 s)"
        );
    }

    #[test]
    fn not_running_differs_from_busy_and_from_idle() {
        for (cpu, expected) in [
            (cpu(0.61, 0.32), "slow because the guest is not running: "),
            (cpu(0.01, 0.98), "slow because the guest is busy: "),
            (cpu(0.0, 0.02), "slow because the guest is late, though its CPU is idle: "),
        ] {
            let text = text_of(31_000, 200, Some(&cpu)).unwrap();
            assert!(text.starts_with(expected), "{text}");
            let both = text_of(31_000, 20_000, Some(&cpu)).unwrap();
            let because =
                expected.replacen("slow", "slow because of the fabric or the peer, and", 1);
            assert!(both.starts_with(&because), "{both}");
        }
        let fabrics = text_of(200, 31_000, Some(&cpu(0.61, 0.32)));
        assert_eq!(fabrics, text_of(200, 31_000, None), "it is not about the guest");
    }

    #[test]
    fn a_guest_is_described_by_its_medians() {
        let text = text_of_medians(Some(31_000), Some(200), Some(&cpu(0.61, 0.32)));
        assert_eq!(
            text.unwrap(),
            "slow because the guest is not running: it answers after 31.0 ms at the median, the fabric after \
             200 us, its CPU waits for 61 % of the time and runs for 32 %"
        );
        assert_eq!(
            text_of_medians(None, Some(80_000), None).unwrap(),
            "slow because of the fabric or the peer: the fabric answers after 80.0 ms at the median"
        );
        assert_eq!(text_of_medians(None, None, None), None);
    }
}
