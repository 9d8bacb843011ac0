//! A real browser, without a screen, by the Chrome DevTools Protocol over a pair of pipes:
//! https://chromedevtools.github.io/devtools-protocol/

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use vcc_testing::skip;

/// Numbers 3 and 4 are where the browser reads commands and writes what happens; it has no more
/// time than `timeout` gives it, so a test cannot hang. The pages are ours, so they need no
/// sandbox, which root cannot have.
const START: &str = "exec timeout --kill-after=10 300 chromium --headless --remote-debugging-pipe --no-sandbox \
     --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking \
     --user-data-dir=\"$1\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null";

pub struct Browser {
    child: Child,
    commands: ChildStdin,
    printed: BufReader<ChildStdout>,
    session: Option<String>,
    last_id: u64,
    /// The events since the last page was opened.
    events: Vec<Value>,
}

/// The size of a screen, and whether it is a phone's.
pub struct Screen {
    pub width: u32,
    pub height: u32,
    pub is_phone: bool,
}

impl Browser {
    /// None, and the test is counted as skipped, where there is no browser.
    #[track_caller]
    pub fn start(profile: &Path) -> Option<Self> {
        let version = Command::new("timeout").args(["60", "chromium", "--version"]).output();
        if !version.is_ok_and(|output| output.status.success()) {
            skip("no chromium");
            return None;
        }
        let mut child = Command::new("sh")
            .args(["-c", START, "sh"])
            .arg(profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let commands = child.stdin.take().expect("a pipe");
        let printed = BufReader::new(child.stdout.take().expect("a pipe"));
        let (session, events) = (None, Vec::new());
        let mut browser = Self { child, commands, printed, session, last_id: 0, events };
        let tab = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": tab["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(Into::into);
        for part in ["Page", "Network", "Log", "Runtime"] {
            browser.call(&format!("{part}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Loads an address as such a screen shows it, in a `light` or a `dark` scheme.
    pub fn open(&mut self, url: &str, screen: &Screen, scheme: &str) {
        let Screen { width, height, is_phone } = screen;
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone,
        });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
        self.events.clear();
        self.call("Page.navigate", json!({"url": url}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let message = self.hear();
            self.events.push(message);
        }
    }

    /// The value of an expression on the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Addresses of all that the page asked for, itself included.
    pub fn requested(&self) -> Vec<&str> {
        let requests = self.events_of(&["Network.requestWillBeSent"]);
        requests.filter_map(|event| event["params"]["request"]["url"].as_str()).collect()
    }

    /// Errors and warnings of the browser and the page.
    pub fn complaints(&self) -> Vec<&Value> {
        let methods = ["Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"];
        self.events_of(&methods).collect()
    }

    fn events_of<'a>(&'a self, methods: &[&str]) -> impl Iterator<Item = &'a Value> {
        let is_one = |event: &&Value| methods.iter().any(|method| event["method"] == *method);
        self.events.iter().filter(is_one)
    }

    /// A command of the protocol, and what it returns.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut command = json!({"id": self.last_id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            command["sessionId"] = session.as_str().into();
        }
        self.commands.write_all(format!("{command}\0").as_bytes()).expect("a browser that reads");
        loop {
            let message = self.hear();
            if message["id"] == self.last_id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn hear(&mut self) -> Value {
        let mut message = Vec::new();
        self.printed.read_until(0, &mut message).expect("a browser that answers");
        assert_eq!(message.pop(), Some(0), "the browser has ended");
        serde_json::from_slice(&message).expect("JSON")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.commands.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.child.wait();
    }
}
