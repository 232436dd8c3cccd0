package server_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

const proofLists = 40

// dailySite returns a site whose lists differ by the day, from the one with number 20 on.
func dailySite(t *testing.T, day int) memsite.Site {
	t.Helper()
	config, err := site.Config{BasePath: "api/v1"}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	objects := map[site.Key]string{}
	for n := range proofLists {
		objects[config.ListKey(fmt.Sprint(n), site.Details)] = fmt.Sprintf(`{"list":%d,"day":%d}`, n, map[bool]int{true: day}[n >= 20])
	}
	return memsite.New(t, site.Root{Format: site.Format, AsOf: fmt.Sprintf("2026-11-%02dT00:00:00Z", day), Config: config, BucketDigits: 1, ShardDigits: 1}, objects)
}

// TestReadersThatCheckBehindAServer: a reader verifies signatures behind a server that has cached
// objects of the last site and has not noticed a new one. The reader never sees an altered object,
// whichever objects of the next site were put.
func TestReadersThatCheckBehindAServer(t *testing.T) {
	key := testkey.New(t, "follow.example")
	yesterday, today, tomorrow := key.Sign(t, dailySite(t, 23), 1), key.Sign(t, dailySite(t, 24), 2), key.Sign(t, dailySite(t, 25), 3)
	next, manifest, lists := memsite.Site{}, memsite.Site{}, memsite.Site{}
	for k, body := range today {
		switch isManifest := strings.HasPrefix(string(k), "_manifest/"); {
		case isManifest:
			manifest[k] = body
			fallthrough
		case k == site.RootKey:
			next[site.NextKey(2, k)] = body
		case k == note.Key:
			next[note.NextKey] = body
		default:
			lists[k] = body
		}
	}
	half := maps.Clone(lists)
	for n := range proofLists / 2 {
		delete(half, today.Root(t).Config.ListKey(fmt.Sprint(2*n), site.Details))
	}
	remove := func(folder string) error { return os.RemoveAll(filepath.Join(folder, "_next")) }
	stages := []struct {
		name string
		put  memsite.Site
		then func(folder string) error
	}{
		{"the site is announced", next, nil}, {"half of the objects", half, nil}, {"all objects", lists, nil}, {"the manifest", manifest, nil},
		{"the root", memsite.Site{site.RootKey: today[site.RootKey]}, nil}, {"the note", memsite.Site{note.Key: today[note.Key]}, nil},
		{"the announcement is removed", nil, remove}, {"the next day, all at once", tomorrow, nil},
	}
	for from := range stages {
		for _, checks := range []bool{false, true} {
			t.Run(fmt.Sprintf("read since %s, a server that checks: %v", stages[from].name, checks), func(t *testing.T) {
				t.Parallel()
				folder := t.TempDir()
				put := func(s memsite.Site) {
					for k, body := range s {
						name := filepath.Join(folder, filepath.FromSlash(string(k)))
						if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(body), 0o644)); err != nil {
							t.Fatal(err)
						}
					}
				}
				put(yesterday)
				var store server.Store = storage.OpenLocal(folder)
				if checks {
					store = checked.New(storage.OpenLocal(folder), key.Keys, checked.Options{})
				}
				h := newHandler(t, store, server.Options{Poll: time.Hour})
				defer h.Close()
				online := httptest.NewServer(h)
				defer online.Close()
				open := func() *checked.Site {
					web, err := storage.OpenPublished(t.Context(), online.URL, storage.S3Options{})
					if err != nil {
						t.Fatal(err)
					}
					s, err := checked.Open(t.Context(), web, key.Keys, checked.Options{})
					if err != nil {
						t.Fatal(err)
					}
					return s
				}
				read := func(r *checked.Site, step int) {
					for n := 0; n < proofLists; n += step {
						k := today.Root(t).Config.ListKey(fmt.Sprint(n), site.Details)
						body, err := r.Get(t.Context(), k)
						isOne := func(s memsite.Site) bool { return s[k] == string(body) }
						if err != nil || !slices.ContainsFunc([]memsite.Site{yesterday, today, tomorrow}, isOne) { // the server may be behind
							t.Fatalf("list %d: got %q and %v", n, body, err)
						}
					}
				}
				early := open()
				read(early, 3) // so that the server has cached a part of yesterday's site
				for i, stage := range stages {
					put(stage.put)
					if stage.then != nil {
						if err := stage.then(folder); err != nil {
							t.Fatal(err)
						}
					}
					if i >= from {
						read(early, 1)
						read(open(), 1)
					}
				}
			})
		}
	}
}
