package output

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
)

// A Manifest is read shard by shard. Its methods may be called concurrently.
type Manifest struct {
	index *Index

	mu     sync.Mutex
	recent [2]*readPartition // latest first; guarded by mu
}

// NewManifest returns the manifest of a rendered site. The caller must close the manifest instead
// of the index.
func NewManifest(x *Index) *Manifest { return &Manifest{index: x} }

// Close frees the temporary file, if there is one. No other method may be called during or after
// it.
func (m *Manifest) Close() error { return m.index.Close() }

// Get returns a shard or an index, or site.ErrNotFound.
func (m *Manifest) Get(key site.Key) ([]byte, error) {
	entries := m.index.entries
	name := strings.TrimPrefix(string(key), string(site.ManifestKey("")))
	for _, index := range m.index.indexes {
		if index.Name == name {
			return index.Body, nil
		}
	}
	n, ok := slices.BinarySearch(entries.shardNames, name)
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, site.ErrNotFound)
	}
	per := entries.shardsPerPartition()
	partition, err := m.partition(n / per)
	if err != nil {
		return nil, err
	}
	return shards.Pack(partition[n%per].manifest(nil).Append(nil)), nil
}

// A readPartition caches the manifest shards of one partition.
type readPartition struct {
	number int
	once   sync.Once
	shards []shardEntries
	err    error
}

// partition reads a partition, once for shards that are read sequentially.
func (m *Manifest) partition(number int) ([]shardEntries, error) {
	m.mu.Lock()
	p := m.recent[0]
	switch {
	case p != nil && p.number == number:
	case m.recent[1] != nil && m.recent[1].number == number:
		p = m.recent[1]
	default:
		p = &readPartition{number: number}
		m.recent[0], m.recent[1] = p, m.recent[0]
	}
	m.mu.Unlock()
	p.once.Do(func() { p.shards, p.err = m.index.entries.shards(number) })
	if p.err != nil {
		m.forget(p)
	}
	return p.shards, p.err
}

// forget drops a partition after a read error, so that it is read again.
func (m *Manifest) forget(p *readPartition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.recent {
		if m.recent[i] == p {
			m.recent[i] = nil
		}
	}
}
