package parts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/internal/storetest"
	"github.com/followpress/followpress/storage/parts"
)

const partsAsOf = "2025-11-20T00:00:00Z"

// madeUp makes a site of objects, with shards whose names have that many digits.
func madeUp(t testing.TB, digits int, objects map[site.Key]string) memsite.Site {
	t.Helper()
	config, err := site.Config{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return memsite.New(t, site.Root{
		Format: site.Format, AsOf: partsAsOf, Config: config, BucketDigits: 1, ShardDigits: digits, HeaderRules: config.HeaderRules(),
	}, objects)
}

// oddObjects have keys and sizes that are special cases of tar headers.
func oddObjects() map[site.Key]string {
	objects := map[site.Key]string{}
	for i, key := range storetest.Awkward() {
		if key == site.RootKey || strings.HasPrefix(string(key), "_") {
			continue
		}
		objects[key] = strings.Repeat(string(rune('a'+i%26)), []int{0, 1, 511, 512, 513, 70_000}[i%6])
	}
	for i := range 100 {
		key := site.Key(fmt.Sprintf("api/v1/users/%s%d.eth/details", strings.Repeat("näme", i%40), i))
		objects[key] = fmt.Sprint("the object at ", key)
		objects[site.Key(fmt.Sprint("plain/", i))] = "a plain object"
	}
	return objects
}

// partsPlaces calls test with a place of each kind, and a function that lists it.
func partsPlaces(t *testing.T, test func(t *testing.T, place *parts.Place, names func() []string)) {
	t.Run("folder", func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "parts")
		place, err := parts.Open(t.Context(), folder, storage.S3Options{})
		if err != nil {
			t.Fatal(err)
		}
		test(t, place, func() (names []string) {
			entries, err := os.ReadDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				names = append(names, entry.Name())
			}
			return names
		})
	})
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			server := servers.Start(t, kind)
			server.Env(t)
			at := storage.Location{Bucket: server.Bucket(t), Prefix: "a/b/"}
			place, err := parts.Open(t.Context(), "s3://"+at.Bucket+"/"+at.Prefix, storage.S3Options{Endpoint: server.Endpoint})
			if err != nil {
				t.Fatal(err)
			}
			test(t, place, func() (names []string) {
				err := storetest.OpenS3(t, server, at).List(context.Background(), "", "", func(info storage.Info) error {
					names = append(names, string(info.Key))
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				return names
			})
		})
	}
}

// TestPartsAreWritten: a run leaves the parts of its site and nothing else.
func TestPartsAreWritten(t *testing.T) {
	partsPlaces(t, func(t *testing.T, place *parts.Place, names func() []string) {
		for _, digits := range []int{2, 1} { // the second run has to remove parts of the first
			made := madeUp(t, digits, oddObjects())
			made.PutParts(t, place)
			var want []string
			for name, body := range made.Parts(t) {
				want = append(want, name)
				if got, err := place.Get(t.Context(), name); err != nil || !bytes.Equal(got, body) {
					t.Errorf("%s: got %d bytes, %v, want %d", name, len(got), err, len(body))
				}
			}
			want = append(want, parts.Root, "run")
			slices.Sort(want)
			if want[len(want)-2] != parts.Root {
				t.Errorf("the root is not the last part")
			}
			if got := names(); !slices.Equal(got, want) {
				t.Errorf("got the files %q, want %q", got, want)
			}
		}
	})
}

// TestPartsOfRepeatedWorkers: a repeated worker, concurrent or late, changes nothing.
func TestPartsOfRepeatedWorkers(t *testing.T) {
	partsPlaces(t, func(t *testing.T, place *parts.Place, names func() []string) {
		made := madeUp(t, 1, oddObjects())
		if _, err := place.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		bodies := made.Parts(t)
		put := func() {
			var group errgroup.Group
			for range 3 {
				for name, body := range bodies {
					group.Go(func() error { return place.Put(t.Context(), name, body) })
				}
			}
			if err := group.Wait(); err != nil {
				t.Error(err)
			}
		}
		put()
		for range 2 {
			if err := place.Finish(t.Context(), []byte(made[site.RootKey]), nil); err != nil {
				t.Fatal(err)
			}
			put()
			if got := len(names()); got != len(bodies)+2 {
				t.Errorf("got %d files, want %d", got, len(bodies)+2)
			}
			for name, want := range bodies {
				if got, err := place.Get(t.Context(), name); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: got %d bytes, %v, want %d", name, len(got), err, len(want))
				}
			}
		}
	})
}

