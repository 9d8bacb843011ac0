//! A copy of the API server's objects of one kind, kept up to date by a watch.

use std::collections::BTreeMap;

/// An event of a watch. After `Begin` all objects come again, up to `End`.
#[derive(Clone, Debug)]
pub enum News<T> {
    Begin,
    Listed(String, T),
    End,
    Is(String, T),
    Gone(String),
}

impl<T> News<T> {
    /// The same of something else that is made of each object.
    pub fn map<U>(self, of: impl FnOnce(&str, T) -> U) -> News<U> {
        match self {
            Self::Begin => News::Begin,
            Self::Listed(name, object) => {
                let object = of(&name, object);
                News::Listed(name, object)
            }
            Self::End => News::End,
            Self::Is(name, object) => {
                let object = of(&name, object);
                News::Is(name, object)
            }
            Self::Gone(name) => News::Gone(name),
        }
    }
}

#[derive(Debug)]
pub struct Store<T> {
    objects: BTreeMap<String, T>,
    /// Those of a list that has begun. The ones before it stay until it has ended.
    coming: BTreeMap<String, T>,
    is_complete: bool,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), coming: BTreeMap::new(), is_complete: false }
    }
}

impl<T: PartialEq> Store<T> {
    /// Whether all objects have been heard of once.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub fn objects(&self) -> &BTreeMap<String, T> {
        &self.objects
    }

    /// Of the list that has begun, what has come.
    pub fn coming(&self) -> &BTreeMap<String, T> {
        &self.coming
    }

    /// Returns whether an object has changed, or all are there for the first time.
    pub fn apply(&mut self, news: News<T>) -> bool {
        match news {
            News::Begin => {
                self.coming.clear();
                false
            }
            News::Listed(key, object) => {
                self.coming.insert(key, object);
                false
            }
            News::End => {
                let before = std::mem::replace(&mut self.objects, std::mem::take(&mut self.coming));
                !std::mem::replace(&mut self.is_complete, true) || before != self.objects
            }
            News::Is(key, object) => {
                if self.objects.get(&key) == Some(&object) {
                    return false;
                }
                self.objects.insert(key, object);
                self.is_complete
            }
            News::Gone(key) => self.objects.remove(&key).is_some() && self.is_complete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_replaces_what_was_there_when_it_is_complete() {
        let mut store = Store::default();
        let listed = |key: &str, value| News::Listed(key.to_owned(), value);
        assert!(!store.apply(News::Begin));
        assert!(!store.apply(listed("a", 1)));
        assert!(!store.is_complete());
        assert!(store.apply(News::End), "complete for the first time");
        assert!(!store.apply(News::Is("a".into(), 1)), "the same again");
        assert!(store.apply(News::Is("a".into(), 2)));
        assert!(!store.apply(News::Begin));
        assert!(!store.apply(listed("a", 2)));
        assert!(store.is_complete(), "the last list holds");
        assert!(!store.apply(News::End), "all the same again");
        store.apply(News::Begin);
        assert_eq!(store.objects().len(), 1);
        assert!(store.apply(News::End));
        assert!(store.objects().is_empty());
        assert!(!store.apply(News::Gone("a".into())));
    }
}
