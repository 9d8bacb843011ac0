use serde_json::{Value, json};
use vcc_engine::Mode;

use super::*;
use crate::Source;
use crate::cache::tests::taken;
use crate::testing::{Fake, HOSTILE, snapshot};

fn ask(query: &str) -> Value {
    let query = Query::parse(query).unwrap_or_else(|wrong| panic!("{query}: {wrong}"));
    let taken = taken([snapshot(100), snapshot(101)]);
    serde_json::to_value(FlowsView::new(&taken, &query)).expect("JSON")
}

fn flows(answer: &Value) -> &Vec<Value> {
    answer["flows"].as_array().expect("flows")
}

#[test]
fn the_top_is_the_top_of_all() {
    for sort in
        ["marks", "cwnd", "rate", "window", "srtt", "alpha", "port", "rule", "limited-by", "peer"]
    {
        for order in ["asc", "desc"] {
            let all = ask(&format!("top=1000&sort={sort}&order={order}"));
            let some = ask(&format!("top=7&sort={sort}&order={order}"));
            assert_eq!(flows(&all).len(), 240);
            let ends = |answer: &Value, count| -> Vec<Value> {
                flows(answer).iter().take(count).map(|flow| flow["guest"].clone()).collect()
            };
            assert_eq!(ends(&some, 7), ends(&all, 7), "{sort} {order}");
        }
    }
    let marks = ask("sort=marks");
    assert!(flows(&marks).windows(2).all(|it| it[0]["marks"].as_u64() >= it[1]["marks"].as_u64()));
}

#[test]
fn every_word_of_a_filter_has_to_be_there() {
    let answer = ask("top=1000&filter=TAP7+backup");
    assert!(answer["matching"].as_u64() > Some(0));
    for flow in flows(&answer) {
        assert_eq!((&flow["port"], &flow["rule"]), (&"tap7".into(), &"backup".into()));
    }
    assert_eq!(ask("filter=nobody")["matching"], 0);
    assert_eq!(ask("filter=vlan%2012")["flows"][0]["vlan"], 12);
    let hostile = ask("top=1&filter=%3Cscript%3E");
    let flow = &flows(&hostile)[0];
    assert!([&flow["rule"], &flow["tenant"]].contains(&&HOSTILE.into()), "{flow}");
}

#[test]
fn an_empty_answer_has_its_reason() {
    assert_eq!(ask("top=1")["why_none"], Value::Null);
    assert_eq!(ask("filter=nobody")["why_none"], "no connection matches the filter");
    let empty = |ports| taken([Fake::sized(ports, 0).snapshot().expect("a snapshot")]);
    let why = |taken: &Taken| {
        let view = FlowsView::new(taken, &Query::parse("filter=nobody").expect("a query"));
        view.why_none.expect("a reason")
    };
    assert!(why(&empty(0)).contains("`vcc attach DEV`"));
    assert!(
        why(&empty(2)).starts_with("no connections, but 1603 segments of connections that began")
    );
}

#[test]
fn columns_that_say_nothing_of_any_flow_are_named() {
    assert_eq!(ask("top=1&filter=nobody")["unknown"], json!([]));
    let mut enforced = snapshot(100);
    enforced.flows.retain(|flow| flow.mode == Some(Mode::Enforce));
    let taken = taken([enforced]);
    let view = FlowsView::new(&taken, &Query::parse("").expect("a query"));
    assert_eq!(view.unknown, ["would_show_bytes"]);
}

#[test]
fn one_flow_is_found_by_its_id() {
    let taken = taken([snapshot(100)]);
    let id = taken.activity.flow_ids[17];
    let query = Query::parse(&format!("top=1&filter=nobody&flow={id:x}")).expect("a query");
    let answer = serde_json::to_value(FlowsView::new(&taken, &query)).expect("JSON");
    assert_eq!(answer["selected"]["guest"], taken.snapshot.flows[17].id().guest.to_string());
}

#[test]
fn invalid_queries_are_rejected_with_a_reason() {
    let wrong = |query| Query::parse(query).err().expect(query).to_string();
    assert_eq!(wrong("top=0"), "`top` is 0: it must be a number from 1 to 1000");
    assert!(wrong("sort=size").starts_with("cannot sort by `size`: place, port"));
    assert!(wrong("order=up").contains("asc or desc"));
    assert!(wrong("flow=xyz").contains("an id"));
    assert!(wrong("colour=red").contains("`colour`"));
    assert!(wrong(&format!("filter={}", "a".repeat(101))).contains("100 bytes"));
    assert!(Query::parse("").is_ok() && Query::parse("&&top=5&").is_ok());
}

#[test]
fn percent_signs_are_decoded_where_they_can_be() {
    assert_eq!(decode("a%20b+c"), "a b c");
    assert_eq!(decode("%3cscript%3E"), "<script>");
    assert_eq!(decode("100%"), "100%");
    assert_eq!(decode("%zz%4"), "%zz%4");
    assert_eq!(decode("%ff"), "\u{fffd}");
    assert_eq!(decode("%+1"), "% 1");
}
