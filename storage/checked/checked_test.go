package checked_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

const origin = "follow.example"

func TestMain(m *testing.M) {
	tempdir.InMemory()
	os.Exit(m.Run())
}

func detailsOf(n int) site.Key {
	return site.Config{BasePath: "api/v1"}.ListKey(fmt.Sprint(n), site.Details)
}

const lists = 100

// siteOf makes a site with a hundred lists. Lists from number `from` on depend on the day.
func siteOf(t *testing.T, day, from, digits int) memsite.Site {
	t.Helper()
	objects := map[site.Key]string{}
	for n := range lists {
		objects[detailsOf(n)] = fmt.Sprintf(`{"list":%03d,"day":%d}`, n, map[bool]int{false: 0, true: day}[n >= from])
	}
	config, err := site.Config{BasePath: "api/v1"}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return memsite.New(t, site.Root{
		Format: site.Format, AsOf: fmt.Sprintf("2026-11-%02dT00:00:00Z", day), Config: config, BucketDigits: 1, ShardDigits: digits,
	}, objects)
}

// A bucket is a folder.
type bucket struct {
	t      *testing.T
	folder string
}

func newBucket(t *testing.T, s memsite.Site) bucket {
	t.Helper()
	b := bucket{t, t.TempDir()}
	b.put(s)
	return b
}

// put adds and replaces objects.
func (b bucket) put(s memsite.Site) {
	b.t.Helper()
	for key, body := range s {
		name := filepath.Join(b.folder, filepath.FromSlash(string(key)))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(body), 0o644)); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b bucket) remove(keys ...site.Key) {
	b.t.Helper()
	for _, key := range keys {
		if err := os.RemoveAll(filepath.Join(b.folder, filepath.FromSlash(string(key)))); err != nil {
			b.t.Fatal(err)
		}
	}
}

// grow makes an object a file of 1 GiB without a single block.
func (b bucket) grow(key site.Key) {
	b.t.Helper()
	if err := os.Truncate(filepath.Join(b.folder, filepath.FromSlash(string(key))), 1<<30); err != nil {
		b.t.Fatal(err)
	}
}

func (b bucket) store() *storage.Local { return storage.OpenLocal(b.folder) }

// only returns the objects of a site whose keys have a prefix.
func only(s memsite.Site, prefix site.Key) memsite.Site {
	some := maps.Clone(s)
	maps.DeleteFunc(some, func(key site.Key, _ string) bool { return !strings.HasPrefix(string(key), string(prefix)) })
	return some
}

// manifest returns the manifest objects.
func manifest(s memsite.Site) memsite.Site { return only(s, site.ManifestKey("")) }

