//! From text to TOML, as far as it is some.

use toml::de::DeTable;
use toml_parser::decoder::Encoding;
use toml_parser::parser::{EventReceiver, RecursionGuard, ValidateWhitespace, parse_document};
use toml_parser::{ErrorSink, ParseError, Raw, Source, Span};

use crate::problem::{Findings, MOST_SHOWN};

/// A policy with all the rules, keys, networks and ports that there can be has two thirds of it. Each may
/// cost some 100 bytes of memory, whatever the text says.
const MOST_TOKENS: usize = 500_000;

/// As in the crate `toml`; deeper ones it does not read.
const DEEPEST: u32 = 80;

/// What can be read; what cannot is found wrong.
pub(super) fn parse<'a>(text: &'a str, findings: &mut Findings<'_>) -> DeTable<'a> {
    if let Some(at) = text.find('\0') {
        let what = "a NUL byte, which no text has: write the file as UTF-8, not as UTF-16";
        findings.error(&(at..at + 1), what);
        return DeTable::new();
    }
    let source = Source::new(text);
    if let Some(token) = source.lex().nth(MOST_TOKENS) {
        let at = token.span().start();
        findings.error(
            &(at..at),
            format!("no policy is so long: here {MOST_TOKENS} words, values and signs have passed"),
        );
        return DeTable::new();
    }
    if !is_worth_reading(source, findings) {
        return DeTable::new();
    }
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        findings.error_with(&span, || format!("this is not TOML: {}", error.message().trim_end()));
    }
    document.into_inner()
}

/// Where more is wrong than is shown, that is all that is found: the crate `toml` would keep each.
fn is_worth_reading(source: Source<'_>, findings: &mut Findings<'_>) -> bool {
    let mut errors: Vec<ParseError> = Vec::new();
    let mut count = 0;
    let mut keep = |error| {
        count += 1;
        if errors.len() < MOST_SHOWN {
            errors.push(error);
        }
    };
    let mut values = Values(source);
    let mut receiver = ValidateWhitespace::new(&mut values, source);
    let mut receiver = RecursionGuard::new(&mut receiver, DEEPEST);
    parse_document(&source.lex().into_vec(), &mut receiver, &mut keep);
    if count <= MOST_SHOWN {
        return true;
    }
    let mut errors = errors.into_iter();
    for _ in 0..count {
        // Of those that are not shown only the number is told.
        let error = errors.next();
        let span = error.as_ref().and_then(ParseError::unexpected);
        let span = span.map_or(0..0, |span| span.start()..span.end());
        findings.error_with(&span, || {
            let what = error.as_ref().map_or("", ParseError::description);
            format!("this is not TOML: {}", what.trim_end())
        });
    }
    false
}

/// Looks into keys and values, in which most can be wrong.
struct Values<'a>(Source<'a>);

impl<'a> Values<'a> {
    fn raw(&self, span: Span, encoding: Option<Encoding>) -> Raw<'a> {
        let text = self.0.input().get(span.start()..span.end()).unwrap_or_default();
        Raw::new_unchecked(text, encoding, span)
    }
}

impl EventReceiver for Values<'_> {
    fn simple_key(&mut self, span: Span, encoding: Option<Encoding>, errors: &mut dyn ErrorSink) {
        self.raw(span, encoding).decode_key(&mut (), errors);
    }

    fn scalar(&mut self, span: Span, encoding: Option<Encoding>, errors: &mut dyn ErrorSink) {
        // What kind of value it is, the crate `toml` finds out again.
        let _ = self.raw(span, encoding).decode_scalar(&mut (), errors);
    }
}
