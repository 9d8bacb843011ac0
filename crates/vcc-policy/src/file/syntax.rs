//! From text to TOML.

use toml::de::DeTable;
use toml_parser::decoder::Encoding;
use toml_parser::parser::{EventReceiver, RecursionGuard, ValidateWhitespace, parse_document};
use toml_parser::{ErrorSink, ParseError, Raw, Source, Span};

use crate::problem::{Findings, MOST_SHOWN};

/// The largest possible policy has two thirds of this. Each token may cost some 100 bytes of memory.
const MOST_TOKENS: usize = 500_000;

/// The limit of the crate `toml`.
const DEEPEST: u32 = 80;

/// Parses the valid parts of the text and adds the errors to the findings.
pub(super) fn parse<'a>(text: &'a str, findings: &mut Findings<'_>) -> DeTable<'a> {
    if let Some(at) = text.find('\0') {
        let what = "a NUL byte: save the file as UTF-8, not as UTF-16";
        findings.error(&(at..at + 1), what);
        return DeTable::new();
    }
    let source = Source::new(text);
    if let Some(token) = source.lex().nth(MOST_TOKENS) {
        let at = token.span().start();
        findings.error(
            &(at..at),
            format!("the file is too long: more than {MOST_TOKENS} words, values and signs"),
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

/// False where there are more errors than are shown: the crate `toml` would keep all of them.
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
        // The rest is only counted.
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

/// Checks keys and values, where most errors are.
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
        // The crate `toml` decodes the value again.
        let _ = self.raw(span, encoding).decode_scalar(&mut (), errors);
    }
}