// announced returns the announcement of a site, followed by others whose publishes were interrupted.
func announced(t *testing.T, all ...memsite.Site) memsite.Site {
	t.Helper()
	next := memsite.Site{}
	var notes [][]byte
	for _, s := range all {
		counter, err := strconv.ParseUint(strings.Split(s[note.Key], "\n")[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		for key, body := range s {
			if key == site.RootKey || strings.HasPrefix(string(key), string(site.ManifestKey(""))) {
				next[site.NextKey(counter, key)] = body
			}
		}
		notes = append(notes, []byte(s[note.Key]))
	}
	next[note.NextKey] = string(note.Join(notes...))
	return next
}

func TestEverythingIsCheckedBeforeItIsReturned(t *testing.T) {
	p, stranger := testkey.New(t, origin), testkey.New(t, origin)
	for _, digits := range []int{1, 3} {
		yesterday, today := p.Sign(t, siteOf(t, 23, 50, digits), 1), p.Sign(t, siteOf(t, 24, 50, digits), 2)
		other := p.Sign(t, siteOf(t, 25, 0, digits), 9)
		late := p.Sign(t, siteOf(t, 22, 50, digits), 3) // by a greater counter
		elsewhere := testkey.New(t, "other.example").Sign(t, siteOf(t, 25, 0, digits), 9)
		unchanged, changed, added := detailsOf(7), detailsOf(77), detailsOf(lists+1)
		alteredToo := siteOf(t, 24, 50, digits).With(t, func(objects memsite.Site, _ *site.Root) { objects[changed] = `{"list":077,"day":66}` })
		for _, tt := range []struct {
			name   string
			attack func(b bucket)
			open   error // error of Open
			key    site.Key
			want   error // error of Get
		}{
			{"nothing is altered", func(bucket) {}, nil, changed, nil},
			{"an object altered", func(b bucket) { b.put(memsite.Site{changed: `{"list":077,"day":66}`}) }, nil, changed, checked.ErrAltered},
			{"another object altered", func(b bucket) { b.put(memsite.Site{changed: `{"list":077,"day":66}`}) }, nil, unchanged, nil},
			{"swapped with another list's", func(b bucket) { b.put(memsite.Site{changed: today[detailsOf(78)]}) }, nil, changed, checked.ErrAltered},
			{"replaced by yesterday's", func(b bucket) { b.put(memsite.Site{changed: yesterday[changed]}) }, nil, changed, checked.ErrAltered},
			{"removed", func(b bucket) { b.remove(changed) }, nil, changed, checked.ErrAltered},
			{"added", func(b bucket) { b.put(memsite.Site{added: `{}`}) }, nil, added, storage.ErrNotFound},
			{"1 GiB where some bytes are expected", func(b bucket) { b.grow(changed) }, nil, changed, checked.ErrAltered},
			{"a shard of the manifest replaced with its objects", func(b bucket) {
				b.put(manifest(alteredToo))
				b.put(memsite.Site{changed: alteredToo[changed]})
			}, nil, changed, checked.ErrAltered},
			{"a shard of the manifest of 1 GiB", func(b bucket) { b.grow(site.ManifestKey(site.ManifestShard(changed, digits))) }, nil, changed, checked.ErrAltered},
			{"no shard of the manifest", func(b bucket) { b.remove(site.ManifestKey(site.ManifestShard(changed, digits))) }, nil, changed, checked.ErrAltered},
			{"the whole site altered, without its note", func(b bucket) { b.put(alteredToo) }, note.ErrOtherRoot, "", nil},
			{"the root of another bucket", func(b bucket) { b.put(only(elsewhere, site.RootKey)) }, note.ErrUnsigned, "", nil},
			{"the root of another site that the same key has signed", func(b bucket) { b.put(only(other, site.RootKey)) }, nil, changed, checked.ErrAltered},
			{"the root of another bucket, without its note", func(b bucket) { b.put(memsite.Site{site.RootKey: other[site.RootKey]}) }, note.ErrOtherRoot, "", nil},
			{"a root of 1 GiB", func(b bucket) { b.grow(site.RootKey) }, errAny, "", nil},
			{"the note of an unknown key", func(b bucket) { b.put(memsite.Site{note.Key: stranger.Note(t, today, 2)}) }, note.ErrUnsigned, "", nil},
			{"no note", func(b bucket) { b.remove(note.Key) }, note.ErrUnsigned, "", nil},
			{"a note of 1 GiB", func(b bucket) { b.grow(note.Key) }, errAny, "", nil},
			{"a note with one bit flipped", func(b bucket) {
				flipped := []byte(today[note.Key])
				flipped[len(flipped)-9] ^= 1
				b.put(memsite.Site{note.Key: string(flipped)})
			}, errAny, "", nil},
			{"a note with a forged second line", func(b bucket) {
				b.put(memsite.Site{note.Key: strings.Replace(today[note.Key], "\n"+origin+"\n", "\nother.example\n", 1)})
			}, note.ErrForged, "", nil},
			{"a rollback", func(b bucket) { b.put(yesterday) }, note.ErrOlder, "", nil},
			{"an announcement of yesterday's", func(b bucket) {
				b.put(announced(t, yesterday))
				b.put(memsite.Site{changed: yesterday[changed]})
			}, nil, changed, checked.ErrAltered},
			{"an announcement that is not signed", func(b bucket) {
				forged := stranger.Sign(t, alteredToo, 3)
				b.put(announced(t, forged))
				b.put(memsite.Site{changed: forged[changed]})
			}, nil, changed, checked.ErrAltered},
			{"an announcement with the root of somebody else", func(b bucket) {
				forged := withoutNote(alteredToo)
				forged[note.Key] = other[note.Key]
				b.put(announced(t, forged))
				b.put(memsite.Site{changed: forged[changed]})
			}, nil, changed, checked.ErrAltered},
			{"an announcement of a site of a day before", func(b bucket) {
				b.put(announced(t, late))
				b.put(memsite.Site{changed: late[changed]})
			}, nil, changed, note.ErrOlder},
			{"another site that is announced, with a note of an unknown key", func(b bucket) {
				b.put(announced(t, other))
				b.put(other)
				b.put(memsite.Site{note.Key: stranger.Note(t, other, 9)})
			}, note.ErrUnsigned, "", nil},
			{"an announcement of 1 GiB", func(b bucket) {
				b.put(announced(t, other))
				b.grow(note.NextKey)
				b.grow(site.NextKey(9, site.RootKey))
			}, nil, changed, nil},
		} {
			if digits == 3 && !strings.Contains(tt.name, "manifest") && !strings.HasPrefix(tt.name, "nothing") {
				continue // an index makes no difference
			}
			t.Run(fmt.Sprintf("%s, names of %d digits", tt.name, digits), func(t *testing.T) {
				b := newBucket(t, today)
				tt.attack(b)
				s, err := checked.Open(t.Context(), limited{t, b.store()}, p.Keys, checked.Options{Seen: noteOf(t, p, today)})
				if !isWanted(err, tt.open) {
					t.Fatalf("open: got %v, want %v", err, tt.open)
				}
				if err != nil {
					return
				}
				body, err := s.Get(t.Context(), tt.key)
				if !isWanted(err, tt.want) {
					t.Fatalf("got %q and %v, want the error %v", body, err, tt.want)
				}
				if err == nil && string(body) != today[tt.key] {
					t.Errorf("got %q, want %q", body, today[tt.key])
				}
				var altered *checked.AlteredError
				if errors.As(err, &altered) && (altered.Expected == "" || altered.Got == "") {
					t.Errorf("got %+v, want the expected and the actual digest", altered)
				}
			})
		}
	}
}

// A reader with the keys of two sites does not accept one as the other.
func TestAnAnnouncementOfAnotherOrigin(t *testing.T) {
	p, q := testkey.New(t, origin), testkey.New(t, "other.example")
	keys, err := note.ParseKeys(p.Public, q.Public)
	if err != nil {
		t.Fatal(err)
	}
	today, elsewhere := p.Sign(t, siteOf(t, 24, 50, 1), 2), q.Sign(t, siteOf(t, 25, 50, 1), 9)
	b := newBucket(t, today)
	b.put(announced(t, elsewhere))
	b.put(memsite.Site{detailsOf(77): elsewhere[detailsOf(77)]})
	s, err := checked.Open(t.Context(), b.store(), keys, checked.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if body, err := s.Get(t.Context(), detailsOf(77)); !errors.Is(err, checked.ErrAltered) {
		t.Errorf("got %q and %v, want ErrAltered", body, err)
	}
}

// A modest store reports sizes that are too small.
type modest struct{ store checked.Store }

func (m modest) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	return m.store.GetAdmitted(ctx, key, func(ctx context.Context, size int64) error { return admit(ctx, min(size, 1)) })
}

func TestASizeIsNotBelieved(t *testing.T) {
	s := siteOf(t, 24, 50, 1)
	b := newBucket(t, s)
	if _, err := checked.Open(t.Context(), modest{b.store()}, note.Keys{}, checked.Options{}); err != nil {
		t.Fatal(err)
	}
	b.put(memsite.Site{site.RootKey: s[site.RootKey] + strings.Repeat(" ", site.MaxRootBytes)})
	if _, err := checked.Open(t.Context(), modest{b.store()}, note.Keys{}, checked.Options{}); !errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("a root that is too large: got %v, want ErrTooLarge", err)
	}
}

// errAny stands for any error.
var errAny = errors.New("any error")

func isWanted(err, want error) bool {
	return errors.Is(err, want) || err != nil && errors.Is(want, errAny)
}

func noteOf(t *testing.T, p testkey.Key, s memsite.Site) note.Note {
	t.Helper()
	n, _, err := p.Keys.Open([]byte(s[note.Key]), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A limited store fails the test if anything large is read.
type limited struct {
	t *testing.T
	*storage.Local
}

func (l limited) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	return l.Local.GetAdmitted(ctx, key, func(ctx context.Context, size int64) error {
		err := admit(ctx, size)
		if err == nil && size > 1<<20 {
			l.t.Errorf("%s: %d bytes are read", key, size)
		}
		return err
	})
}

func TestWhileASiteIsPublished(t *testing.T) {
	p := testkey.New(t, origin)
	for _, digits := range []int{1, 3} {
		yesterday := p.Sign(t, siteOf(t, 23, 50, digits).With(t, func(objects memsite.Site, _ *site.Root) { delete(objects, detailsOf(99)) }), 1)
		today := p.Sign(t, siteOf(t, 24, 50, digits).With(t, func(objects memsite.Site, _ *site.Root) { delete(objects, detailsOf(98)) }), 2)
		stages := []struct {
			name string
			do   func(b bucket)
		}{
			{"nothing has begun", func(bucket) {}},
			{"the note is announced", func(b bucket) { b.put(memsite.Site{note.NextKey: today[note.Key]}) }},
			{"the site is announced", func(b bucket) { b.put(announced(t, today)) }},
			{"half of the objects", func(b bucket) {
				half := memsite.Site{}
				for _, key := range withoutNote(today).Keys(t)[:50] {
					half[key] = today[key]
				}
				b.put(half)
			}},
			{"all objects", func(b bucket) { b.put(withoutNote(today).WithoutIndex()) }},
			{"half of the manifest", func(b bucket) {
				half := memsite.Site{}
				for _, shard := range site.HashPrefixes(digits)[:1<<(4*digits-1)] {
					half[site.ManifestKey(shard)] = today[site.ManifestKey(shard)]
				}
				b.put(half)
			}},
			{"the manifest", func(b bucket) { b.put(manifest(today)) }},
			{"the root", func(b bucket) { b.put(memsite.Site{site.RootKey: today[site.RootKey]}) }},
			{"the note", func(b bucket) { b.put(memsite.Site{note.Key: today[note.Key]}) }},
			{"a left-over object is removed", func(b bucket) { b.remove(detailsOf(98)) }},
			{"the announcement is removed", func(b bucket) { b.remove("_next") }},
		}
		for opened := range stages {
			if digits == 3 && opened > 0 {
				break // thousands of files for each
			}
			t.Run(fmt.Sprintf("opened when %s, names of %d digits", stages[opened].name, digits), func(t *testing.T) {
				b := newBucket(t, yesterday)
				for _, stage := range stages[:opened+1] {
					stage.do(b)
				}
				follows, err := checked.Open(t.Context(), b.store(), p.Keys, checked.Options{})
				if err != nil {
					t.Fatal(err)
				}
				pinned, err := checked.Open(t.Context(), b.store(), p.Keys, checked.Options{Pinned: true})
				if err != nil {
					t.Fatal(err)
				}
				if opened == 2 {
					for key, body := range announced(t, today) {
						if got, err := follows.Get(t.Context(), key); err != nil || string(got) != body {
							t.Fatalf("%s: got %d bytes and %v, want the announced object", key, len(got), err)
						}
					}
				}
				is := yesterday
				if string(pinned.RootBody()) == today[site.RootKey] {
					is = today
				}
				for n, stage := range stages[opened:] {
					if n > 0 {
						stage.do(b)
					}
					for list := range lists {
						key := detailsOf(list)
						body, err := follows.Get(t.Context(), key)
						found := err == nil && (string(body) == yesterday[key] || string(body) == today[key])
						absent := errors.Is(err, storage.ErrNotFound) && list >= 98
						if !found && !absent {
							t.Fatalf("%s: %s: got %q and %v, want the body of one of the sites", stage.name, key, body, err)
						}
						body, err = pinned.Get(t.Context(), key)
						want, has := is[key]
						found, absent = err == nil && string(body) == want, errors.Is(err, storage.ErrNotFound) && !has
						if !found && !absent && !errors.Is(err, checked.ErrBetween) {
							t.Fatalf("%s: %s: pinned: got %q and %v, want %q or ErrBetween", stage.name, key, body, err, want)
						}
					}
				}
				if _, _, err := follows.Read(t.Context(), site.RootKey); err != nil {
					t.Fatal(err)
				}
				select {
				case <-follows.Changed():
				default:
					if is[site.RootKey] != today[site.RootKey] {
						t.Error("got no sign of the new site, want one")
					}
				}
				if string(follows.RootBody()) != today[site.RootKey] {
					t.Error("got the old root at the end, want the new one")
				}
				b.put(memsite.Site{detailsOf(60): yesterday[detailsOf(60)]})
				if body, err := follows.Get(t.Context(), detailsOf(60)); !errors.Is(err, checked.ErrAltered) {
					t.Errorf("yesterday's object after the publish: got %q and %v, want ErrAltered", body, err)
				}
				for _, key := range []site.Key{site.ManifestKey("0"), site.ManifestKey(site.ManifestShard(detailsOf(60), digits)), site.RootKey, note.Key} {
					if body, err := follows.Get(t.Context(), key); err != nil || string(body) != today[key] {
						t.Errorf("%s: got %d bytes and %v, want those of the site", key, len(body), err)
					}
				}
			})
		}
	}
}

func withoutNote(s memsite.Site) memsite.Site {
	s = maps.Clone(s)
	delete(s, note.Key)
	return s
}

// Live answers are not signed, and the error explains this.
func TestLiveIsNotSigned(t *testing.T) {
	p := testkey.New(t, origin)
	s := siteOf(t, 23, 5, 1)
	root := s.Root(t)
	root.Live, root.Manifest, root.Counts.Bytes = true, nil, 0
	body, err := root.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s[site.RootKey] = string(body)
	_, err = checked.Open(t.Context(), newBucket(t, s).store(), p.Keys, checked.Options{})
	if !errors.Is(err, note.ErrUnsigned) || !strings.Contains(err.Error(), "this address answers from live, which is not signed; use the bucket") {
		t.Errorf("got %v, want that live is not signed", err)
	}
}

func TestNothingOlderIsBelieved(t *testing.T) {
	p := testkey.New(t, origin)
	yesterday, today := p.Sign(t, siteOf(t, 23, 50, 1), 1), p.Sign(t, siteOf(t, 24, 50, 1), 2)
	for _, allowed := range []bool{false, true} {
		b := newBucket(t, today)
		s, err := checked.Open(t.Context(), b.store(), p.Keys, checked.Options{AllowRollback: allowed})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), detailsOf(7)); err != nil { // so that its shard is known
			t.Fatal(err)
		}
		b.put(yesterday)
		_, _, err = s.Read(t.Context(), site.RootKey)
		if allowed && err != nil || !allowed && !errors.Is(err, note.ErrOlder) {
			t.Errorf("rollback, allowed %v: got %v", allowed, err)
		}
		body, err := s.Get(t.Context(), detailsOf(60))
		switch {
		case allowed && (err != nil || string(body) != yesterday[detailsOf(60)]):
			t.Errorf("got %q and %v, want yesterday's", body, err)
		case !allowed && (!errors.Is(err, checked.ErrAltered) || !errors.Is(err, note.ErrOlder)):
			t.Errorf("got %q and %v, want ErrAltered for a rollback", body, err)
		}
		if body, err := s.Get(t.Context(), detailsOf(7)); !allowed && (err != nil || string(body) != today[detailsOf(7)]) {
			t.Errorf("an unchanged object: got %q and %v", body, err)
		}
	}
}

