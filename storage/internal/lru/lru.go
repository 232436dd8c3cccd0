// Package lru caches the most recently used values. (otter, which the server uses, prefers frequently used values, and
// would drop each chunk of a sequence at once.)
package lru

import (
	"container/list"
	"sync"
)

// A Cache holds the most recently used values, up to a total weight. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	most int64

	mu     sync.Mutex
	weight int64
	used   list.List // holds *entry, most recently used first
	byKey  map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key    K
	value  V
	weight int64
}

// New returns a cache of values with that weight in total. A single value may have more.
func New[K comparable, V any](most int64) *Cache[K, V] {
	return &Cache[K, V]{most: most, byKey: map[K]*list.Element{}}
}

// Get returns a value, and marks it as used.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.byKey[key]
	if !ok {
		return value, false
	}
	c.used.MoveToFront(element)
	return element.Value.(*entry[K, V]).value, true
}

// Put adds a value. An existing one stays.
func (c *Cache[K, V]) Put(key K, value V, weight int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byKey[key]; ok {
		return
	}
	c.byKey[key] = c.used.PushFront(&entry[K, V]{key, value, weight})
	c.weight += weight
	for c.weight > c.most && c.used.Len() > 1 {
		oldest := c.used.Remove(c.used.Back()).(*entry[K, V])
		delete(c.byKey, oldest.key)
		c.weight -= oldest.weight
	}
}
