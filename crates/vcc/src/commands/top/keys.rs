//! The keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use vcc_view::{FLOW_COLUMNS, Sort};

use super::model::Model;

const PAGE: usize = 10;

/// The keys that choose an order: those of the columns, and one for the place.
pub fn orders() -> Vec<(char, Sort)> {
    let of_column = FLOW_COLUMNS.iter().filter_map(|column| {
        let key = column.top?.key?;
        Some((key, Sort::natural(Some(column))))
    });
    of_column.chain([('n', Sort::natural(None))]).collect()
}

impl Model {
    pub fn press(&mut self, key: KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => self.end(),
            _ if is_control => {}
            code if self.is_typing => self.type_in(code),
            _ if self.has_help => self.has_help = false,
            code => self.command(code),
        }
    }

    fn type_in(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char(letter) => self.typed.push(letter),
            KeyCode::Backspace => {
                self.typed.pop();
            }
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.typed.clear();
                self.is_typing = false;
            }
            code => return self.go(code),
        }
        self.arrange();
    }

    fn command(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('q') => self.end(),
            KeyCode::Char('?' | 'h') => self.has_help = true,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('p' | ' ') => self.toggle_pause(),
            KeyCode::Char('i') => self.sort = self.sort.reversed(),
            KeyCode::Char('<') => self.next_order(-1),
            KeyCode::Char('>') => self.next_order(1),
            KeyCode::Enter => self.has_detail = !self.has_detail,
            KeyCode::Esc => self.typed.clear(),
            KeyCode::Char(letter) => match orders().into_iter().find(|(key, _)| *key == letter) {
                Some((_, sort)) => self.order_by(sort),
                None => return self.go(code),
            },
            code => return self.go(code),
        }
        self.arrange();
    }

    fn next_order(&mut self, step: isize) {
        let orders = orders();
        let at = orders.iter().position(|(_, sort)| sort.name() == self.sort.name()).unwrap_or(0);
        let next = (at as isize + step).rem_euclid(orders.len() as isize);
        self.order_by(orders[next as usize].1);
    }

    /// An inverted order stays inverted.
    fn order_by(&mut self, sort: Sort) {
        self.sort = if self.sort.is_reversed() { sort.reversed() } else { sort };
    }

    fn go(&mut self, code: KeyCode) {
        let at = self.selected_index().unwrap_or(0);
        let last = self.flows.len().saturating_sub(1);
        self.select(match code {
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => at + 1,
            KeyCode::PageUp => at.saturating_sub(PAGE),
            KeyCode::PageDown => at + PAGE,
            KeyCode::Home => 0,
            KeyCode::End => last,
            _ => return,
        });
    }
}

#[cfg(test)]
mod tests {
    use vcc_view::testing::flow;
    use vcc_view::{Filter, FlowView, Rates, Snapshot, key_of};

    use super::*;

    fn with_rate(guest: &str, rate: f64) -> FlowView {
        let mut flow = flow(guest, "203.0.113.9:80");
        flow.rates = Some(Rates { goodput_bits_per_s: rate, ..Default::default() });
        flow
    }

    fn snapshot() -> Snapshot {
        let flows = vec![
            with_rate("192.0.2.1:1001", 1.0),
            with_rate("192.0.2.2:1002", 3.0),
            with_rate("198.51.100.3:1003", 2.0),
        ];
        Snapshot { flows, ..Default::default() }
    }

    fn model() -> Model {
        let mut model = Model::new(Filter::default(), Sort::natural(key_of("goodput_bits_per_s")));
        model.update(snapshot());
        model
    }

    fn press(model: &mut Model, keys: &str) {
        keys.chars().for_each(|key| model.press(KeyCode::Char(key).into()));
    }

    fn guests(model: &Model) -> Vec<u16> {
        model.flows.iter().map(|flow| flow.id().guest.port()).collect()
    }

    fn selected(model: &Model) -> Option<u16> {
        model.selected().map(|(flow, _)| flow.id().guest.port())
    }

    #[test]
    fn keys_choose_orders() {
        let mut model = model();
        assert_eq!(guests(&model), [1002, 1003, 1001]);
        press(&mut model, "n");
        assert_eq!(guests(&model), [1001, 1002, 1003]);
        press(&mut model, "i");
        assert_eq!(guests(&model), [1003, 1002, 1001]);
        press(&mut model, ">");
        assert_eq!(model.sort.name(), "rate", "after the last order comes the first");
        press(&mut model, "<<");
        assert_eq!(model.sort.name(), "retransmissions-rate");
    }

    #[test]
    fn the_selection_stays_with_its_flow() {
        let mut model = model();
        assert_eq!(selected(&model), Some(1002));
        model.press(KeyCode::Down.into());
        assert_eq!(selected(&model), Some(1003));
        press(&mut model, "n");
        assert_eq!(selected(&model), Some(1003));
        press(&mut model, "jjj");
        assert_eq!(selected(&model), Some(1003), "the last");
        model.press(KeyCode::Home.into());
        assert_eq!(selected(&model), Some(1001));
        let mut without = snapshot();
        without.flows.remove(0);
        model.update(without);
        assert_eq!(selected(&model), Some(1002), "the first, where it has gone");
        model.update(Snapshot::default());
        assert!(selected(&model).is_none());
        press(&mut model, "jk");
    }

    #[test]
    fn typing_chooses_flows() {
        let mut model = model();
        press(&mut model, "/192.0.2.0/24");
        assert_eq!(guests(&model), [1002, 1001]);
        press(&mut model, " :1001");
        assert_eq!(guests(&model), [1001]);
        for _ in 0.." :1001".len() {
            model.press(KeyCode::Backspace.into());
        }
        model.press(KeyCode::Enter.into());
        assert!(!model.is_typing);
        // Letters are commands again.
        press(&mut model, "n");
        assert_eq!(guests(&model), [1001, 1002]);
        model.press(KeyCode::Esc.into());
        assert_eq!(guests(&model), [1001, 1002, 1003]);
        press(&mut model, "/under");
        assert_eq!(model.flows.len(), 3, "what limits them");
        press(&mut model, "nowhere");
        assert_eq!((model.flows.len(), model.flow_count), (0, 3));
        assert!(selected(&model).is_none());
    }

    #[test]
    fn ends_and_toggles() {
        let mut model = model();
        press(&mut model, "p?");
        assert!(model.is_paused() && model.has_help);
        press(&mut model, "q");
        assert!(!model.has_help && !model.is_over(), "any key ends the help");
        press(&mut model, " ");
        assert!(!model.is_paused());
        model.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(model.is_over());
    }
}
