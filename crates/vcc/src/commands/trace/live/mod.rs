//! The last seconds of a connection on the terminal.

mod draw;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use vcc_port::{Flow, FlowId, monotonic};
use vcc_view::{FlowView, Place, Recording, Source, limit};

use super::series::Series;
use crate::interrupt;
use crate::terminal::{self, Screen};
use draw::View;

pub const INSTEAD: &str = "--plot draws to a file, and `vcc trace FLOW` prints values";
/// More frequent pictures would not be seen.
const REDRAW: Duration = Duration::from_millis(100);
/// Terminals have no finer resolution.
const STEP_S: f64 = 0.005;
const SPANS_S: std::ops::RangeInclusive<f64> = 1.0..=600.0;

/// Runs until the connection or the port is gone, the user quits, or `until`. Returns what limited the
/// connection last.
pub fn run(
    port: &Source,
    trace: &mut Recording,
    id: FlowId,
    span: Duration,
    until: Option<Instant>,
) -> anyhow::Result<String> {
    let params = super::treatment(port, Some(id))?;
    let began = monotonic();
    let mut series = Series::thinned(began.as_micros() as u64, STEP_S);
    let mut span_s = span.as_secs_f64();
    let mut is_paused = false;
    let mut view: Option<FlowView> = None;
    let mut screen = Screen::take(INSTEAD)?;
    let mut next = Instant::now();
    let mut last_time_s = 0.0;
    let ended = loop {
        while let Some(event) = trace.next(Duration::ZERO)? {
            series.note(&event);
            if Instant::now() >= next {
                break;
            }
        }
        if Instant::now() >= next {
            next = Instant::now() + REDRAW;
            let now = monotonic();
            let time_s = now.saturating_sub(began).as_secs_f64();
            let is_there = !trace.has_ended() && port.is_attached()?;
            let flow = if is_there { port.flow(&id)? } else { None };
            let Some(flow) = flow else { break "it has ended" };
            if !is_paused {
                last_time_s = time_s;
                view = Some(seen(port, &flow, &params, now));
                series.forget_before(time_s - SPANS_S.end());
            }
            if let Some(flow) = &view {
                let view = View { flow, series: &series, now_s: last_time_s, span_s, is_paused };
                screen.terminal.draw(|frame| draw::draw(&view, frame))?;
            }
        }
        if interrupt::came() || until.is_some_and(|until| Instant::now() >= until) {
            break "";
        }
        // A quarter of the interval, so that the ring of ACKs does not overflow.
        let Some(event) = terminal::next_event(REDRAW / 4)? else { continue };
        let Event::Key(key) = event else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        next = Instant::now();
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => break "",
            KeyCode::Char('q') | KeyCode::Esc => break "",
            KeyCode::Char('p' | ' ') => is_paused = !is_paused,
            KeyCode::Char('+') => span_s = (span_s / 2.0).max(*SPANS_S.start()),
            KeyCode::Char('-') => span_s = (span_s * 2.0).min(*SPANS_S.end()),
            _ => {}
        }
    };
    drop(screen);
    let limited =
        view.map_or(String::new(), |flow| format!("limited by {}", limit::text(flow.limit)));
    Ok(match ended {
        "" => format!("{id}: {limited}\n"),
        ended => format!("{id}: {ended}; at last {limited}\n"),
    })
}

fn seen(port: &Source, flow: &Flow, params: &vcc_engine::Params, now: Duration) -> FlowView {
    let name: Arc<str> = port.device().into();
    let place = Place { index: 0, key: name.clone(), port: name, tenant: None };
    FlowView::new(&place, flow, None, params, None, now.as_micros() as u64)
}
