package publisher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A mark says that the bucket may hold what its manifest does not name, and what the
// runs since then may have put there.
type mark struct {
	Runs []markedRun `json:"runs"` // in the order of their beginnings; equal neighbours are one
}

// A markedRun is what has to be known about runs that were cut off: the keys and the
// headers of what they put.
type markedRun struct {
	Since       time.Time           `json:"since"` // by the bucket's clock
	Config      site.Config         `json:"config"`
	HeaderRules map[string]site.MD5 `json:"header_rules"`
}

// clockSlack is how much older than the mark an object may look that was put after it:
// a server's answers tell whole seconds, and so do the times of what it unpacked.
const clockSlack = 2 * time.Second

// readMark gives nil if there is no mark.
func readMark(ctx context.Context, bucket *patient) (*mark, error) {
	body, _, err := bucket.read(ctx, site.MarkKey)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var m mark
	if json.Unmarshal(body, &m) != nil {
		m = mark{} // that there is one is what counts most
	}
	return &m, nil
}

// writeMark makes sure that the mark names the site that is about to be put. A new mark
// begins with the live one: what is left of it when the root is another still has to go.
func writeMark(ctx context.Context, bucket *patient, found *mark, live, next *site.Root) error {
	var m mark
	switch {
	case found != nil:
		m = *found
	case live != nil:
		m.Runs = []markedRun{{time.Time{}, live.Config, live.HeaderRules}}
	}
	if n := len(m.Runs); found != nil && n > 0 && m.Runs[n-1].Config == next.Config && maps.Equal(m.Runs[n-1].HeaderRules, next.HeaderRules) {
		return nil
	}
	m.Runs = append(m.Runs, markedRun{bucket.bucket.Now().Add(-clockSlack).UTC(), next.Config, next.HeaderRules})
	return m.write(ctx, bucket, storage.Always)
}

// addMark leaves a mark for a run that may have put objects into the site of another
// one. Where there is a mark already, that says enough.
func addMark(ctx context.Context, bucket *patient, next *site.Root) error {
	m := mark{[]markedRun{{bucket.bucket.Now().UTC(), next.Config, next.HeaderRules}}}
	err := m.write(ctx, bucket, storage.IfAbsent)
	if errors.Is(err, storage.ErrCondition) {
		return nil
	}
	return err
}

func (m *mark) write(ctx context.Context, bucket *patient, condition storage.Condition) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode the mark: %w", err)
	}
	_, err = bucket.put(ctx, ownObject(site.MarkKey, body), condition)
	return err
}

// rulesAt is the digest of the headers that an object has that was put at a time;
// ok is false where that is not known.
func (m *mark) rulesAt(put time.Time, pattern string, live *site.Root) (rules site.MD5, ok bool) {
	for i := len(m.Runs) - 1; i >= 0; i-- {
		if !put.Before(m.Runs[i].Since) {
			return m.Runs[i].HeaderRules[pattern], true
		}
	}
	if live == nil {
		return site.MD5{}, false
	}
	return live.HeaderRules[pattern], true
}

// configs are those of every site whose objects may be in the bucket.
func (m *mark) configs(live, next *site.Root) []site.Config {
	configs := []site.Config{next.Config}
	if live != nil {
		configs = append(configs, live.Config)
	}
	for _, run := range m.Runs {
		configs = append(configs, run.Config)
	}
	return configs
}

// ofASite reports whether a key has the form of an object's of a site with one of the
// configurations; others belong to somebody else.
func ofASite(key site.Key, configs []site.Config) bool {
	for _, c := range configs {
		if _, ok := c.RouteOf(key); ok {
			return true
		}
	}
	return key == site.PackKey
}
