//! Watches: from the API server's events to news of few fields.

use std::fmt::Debug;
use std::time::Instant;

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
            note(&troubles, &doing, &event, Instant::now());
            let Ok(event) = event else { return true };
            send(match event {
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

/// Notes a failure, or that the watch works.
fn note<K>(troubles: &Troubles, doing: &str, event: &watcher::Result<Event<K>>, now: Instant) {
    use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
    match event {
        Err(InitialListFailed(error) | WatchFailed(error) | WatchStartFailed(error)) => {
            troubles.failed_at(doing, error, now);
        }
        // 410 and the like: a list follows by itself.
        Err(_) => {}
        // A list that always fails after its first page brings these again and again.
        Ok(Event::Init | Event::InitApply(_)) => {}
        Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)) => troubles.works(doing),
    }
}

async fn follow<E>(events: impl Stream<Item = E>, mut take: impl FnMut(E) -> bool) {
    pin_mut!(events);
    while let Some(event) = events.next().await {
        if !take(event) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_list_that_fails_at_a_later_page_is_reported() {
        let (troubles, begin) = (Troubles::default(), Instant::now());
        let note = |event: watcher::Result<Event<()>>, at: Instant| {
            note(&troubles, "watch pods", &event, at);
        };
        let fails =
            || watcher::Error::InitialListFailed(kube::Error::LinesCodecMaxLineLengthExceeded);
        for seconds in [0, 30, 60, 90] {
            let at = begin + Duration::from_secs(seconds);
            note(Ok(Event::Init), at);
            note(Ok(Event::InitApply(())), at);
            note(Err(fails()), at);
            assert_eq!(troubles.lasting_at(at).len(), usize::from(seconds >= 60), "{seconds}");
        }
        let at = begin + Duration::from_secs(91);
        note(Ok(Event::InitDone), at);
        assert_eq!(troubles.lasting_at(at), [""; 0]);
        for live in [Event::Apply(()), Event::Delete(())] {
            note(Err(fails()), begin + Duration::from_secs(30));
            note(Err(fails()), at);
            assert_eq!(troubles.lasting_at(at).len(), 1);
            note(Ok(live), at);
            assert_eq!(troubles.lasting_at(at), [""; 0]);
        }
    }
}
