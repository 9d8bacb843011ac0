//! The paths.

use std::sync::Arc;

use hyper::{Request, StatusCode};
use serde::Serialize;

use super::reply::{JSON, Refused, Reply, reply};
use crate::api::{FlowsView, Query, SnapshotView, columns};
use crate::assets;
use crate::cache::{Cache, Failure, Taken};
use crate::health::Health;
use crate::metrics::{self, Zeros};
use crate::tally::{Refusal, Tally};

pub struct Site {
    cache: Arc<Cache>,
    tally: Arc<Tally>,
}

impl Site {
    pub fn new(cache: Arc<Cache>, tally: Arc<Tally>) -> Self {
        Self { cache, tally }
    }

    pub async fn answer<B>(&self, admitted: Result<(), Refused>, request: &Request<B>) -> Reply {
        let found = match admitted {
            Ok(()) => self.find(request.uri().path(), request.uri().query()).await,
            Err(refused) => Err(refused),
        };
        match found {
            Ok(reply) => {
                self.tally.answer();
                reply
            }
            Err(refused) => {
                self.tally.refuse(refused.reason);
                refused.reply()
            }
        }
    }

    async fn find(&self, path: &str, query: Option<&str>) -> Result<Reply, Refused> {
        let ok = |content_type, body: Vec<u8>| Ok(reply(StatusCode::OK, content_type, body));
        match path {
            "/" => ok("text/html; charset=utf-8", assets::PAGE.as_bytes().to_vec()),
            "/style.css" => ok("text/css; charset=utf-8", assets::STYLE.as_bytes().to_vec()),
            "/page.js" => ok("text/javascript; charset=utf-8", assets::SCRIPT.as_bytes().to_vec()),
            "/metrics" => {
                let zeros = Zeros::parse(query.unwrap_or_default()).ok_or_else(|| {
                    let text = "`zeros` must be 0 or 1";
                    Refused::new(StatusCode::BAD_REQUEST, Refusal::Query, text)
                })?;
                let taken = self.cache.get().await;
                let text = metrics::render(&taken, self.cache.failures(), &self.tally, zeros);
                ok(metrics::CONTENT_TYPE, text.into_bytes())
            }
            "/healthz" => {
                let health = Health::from_reading(&self.cache.get().await);
                let status =
                    if health.ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                Ok(reply(status, JSON, json(&health)))
            }
            "/api/snapshot.json" => {
                let taken = self.taken().await?;
                let health = Health::from_reading(&Ok(taken.clone()));
                ok(JSON, json(&SnapshotView::new(&taken, health)))
            }
            "/api/flows.json" => {
                let query = Query::parse(query.unwrap_or_default()).map_err(|error| {
                    Refused::new(StatusCode::BAD_REQUEST, Refusal::Query, error.to_string())
                })?;
                let taken = self.taken().await?;
                ok(JSON, json(&FlowsView::new(&taken, &query)))
            }
            "/api/columns.json" => ok(JSON, json(&columns())),
            "/api/history.json" => ok(JSON, json(&self.cache.history().await)),
            _ => Err(Refused::new(
                StatusCode::NOT_FOUND,
                Refusal::Path,
                "No such path; there are /, /metrics, /healthz, /api/snapshot.json, \
                 /api/flows.json, /api/columns.json, /api/history.json",
            )),
        }
    }

    async fn taken(&self) -> Result<Arc<Taken>, Refused> {
        self.cache.get().await.map_err(|failure: Failure| {
            let text = format!("cannot read the ports: {failure}");
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, Refusal::Unavailable, text)
        })
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("strings for keys, and no foreign serializers")
}
