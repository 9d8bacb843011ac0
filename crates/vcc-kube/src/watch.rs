//! Watches: from the API server's events to news of few fields.

use std::fmt::Debug;

use futures_util::{Stream, StreamExt, pin_mut};
use kube::api::{Api, ApiResource};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

use crate::store::News;
use crate::trouble::Troubles;

/// Ends when dropped.
pub struct Watch(JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Watches all objects of a resource that `config` selects, until `send` returns false. Failures are
/// noted, and tried again with growing pauses of up to half a minute. `why` distinguishes this watch from others
/// of the resource, or is empty.
pub fn watch<K, T>(
    client: &Client,
    resource: &ApiResource,
    config: Config,
    (troubles, why): (&Troubles, &str),
    mut read: impl FnMut(K) -> (String, T) + Send + 'static,
    mut send: impl FnMut(News<T>) -> bool + Send + 'static,
) -> Watch
where
    K: Resource<DynamicType = ApiResource> + Clone + DeserializeOwned + Debug + Send + 'static,
    T: Send + 'static,
{
    let api: Api<K> = Api::all_with(client.clone(), resource);
    let doing = format!("watch {}{why}", resource.plural);
    let troubles = troubles.clone();
    let events = watcher::watcher(api, config).default_backoff();
    Watch(tokio::spawn(async move {
        follow(events, |event| {
            let news = match event {
                Err(
                    watcher::Error::InitialListFailed(error) | watcher::Error::WatchFailed(error),
                ) => {
                    troubles.failed(&doing, &error);
                    return true;
                }
                Err(watcher::Error::WatchStartFailed(error)) => {
                    troubles.failed(&doing, &error);
                    return true;
                }
                // 410 and the like: a list follows by itself.
                Err(_) => return true,
                Ok(event) => event,
            };
            // A list that begins has not been answered yet.
            if !matches!(news, Event::Init) {
                troubles.works(&doing);
            }
            send(match news {
                Event::Init => News::Begin,
                Event::InitApply(object) => {
                    let (key, object) = read(object);
                    News::Listed(key, object)
                }
                Event::InitDone => News::End,
                Event::Apply(object) => {
                    let (key, object) = read(object);
                    News::Is(key, object)
                }
                Event::Delete(object) => News::Gone(read(object).0),
            })
        })
        .await;
    }))
}

async fn follow<E>(events: impl Stream<Item = E>, mut take: impl FnMut(E) -> bool) {
    pin_mut!(events);
    while let Some(event) = events.next().await {
        if !take(event) {
            return;
        }
    }
}
