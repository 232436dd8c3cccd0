package live_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/rounds"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	m.Run()
}

const base = 8453 // a chain

// atBlock returns a round of one chain whose newest block has the current time.
func atBlock(number uint64, snapshot afero.Fs) source.Round {
	return source.Round{Heads: []source.Head{{Chain: base, Block: number, Time: time.Now().UnixMilli(), Finalized: number / 2}}, Snapshot: snapshot}
}

// A running is a Live that a test feeds.
type running struct {
	*live.Live
	feed  rounds.Feed
	ended chan live.RoundEnd
	stop  func() error // ends Run and returns its error
}

// run starts a Live. Rounds that it has ended go to ended.
func run(t testing.TB, o live.Options) *running {
	t.Helper()
	r := &running{feed: make(rounds.Feed), ended: make(chan live.RoundEnd, 1000)}
	o.Log = slog.New(slog.DiscardHandler)
	hook := o.Hooks.Round
	o.Hooks.Round = func(end live.RoundEnd) {
		if hook != nil {
			hook(end)
		}
		r.ended <- end
	}
	var err error
	if r.Live, err = live.New(r.feed, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	r.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		r.Close()
	})
	return r
}

// serve sends a round and waits for its end, which must have an outcome.
func (r *running) serve(t testing.TB, round source.Round, want live.Outcome) live.RoundEnd {
	t.Helper()
	r.feed <- round
	end := <-r.ended
	if end.Outcome != want {
		t.Fatalf("the round of %v: got %s, %v, want %s", round.Heads, end.Outcome, end.Err, want)
	}
	return end
}

// ask sends a request, with headers NAME, VALUE, …
func ask(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func get(h http.Handler, target string, headers ...string) *httptest.ResponseRecorder {
	return ask(h, http.MethodGet, target, headers...)
}

func demo() afero.Fs { return afero.FromIOFS{FS: fixtures.Demo()} }

// textSnapshot returns a snapshot of files with these texts.
func textSnapshot(texts map[string]string) afero.Fs {
	files := fstest.MapFS{}
	for name, text := range texts {
		files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return afero.FromIOFS{FS: files}
}

// options returns the options of a Live with an API.
func options(api string) live.Options {
	return live.Options{Generator: generator.Options{Config: site.Config{API: api}}}
}

// served returns the site of a snapshot as serve answers it over a folder.
func served(t testing.TB, snapshot afero.Fs, o live.Options) http.Handler {
	t.Helper()
	h, err := server.New(t.Context(), generated(t, snapshot, o), server.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}
