//! Answers, with the headers that restrict the browser.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};

use crate::tally::Refusal;

pub type Reply = Response<Full<Bytes>>;

pub const TEXT: &str = "text/plain; charset=utf-8";
pub const JSON: &str = "application/json";

/// Only content from here, and neither inline scripts nor inline styles.
const MAY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A refused request, and why.
pub struct Refused {
    pub status: StatusCode,
    pub reason: Refusal,
    pub text: String,
}

impl Refused {
    pub fn new(status: StatusCode, reason: Refusal, text: impl Into<String>) -> Self {
        Self { status, reason, text: text.into() }
    }

    pub fn reply(self) -> Reply {
        let mut reply = reply(self.status, TEXT, self.text + "\n");
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        reply
    }
}

pub fn reply(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, MAY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (hyper::header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        reply.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    reply
}
