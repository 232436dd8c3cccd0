package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A Mark means that the bucket may differ from its manifest because of the named runs.
type Mark struct {
	Runs []Run `json:"runs"` // ordered by beginning; successive runs with the same rules are merged
	etag string
}

// A Run describes the keys and headers that a run may have put.
type Run struct {
	Since       time.Time           `json:"since"` // beginning of the run, by the bucket's clock
	Config      site.Config         `json:"config"`
	HeaderRules map[string]site.MD5 `json:"header_rules"`
}

// clockSlack is how far apart the clocks of a bucket's servers may be: one records when a run
// began, another when an object was put.
const clockSlack = 15 * time.Minute

// ReadMark reads the mark. It returns nil if there is none.
func ReadMark(ctx context.Context, bucket *requests.Bucket) (*Mark, error) {
	body, info, err := bucket.Read(ctx, site.MarkKey)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var m Mark
	if json.Unmarshal(body, &m) != nil {
		m = Mark{} // an unreadable mark still means that the bucket may differ
	}
	m.etag = info.ETag
	return &m, nil
}

// equal reports whether two runs began at the same time and have the same rules.
func (r Run) equal(other Run) bool {
	return r.Since.Equal(other.Since) && r.SameRules(other)
}

// SameRules reports whether two runs put sites with the same forms of keys and the same headers.
func (r Run) SameRules(other Run) bool {
	return r.Config == other.Config && maps.Equal(r.HeaderRules, other.HeaderRules)
}

// WriteMark makes sure that the mark names the next site, and returns all runs that it names. A new
// mark also names the live site or the sites of a doubt, so that their leftovers are found and
// deleted later.
func WriteMark(ctx context.Context, bucket *requests.Bucket, found *Mark, live, next *site.Root) ([]Run, error) {
	for range maxLockWrites {
		var m Mark
		condition := storage.IfAbsent
		switch {
		case found != nil:
			m = *found
		case live != nil:
			m.Runs = []Run{{time.Time{}, live.Config, live.HeaderRules}}
		}
		if m.etag != "" {
			condition = storage.Condition(m.etag)
		}
		run := Run{bucket.Now().UTC(), next.Config, next.HeaderRules}
		if n := len(m.Runs); m.etag != "" && n > 0 && m.Runs[n-1].SameRules(run) {
			return m.Runs, nil
		}
		m.Runs = append(slices.Clip(m.Runs), run)
		err := m.write(ctx, bucket, condition)
		if errors.Is(err, storage.ErrUnsupported) {
			err = m.write(ctx, bucket, storage.Always)
		}
		if !errors.Is(err, storage.ErrCondition) && !errors.Is(err, storage.ErrNotFound) {
			return m.Runs, err
		}
		// The answer to an earlier attempt was lost, or another run's mark has arrived late.
		if found, err = ReadMark(ctx, bucket); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("put %s: others keep replacing it; try again", site.MarkKey)
}

func (m *Mark) write(ctx context.Context, bucket *requests.Bucket, condition storage.Condition) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode the mark: %w", err)
	}
	_, err = bucket.Put(ctx, OwnObject(site.MarkKey, body), condition)
	return err
}

// RulesAt returns the digest of the header rules of an object that was put at a time. ok is false
// if runs with different rules may have put it, perhaps by late requests.
func (m *Mark) RulesAt(put time.Time, pattern string, live *site.Root) (rules site.MD5, ok bool) {
	var possible []site.MD5
	if live != nil && (len(m.Runs) == 0 || put.Before(m.Runs[0].Since.Add(requests.Lateness))) {
		possible = append(possible, live.HeaderRules[pattern])
	}
	for i, run := range m.Runs {
		if run.begunBy(put) && (i+1 == len(m.Runs) || put.Before(m.Runs[i+1].Since.Add(requests.Lateness))) {
			possible = append(possible, run.HeaderRules[pattern])
		}
	}
	possible = slices.Compact(possible)
	if len(possible) != 1 {
		return site.MD5{}, false
	}
	return possible[0], true
}

func (r Run) begunBy(put time.Time) bool { return !put.Before(r.Since.Add(-clockSlack)) }

// Configs returns the configurations of all sites whose objects may be in the bucket.
func (m *Mark) Configs(live, next *site.Root) []site.Config {
	configs := []site.Config{next.Config}
	if live != nil {
		configs = append(configs, live.Config)
	}
	for _, run := range m.Runs {
		configs = append(configs, run.Config)
	}
	return configs
}

// ErrInterleaved means that another publisher wrote the root or the note during the run. The bucket
// may then hold objects of both sites.
var ErrInterleaved = errors.New("another publisher wrote the root during this run")

// Replace puts an object of the next site if condition holds, and returns the condition for
// replacing it again. If the server has no conditional writes, it calls unlocked and puts the
// object anyway. If another run has replaced the object, Replace writes the mark, which that run
// has deleted, and returns ErrInterleaved.
func Replace(ctx context.Context, bucket *requests.Bucket, o storage.Object, condition storage.Condition, next *site.Root, unlocked func()) (storage.Condition, error) {
	etag, err := bucket.Put(ctx, o, condition)
	if errors.Is(err, storage.ErrUnsupported) {
		unlocked()
		etag, err = bucket.Put(ctx, o, storage.Always)
	}
	if !errors.Is(err, storage.ErrCondition) && !errors.Is(err, storage.ErrNotFound) {
		return storage.Condition(etag), err
	}
	// An earlier attempt may have succeeded although its answer was lost.
	if body, info, err := bucket.Read(ctx, o.Key); err == nil && bytes.Equal(body, o.Body) {
		return storage.Condition(info.ETag), nil
	}
	_, marked := WriteMark(ctx, bucket, nil, nil, next)
	return condition, errors.Join(fmt.Errorf("put %s: %w; the bucket may hold objects of both, so publish again", o.Key, ErrInterleaved), marked)
}
