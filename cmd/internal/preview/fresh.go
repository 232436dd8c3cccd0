package preview

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	json "github.com/goccy/go-json"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A patched is a site with refreshed objects in memory, so that the previewed site stays as it was. A new
// root drops them all. It is safe for concurrent use.
type patched struct {
	storage.Site

	mu       sync.RWMutex
	root     []byte
	replaced map[site.Key][]byte
}

// Get returns the refreshed object, else that of the site.
func (p *patched) Get(ctx context.Context, key site.Key) ([]byte, error) {
	return p.GetAdmitted(ctx, key, func(context.Context, int64) error { return nil })
}

// GetAdmitted returns the refreshed object, which is in memory already, else that of the site.
func (p *patched) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	p.mu.RLock()
	body, ok := p.replaced[key]
	p.mu.RUnlock()
	if ok {
		return body, nil
	}
	body, err := p.Site.GetAdmitted(ctx, key, admit)
	if err == nil && key == site.RootKey {
		p.mu.Lock()
		if !bytes.Equal(body, p.root) {
			p.root, p.replaced = body, map[site.Key][]byte{}
		}
		p.mu.Unlock()
	}
	return body, err
}

// Read is Get with the ETag.
func (p *patched) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	body, err := p.Get(ctx, key)
	if err != nil {
		return nil, storage.Info{}, err
	}
	return body, storage.Info{Key: key, Size: int64(len(body)), ETag: site.Sum(body).String()}, nil
}

// Put replaces an object in memory.
func (p *patched) Put(ctx context.Context, o storage.Object, condition storage.Condition) (etag string, err error) {
	stored, err := p.Site.Get(ctx, o.Key) // read without the lock
	p.mu.Lock()
	defer p.mu.Unlock()
	if body, ok := p.replaced[o.Key]; ok {
		stored, err = body, nil
	}
	switch condition {
	case storage.Always:
	case storage.IfAbsent:
		if err == nil {
			return "", fmt.Errorf("put %s: %w", o.Key, storage.ErrCondition)
		}
	default:
		if err != nil || site.Sum(stored).String() != string(condition) {
			return "", fmt.Errorf("put %s: %w", o.Key, storage.ErrCondition)
		}
	}
	if p.replaced == nil {
		p.replaced = map[site.Key][]byte{}
	}
	p.replaced[o.Key] = bytes.Clone(o.Body)
	return o.MD5.String(), nil
}

// A demoUpstream has fresher data for every account of the demo: its profile shows the time of the answer
// in the description, and it holds a badge of every event.
type demoUpstream struct {
	profiles map[string]site.Profile
	events   map[string]json.RawMessage
}

func newDemoUpstream(demo fs.FS) (u demoUpstream, err error) {
	u = demoUpstream{map[string]site.Profile{}, map[string]json.RawMessage{}}
	err = eachRow(demo, "accounts.ndjson", func(row []byte) error {
		var account struct {
			Address string
			ENS     site.Profile
		}
		err := json.Unmarshal(row, &account)
		u.profiles[account.Address] = account.ENS
		return err
	})
	if err != nil {
		return u, err
	}
	return u, eachRow(demo, "events.ndjson", func(row []byte) error {
		var event struct{ ID json.Number }
		err := json.Unmarshal(row, &event)
		u.events[event.ID.String()] = row
		return err
	})
}

func eachRow(demo fs.FS, table string, found func(row []byte) error) error {
	text, err := fs.ReadFile(demo, table)
	if err != nil {
		return err
	}
	for row := range bytes.Lines(text) {
		if err := found(bytes.TrimSpace(row)); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	return nil
}

// ServeHTTP answers /{address} and /{address}/{event_id}.
func (u demoUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	address, eventID, ofBadge := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	body, err := u.profile(address, time.Now())
	if ofBadge {
		body, err = u.badge(address, eventID)
	}
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client may be gone
}

func (u demoUpstream) profile(address string, now time.Time) ([]byte, error) {
	p := u.profiles[address]
	records := map[string]string{}
	if p.Records != nil {
		if err := json.Unmarshal(p.Records, &records); err != nil {
			return nil, err
		}
	}
	records["description"] = strings.TrimSpace(records["description"] + " [fresh at " + now.Format(time.TimeOnly) + ", says the demo's upstream]")
	changed, err := json.Marshal(records)
	if err != nil {
		return nil, err
	}
	p.Records, p.Fresh = changed, now.UnixMilli()
	return json.Marshal(p)
}

func (u demoUpstream) badge(address, eventID string) ([]byte, error) {
	event, ok := u.events[eventID]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return json.Marshal(struct {
		Event   json.RawMessage `json:"event"`
		TokenID string          `json:"tokenId"`
		Owner   string          `json:"owner"`
	}{event, "1", address})
}

// startDemoUpstream serves the demo's upstream on this machine until ctx ends, and points the flags at it.
func (c *Command) startDemoUpstream(ctx context.Context) (wait func() error, err error) {
	upstream, err := newDemoUpstream(fixtures.Demo())
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the demo's source of fresh data: %w", err)
	}
	base := "http://" + listener.Addr().String()
	c.ProfileUpstream, c.BadgeUpstream = base+"/{address}", base+"/{address}/{event_id}"
	var serving errgroup.Group
	serving.Go(func() error {
		return server.Serve(ctx, listener, upstream, slog.New(slog.DiscardHandler))
	})
	return serving.Wait, nil
}
