//! The dashboard for Grafana, held to the metrics that there are.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::written::assert_asks;

const DASHBOARD: &str = include_str!("../../../../packaging/grafana/vcc.json");

fn dashboard() -> Value {
    serde_json::from_str(DASHBOARD).expect("JSON")
}

fn panels(dashboard: &Value) -> impl Iterator<Item = &Value> {
    dashboard["panels"].as_array().expect("panels").iter()
}

#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let dashboard = dashboard();
    let mut asked = BTreeSet::new();
    for panel in panels(&dashboard).filter(|panel| panel["type"] != "row") {
        let title = &panel["title"];
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        assert!(panel["description"].as_str().is_some_and(|text| text.len() > 10), "{title}");
        let targets = panel["targets"].as_array().expect("targets");
        assert!(!targets.is_empty(), "{title}");
        for target in targets {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            let expression = target["expr"].as_str().expect("an expression");
            let names = assert_asks(expression);
            let is_filtered = |by: &str| expression.contains(&format!("{by}=~\"${by}\""));
            assert_eq!(is_filtered("device"), is_filtered("tenant"), "{title}: {expression}");
            asked.extend(names.into_iter().map(str::to_owned));
        }
    }
    for delay in ["vcc_port_fabric_delay_seconds_bucket", "vcc_port_guest_delay_seconds_bucket"] {
        assert!(asked.contains(delay), "nothing shows {delay}");
    }
    for group in ["vcc_port_", "vcc_rule_", "vcc_pool_", "vcc_policy_", "vcc_web_", "vcc_snapshot_"]
    {
        assert!(asked.iter().any(|name| name.starts_with(group)), "nothing shows {group}*");
    }
}

#[test]
fn the_dashboard_can_be_imported() {
    let dashboard = dashboard();
    assert!(dashboard["schemaVersion"].as_u64() >= Some(41));
    assert!(dashboard["id"].is_null() && dashboard["uid"].is_string());
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let find = |name: &str| variables.iter().find(|variable| variable["name"] == name);
    assert_eq!(find("datasource").expect("a variable")["type"], "datasource");
    for name in ["instance", "tenant", "device", "rule"] {
        assert_eq!(find(name).expect("a variable")["datasource"]["uid"], "${datasource}");
    }
    let ids: BTreeSet<u64> =
        panels(&dashboard).map(|it| it["id"].as_u64().expect("an id")).collect();
    assert_eq!(ids.len(), panels(&dashboard).count());
    let mut taken = BTreeSet::new();
    for panel in panels(&dashboard) {
        let [x, y, w, h] =
            ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().expect("a place"));
        assert!(x + w <= 24 && w > 0 && h > 0, "{}", panel["title"]);
        for place in (x..x + w).flat_map(|column| (y..y + h).map(move |row| (column, row))) {
            assert!(taken.insert(place), "{} lies on another panel", panel["title"]);
        }
    }
}