// TestPartsOfOneRunAtATime: after a second run has begun in a place, the first one cannot write.
func TestPartsOfOneRunAtATime(t *testing.T) {
	partsPlaces(t, func(t *testing.T, first *parts.Place, names func() []string) {
		made := madeUp(t, 1, oddObjects())
		if _, err := first.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		late := *first
		run, err := first.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		second := late
		second.Join(run)
		for name, body := range made.Parts(t) {
			if err := late.Put(t.Context(), name, []byte("another")); err == nil || !strings.Contains(err.Error(), "another run has begun") {
				t.Errorf("put %s: got %v, want an error", name, err)
			}
			if err := second.Put(t.Context(), name, body); err != nil {
				t.Error(err)
			}
		}
		root := []byte(made[site.RootKey])
		if err := late.Finish(t.Context(), root, nil); err == nil || slices.Contains(names(), parts.Root) {
			t.Errorf("finish: got %v, want an error and no root", err)
		}
		if err := second.Finish(t.Context(), root, nil); err != nil {
			t.Error(err)
		}
		for name, want := range made.Parts(t) {
			if got, err := second.Get(t.Context(), name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: got %d bytes, %v, want %d", name, len(got), err, len(want))
			}
		}
	})
}

// TestPartsOfAnySize: a part that is too large for one request is put and read like others.
func TestPartsOfAnySize(t *testing.T) {
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			server := servers.Start(t, kind)
			server.Env(t)
			place, err := parts.Open(t.Context(), "s3://"+server.Bucket(t), storage.S3Options{Endpoint: server.Endpoint})
			if err != nil {
				t.Fatal(err)
			}
			made := madeUp(t, 1, map[site.Key]string{"large": strings.Repeat("large", 14<<20), "small": "small"})
			made.PutParts(t, place)
			equalTo(t, place.Site(), made)
		})
	}
}

// TestPartsHaveARootOnlyAtTheEnd: an unfinished or restarted run is not a site.
func TestPartsHaveARootOnlyAtTheEnd(t *testing.T) {
	partsPlaces(t, func(t *testing.T, place *parts.Place, names func() []string) {
		made := madeUp(t, 1, oddObjects())
		made.PutParts(t, place)
		if _, err := place.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := place.Get(t.Context(), parts.Root); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("after Begin: got %v, want no root", err)
		}
		if err := place.Remove(t.Context(), "part-7", "part-a"); err != nil {
			t.Fatal(err)
		}
		if err := place.Finish(t.Context(), []byte(made[site.RootKey]), nil); err == nil || !strings.Contains(err.Error(), "has no part-7, and 2 parts are missing") {
			t.Errorf("without two parts: got %v", err)
		}
		if slices.Contains(names(), parts.Root) {
			t.Error("a root was put although parts are missing")
		}
	})
}

func TestPartsRefuseAPlaceWithOtherFiles(t *testing.T) {
	folder := t.TempDir()
	place, err := parts.Open(t.Context(), "file://"+folder, storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "part-of-a-letter"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := place.Begin(t.Context()); err == nil || !strings.Contains(err.Error(), `holds "part-of-a-letter"`) {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"", "part-", "part-G", "part-A", "part-0/../x", "root"} {
		if err := place.Put(t.Context(), name, nil); err == nil {
			t.Errorf("put %q: got no error", name)
		}
	}
}

// TestPartsLeaveNoTracesOfAKilledWriter: leftovers of a killed writer are not parts, and the next run removes them.
func TestPartsLeaveNoTracesOfAKilledWriter(t *testing.T) {
	folder := t.TempDir()
	place, err := parts.Open(t.Context(), folder, storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, ".part-123"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(folder, "part-*")); err != nil || len(found) > 0 {
		t.Errorf("got the parts %q, %v, want none", found, err)
	}
	madeUp(t, 1, oddObjects()).PutParts(t, place)
	if _, err := os.Stat(filepath.Join(folder, ".part-123")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want no leftover", err)
	}
}

// TestPartsAreInOrder: objects out of place are refused.
func TestPartsAreInOrder(t *testing.T) {
	x, y := site.Key("a"), site.Key("b")
	for i := 0; site.ManifestShard(y, 1) != site.ManifestShard(x, 1); i++ {
		y = site.Key(fmt.Sprint("b", i))
	}
	for _, wrong := range [][]site.Key{{y, x}, {x, x}, {"", x}} {
		_, err := parts.Append(nil, partsAsOf, site.ManifestShard(x, 1), nil, func(yield func(site.Key, []byte) bool) {
			for _, key := range wrong {
				if !yield(key, nil) {
					return
				}
			}
		})
		if err == nil {
			t.Errorf("%q: got no error", wrong)
		}
	}
}