func TestWithoutKeysTheRootIsBelieved(t *testing.T) {
	s := siteOf(t, 24, 50, 1)
	b := newBucket(t, s)
	is, err := checked.Open(t.Context(), b.store(), note.Keys{}, checked.Options{Pinned: true})
	if err != nil {
		t.Fatal(err)
	}
	for key, body := range s {
		if got, err := is.Get(t.Context(), key); err != nil || string(got) != body {
			t.Errorf("%s: got %d bytes and %v, want those of the site", key, len(got), err)
		}
	}
	b.put(memsite.Site{detailsOf(60): "{}"})
	if _, err := is.Get(t.Context(), detailsOf(60)); !errors.Is(err, checked.ErrAltered) {
		t.Errorf("got %v, want ErrAltered", err)
	}
	b.put(memsite.Site{site.MarkKey: "{}"})
	if _, err := is.Get(t.Context(), detailsOf(60)); !errors.Is(err, checked.ErrBetween) {
		t.Errorf("while a publish is going on: got %v, want ErrBetween", err)
	}
	b.put(siteOf(t, 25, 50, 1))
	b.remove(site.MarkKey)
	if _, err := is.Get(t.Context(), detailsOf(60)); !errors.Is(err, checked.ErrBetween) {
		t.Errorf("after another site was published: got %v, want ErrBetween", err)
	}
}

