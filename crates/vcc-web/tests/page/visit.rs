//! A visit of the page of a host that does not exist, by one browser at a time.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use vcc_web::testing::Fake;
use vcc_web::{Server, serve};

use crate::browser::{Browser, Screen};

/// How often a condition is checked, within a minute at least.
const LOOKS: usize = 1200;

pub const DESK: Screen = Screen { width: 1600, height: 1000, is_phone: false };
pub const PHONE: Screen = Screen { width: 390, height: 844, is_phone: true };

/// A browser that shares the CPUs with others may draw no frame for as long as a test waits.
static ONE_BROWSER: Mutex<()> = Mutex::new(());

pub struct Visit {
    pub server: Option<Server>,
    pub browser: Browser,
    url: String,
    _alone: MutexGuard<'static, ()>,
}

/// None where there is no browser.
#[track_caller]
pub fn visit(name: &str) -> Option<Visit> {
    visit_to(name, Fake::live())
}

#[track_caller]
pub fn visit_to(name: &str, host: Fake) -> Option<Visit> {
    // A test that failed leaves nothing behind the lock.
    let alone = ONE_BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    let profile = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let browser = Browser::start(&profile)?;
    let listen = "127.0.0.1:0".parse().expect("an address");
    let server = serve(listen, Arc::new(host)).expect("a server");
    let url = format!("http://{}/", server.address());
    Some(Visit { server: Some(server), browser, url, _alone: alone })
}

impl Visit {
    pub fn open(&mut self, screen: &Screen, scheme: &str) {
        // From elsewhere, or one that differs by its hash would not be loaded again.
        self.browser.open("about:blank", screen, scheme);
        self.browser.open(&self.url, screen, scheme);
        self.wait("document.querySelectorAll('#flows tbody tr').length >= 25");
        // Rates need two snapshots.
        self.wait("document.querySelectorAll('#rules tbody tr').length > 0");
        self.wait("!document.querySelector('#tiles').textContent.includes('–')");
        // The fastest flow is the first one as soon as flows have rates.
        self.wait(
            "document.querySelector('#flows [data-key=goodput_bits_per_s]').textContent !== '–'",
        );
    }

    /// For a host with few flows or none.
    pub fn open_small(&mut self, screen: &Screen) {
        self.browser.open("about:blank", screen, "light");
        self.browser.open(&self.url, screen, "light");
        self.wait("document.querySelectorAll('#rules tbody tr').length > 0");
    }

    /// The address as the page has changed it.
    pub fn reopen(&mut self, screen: &Screen) {
        let address = self.browser.evaluate("location.href");
        self.browser.open("about:blank", screen, "light");
        self.browser.open(address.as_str().expect("an address"), screen, "light");
    }

    /// Until the page has newer data.
    #[track_caller]
    pub fn wait_for_data(&mut self) {
        self.browser.evaluate("window.before = snapshot.at_unix_ms");
        self.wait("snapshot.at_unix_ms > before && flows.at_unix_ms > before");
    }

    pub fn type_text(&mut self, text: &str) {
        self.browser.call("Input.insertText", json!({"text": text}));
    }

    /// Of a `<select>`.
    pub fn choose(&mut self, selector: &str, value: &str) {
        let chosen = format!(
            "(it => {{ it.value = {}; it.dispatchEvent(new Event('change')) }})(document.querySelector({}))",
            json!(value),
            json!(selector)
        );
        self.browser.evaluate(&chosen);
    }

    #[track_caller]
    pub fn wait(&mut self, condition: &str) {
        for _ in 0..LOOKS {
            if self.is(condition) {
                return;
            }
            let is_thrown = |event: &&&Value| event["method"] == "Runtime.exceptionThrown";
            let thrown = self.browser.complaints();
            let thrown = thrown.iter().find(is_thrown);
            assert!(thrown.is_none(), "{thrown:?}, while waiting for: {condition}");
            thread::sleep(Duration::from_millis(50));
        }
        panic!("never: {condition}");
    }

    pub fn is(&mut self, condition: &str) -> bool {
        self.browser.evaluate(condition) == true
    }

    pub fn text(&mut self, selector: &str) -> String {
        let asked = format!("document.querySelector({}).textContent", json!(selector));
        self.browser.evaluate(&asked).as_str().expect("text").into()
    }

    pub fn press(&mut self, key: &str) {
        let text = match key {
            "Enter" => "\r",
            key if key.len() == 1 => key,
            _ => "",
        };
        let code = [("Enter", 13), ("Escape", 27), ("Tab", 9), ("ArrowUp", 38), ("ArrowDown", 40)];
        let code = code.iter().find(|(name, _)| *name == key).map_or(0, |(_, code)| *code);
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = text.into();
            }
            self.browser.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Another screen for the page as it is.
    pub fn turn_to(&mut self, screen: &Screen, scheme: &str) {
        let Screen { width, height, is_phone } = screen;
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone,
        });
        self.browser.call("Emulation.setDeviceMetricsOverride", metrics);
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.browser.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
        // ResizeObserver callbacks run after the layout, before the next frame but one.
        self.browser.evaluate(
            "window.drawn = false; \
             requestAnimationFrame(() => requestAnimationFrame(() => { window.drawn = true; }))",
        );
        self.wait("drawn");
    }

    /// A list that an expression gives.
    pub fn list(&mut self, expression: &str) -> Vec<Value> {
        self.browser.evaluate(expression).as_array().expect("a list").clone()
    }

    /// A picture of the whole page, for people.
    pub fn picture(&mut self, name: &str) {
        let asked = json!({"format": "png", "captureBeyondViewport": true});
        let answer = self.browser.call("Page.captureScreenshot", asked);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pictures");
        fs::create_dir_all(&folder).expect("a folder");
        let bytes = from_base64(answer["data"].as_str().expect("a picture"));
        fs::write(folder.join(format!("{name}.png")), bytes).expect("written");
    }

    /// The cells of a column of the flows.
    pub fn column(&mut self, key: &str) -> Vec<String> {
        let asked = format!(
            "[...document.querySelectorAll('#flows tbody [data-key={key}]')].map(cell => cell.textContent)"
        );
        let values = self.browser.evaluate(&asked);
        let values = values.as_array().expect("a column").iter();
        values.map(|value| value.as_str().expect("text").to_owned()).collect()
    }

    #[track_caller]
    pub fn assert_quiet(&self) {
        assert_eq!(self.browser.complaints(), Vec::<&Value>::new());
        for url in self.browser.requested() {
            assert!(url.starts_with(&self.url) || url.starts_with("data:"), "{url}");
        }
    }
}

/// By RFC 4648.
fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> = text
        .bytes()
        .filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte))
        .map(|digit| digit as u32)
        .collect();
    let bytes = digits.chunks(4).flat_map(|four| {
        let bits = four.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    });
    bytes.collect()
}