func TestDeltasAreChecked(t *testing.T) {
	p := testkey.New(t, origin)
	put, now := siteOf(t, 23, 50, 1), siteOf(t, 24, 50, 1)
	shard := site.ManifestShard(detailsOf(60), 1)
	entries := func(s memsite.Site) []site.Entry {
		m, err := shards.Parse(shard, []byte(s[site.ManifestKey(shard)]))
		if err != nil {
			t.Fatal(err)
		}
		return m.Objects
	}
	digest := now.Root(t).Manifest[shard]
	patch := shards.NewPatch(shard, entries(put), entries(now), digest)
	delta := func(patches ...shards.Patch) string {
		return string(shards.Pack(shards.Delta{Name: shards.Group(shard), Shards: patches}.Append(nil)))
	}
	key := site.DeltaKey(shards.Group(shard))
	stored := p.Sign(t, now, 1)
	stored[site.ManifestKey(shard)] = put[site.ManifestKey(shard)]
	stored[key] = delta(patch)

	b := newBucket(t, stored)
	s, err := checked.Open(t.Context(), b.store(), p.Keys, checked.Options{ManifestBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if body, err := s.Get(t.Context(), detailsOf(60)); err != nil || string(body) != now[detailsOf(60)] {
		t.Errorf("got %q and %v, want the object that the delta lists", body, err)
	}
	if body, err := s.Get(t.Context(), key); err != nil || string(body) != stored[key] {
		t.Errorf("the delta: got %d bytes and %v", len(body), err)
	}
	forged := shards.NewPatch(shard, entries(put), entries(siteOf(t, 25, 50, 1)), digest)
	b.put(memsite.Site{key: delta(forged)})
	for _, altered := range []site.Key{key, detailsOf(60)} {
		s, err := checked.Open(t.Context(), b.store(), p.Keys, checked.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if body, err := s.Get(t.Context(), altered); !errors.Is(err, checked.ErrAltered) {
			t.Errorf("%s, by a forged delta: got %q and %v, want ErrAltered", altered, body, err)
		}
	}
	gone := patch
	gone.Gone = []site.Key{patch.Objects[0].Key} // a key that the patch also puts
	for name, wrong := range map[string]shards.Patch{
		"a patch that removes more": gone,
		"a patch that lists more":   {Shard: patch.Shard, SHA256: patch.SHA256, Objects: entries(now), Gone: patch.Gone},
	} {
		b.put(memsite.Site{key: delta(wrong)})
		if body, err := s.Get(t.Context(), key); !errors.Is(err, checked.ErrAltered) {
			t.Errorf("a delta with %s: got %q and %v, want ErrAltered", name, body, err)
		}
	}
	beside := shards.Patch{Shard: map[bool]string{true: "f", false: "0"}[shard == "0"], SHA256: site.Sum256(nil)}
	both := []shards.Patch{beside, patch}
	slices.SortFunc(both, func(a, b shards.Patch) int { return strings.Compare(a.Shard, b.Shard) })
	b.put(memsite.Site{key: delta(both...)})
	if body, err := s.Get(t.Context(), key); !errors.Is(err, checked.ErrAltered) {
		t.Errorf("a delta with a patch that leads elsewhere: got %q and %v, want ErrAltered", body, err)
	}
	b.put(memsite.Site{key: stored[key]})
	if _, err := s.Get(t.Context(), detailsOf(60)); err != nil {
		t.Errorf("after the delta was put again: %v", err)
	}
}

// A turning store returns another body at each read of a key.
type turning struct {
	checked.Store
	key   site.Key
	turns []func()
}

func (s *turning) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	if key == s.key && len(s.turns) > 0 {
		turn := s.turns[0]
		s.turns = s.turns[1:]
		turn()
	}
	return s.Store.GetAdmitted(ctx, key, admit)
}

// An object replaced between two tries is not altered until notes read after it exclude that it was announced. An
// object that never matches is altered.
func TestAnotherBodyEachTime(t *testing.T) {
	p := testkey.New(t, origin)
	today, tomorrow := p.Sign(t, siteOf(t, 24, 50, 1), 1), p.Sign(t, siteOf(t, 25, 50, 1), 2)
	key := detailsOf(60)
	for name, test := range map[string]struct {
		then string
		want error
	}{
		"the next site's": {tomorrow[key], nil},
		"nobody's":        {"nobody's either", checked.ErrAltered},
	} {
		b := newBucket(t, today)
		store := &turning{b.store(), key, []func(){
			func() { b.put(memsite.Site{key: "nobody's"}) },
			func() { b.put(announced(t, tomorrow)); b.put(memsite.Site{key: test.then}) },
			func() {},
			func() {},
		}}
		is, err := checked.Open(t.Context(), store, p.Keys, checked.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if body, err := is.Get(t.Context(), key); !errors.Is(err, test.want) || err == nil && string(body) != test.then {
			t.Errorf("%s: got %q and %v, want %v", name, body, err, test.want)
		}
	}
}

// During an announcement, a note covers only its own root, not one that somebody else has put.
func TestARootBesideAnAnnouncement(t *testing.T) {
	p := testkey.New(t, origin)
	yesterday, today := p.Sign(t, siteOf(t, 23, 50, 1), 1), p.Sign(t, siteOf(t, 24, 50, 1), 2)
	for _, hasNote := range []bool{true, false} {
		b := newBucket(t, yesterday)
		b.put(announced(t, today))
		b.put(siteOf(t, 25, 0, 1)) // an unsigned site
		if !hasNote {
			b.remove(note.Key)
		}
		if s, err := checked.Open(t.Context(), b.store(), p.Keys, checked.Options{}); !errors.Is(err, checked.ErrBetween) {
			t.Errorf("with the note of another root (%t): got %v and %v, want ErrBetween", hasNote, s, err)
		}
		b.put(only(today, site.RootKey))
		if s, err := checked.Open(t.Context(), b.store(), p.Keys, checked.Options{}); err != nil || string(s.RootBody()) != today[site.RootKey] {
			t.Errorf("with the announced root (%t): got %v, want it", hasNote, err)
		}
	}
}

// A reader that allows a rollback accepts an older site, but no objects of the site before it, even if that one is
// announced again.
func TestAnOldSiteIsNotAnnounced(t *testing.T) {
	p := testkey.New(t, origin)
	yesterday, today := p.Sign(t, siteOf(t, 23, 50, 1), 1), p.Sign(t, siteOf(t, 24, 50, 1), 2)
	b := newBucket(t, today)
	b.put(announced(t, yesterday))
	b.put(only(yesterday, detailsOf(60)))
	s, err := checked.Open(t.Context(), b.store(), p.Keys, checked.Options{AllowRollback: true})
	if err != nil {
		t.Fatal(err)
	}
	if body, err := s.Get(t.Context(), detailsOf(60)); !errors.Is(err, checked.ErrAltered) {
		t.Errorf("got %q and %v, want ErrAltered", body, err)
	}
}

// A refreshed object is accepted only if a signed entry states that this body replaced the
// manifest's.
func TestRefreshedObjects(t *testing.T) {
	publisher, refresher, thief := testkey.New(t, origin), testkey.New(t, "refresher"), testkey.New(t, "refresher")
	s := publisher.Sign(t, siteOf(t, 1, 50, 1), 1)
	key, other := detailsOf(7), detailsOf(8)
	const body = `{"refreshed":true}`
	entry := func(put, from string) string {
		kept, err := refresh.KeepCopy([]byte(from), []byte(put), nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(kept)
	}
	signed := func(k testkey.Key, key site.Key, entry string) string {
		made, err := note.SignEntry(key, time.Now(), []byte(entry), k.Signer)
		if err != nil {
			t.Fatal(err)
		}
		return string(made)
	}
	const at, elsewhere = site.Key("_refresh/details/7"), site.Key("_refresh/details/8")
	right := entry(body, s[key])
	for name, c := range map[string]struct {
		put  memsite.Site
		keys note.Keys
		good bool
	}{
		"signed":                                 {memsite.Site{key: body, at: signed(refresher, at, right)}, refresher.Keys, true},
		"signed, of a reader without that key":   {memsite.Site{key: body, at: signed(refresher, at, right)}, note.Keys{}, false},
		"signed by the key of the site":          {memsite.Site{key: body, at: signed(publisher, at, right)}, refresher.Keys, false},
		"signed by another key of that name":     {memsite.Site{key: body, at: signed(thief, at, right)}, refresher.Keys, false},
		"not signed":                             {memsite.Site{key: body, at: right}, refresher.Keys, false},
		"signed of another object":               {memsite.Site{key: body, at: signed(refresher, elsewhere, right)}, refresher.Keys, false},
		"another body":                           {memsite.Site{key: body + " ", at: signed(refresher, at, right)}, refresher.Keys, false},
		"in place of what another site had":      {memsite.Site{key: body, at: signed(refresher, at, entry(body, "older"))}, refresher.Keys, false},
		"put under another key":                  {memsite.Site{other: body, at: signed(refresher, at, right)}, refresher.Keys, false},
		"with the same MD5, as the entry says":   {memsite.Site{key: body, at: signed(refresher, at, strings.Replace(right, site.Sum256([]byte(body)).String(), site.Sum256(nil).String(), 1))}, refresher.Keys, false},
		"as it was, and an entry that is broken": {memsite.Site{key: s[key], at: "{"}, refresher.Keys, true},
	} {
		b := newBucket(t, s)
		b.put(c.put)
		r, err := checked.Open(t.Context(), b.store(), publisher.Keys, checked.Options{Refreshers: c.keys})
		if err != nil {
			t.Fatal(err)
		}
		for read := range c.put {
			if strings.HasPrefix(string(read), "_refresh/") {
				continue
			}
			got, err := r.Get(t.Context(), read)
			if c.good && (err != nil || string(got) != c.put[read]) || !c.good && !errors.Is(err, checked.ErrAltered) {
				t.Errorf("%s: got %q, %v, want it accepted: %v", name, got, err, c.good)
			}
		}
	}
}
