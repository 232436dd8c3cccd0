package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// keyName is the name of test keys, and the origin of their sites.
const keyName = "follow.example"

// before1970 returns a clock that makes counters begin with 1.
func before1970() time.Time { return time.Unix(-1, 0) }

// newSigning makes a key. Its counters are 1, 2, 3.
func newSigning(t testing.TB) *Signing {
	t.Helper()
	k := testkey.New(t, keyName)
	return &Signing{Signers: []note.Signer{k.Signer}, Keys: k.Keys, Now: before1970}
}

// asOf returns a site with a time.
func asOf(t testing.TB, objects map[site.Key]string, day int) memorySite {
	t.Helper()
	return siteOf(t, objects, func(r *site.Root) { r.AsOf = fmt.Sprintf("2026-11-%02dT00:00:00Z", day) })
}

// openNote checks the note of a folder, and that it names the folder's root.
func openNote(t testing.TB, folder string, keys note.Keys) note.Note {
	t.Helper()
	all := readAll(t, folder)
	n, _, err := keys.Open([]byte(all[note.Key]), time.Now())
	if err == nil {
		err = n.Names([]byte(all[site.RootKey]))
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// withoutNote leaves out the note, which every signed bucket has.
func withoutNote(m memorySite) memorySite {
	delete(m, note.Key)
	return m
}

func TestSign(t *testing.T) {
	folder := t.TempDir()
	bucket, signing := openLocal(folder), newSigning(t)
	first, second := asOf(t, objectsOf(5, ""), 20), asOf(t, objectsOf(6, "b"), 21)
	signed := Options{Signing: signing}

	report := publish(t, first, bucket, signed)
	if n := openNote(t, folder, signing.Keys); n.Counter != 1 || n.Origin != keyName || n.AsOf != "2026-11-20T00:00:00Z" {
		t.Errorf("the first note: got %+v", n)
	}
	if report.Signed == nil || report.Signed.Counter != 1 {
		t.Errorf("the report: got %+v, want the counter 1", report.Signed)
	}
	equalSites(t, withoutNote(inBucket(t, folder)), first)

	if report = publish(t, first, bucket, signed); report.Outcome != Unchanged || report.Signed != nil {
		t.Errorf("the same again: got %s, %+v, want unchanged, and nothing signed", report.Outcome, report.Signed)
	}
	publish(t, second, bucket, signed)
	if n := openNote(t, folder, signing.Keys); n.Counter != 2 {
		t.Errorf("the second note: got the counter %d, want 2", n.Counter)
	}
	equalSites(t, withoutNote(inBucket(t, folder)), second)
	if v, err := Verify(context.Background(), bucket, Options{}); err != nil || !v.Good() {
		t.Errorf("verify: got %v, %v", v, err)
	}
}

// A site whose explorer would show nothing, because none of its keys signs the site, is not
// published.
func TestExplorerKeysMustSign(t *testing.T) {
	key, other := testkey.New(t, keyName), testkey.New(t, keyName)
	signing := &Signing{Signers: []note.Signer{key.Signer}, Keys: key.Keys, Now: before1970}
	for _, tt := range []struct {
		name    string
		keys    string
		signing *Signing
		want    error
	}{
		{"its key signs", key.Public, signing, nil},
		{"one of its keys signs", other.Public + " " + key.Public, signing, nil},
		{"another key signs", other.Public, signing, errExplorerKeys},
		{"nobody signs", key.Public, nil, errExplorerKeys},
		{"no key is set", "", nil, nil},
	} {
		folder := t.TempDir()
		s := siteOf(t, objectsOf(5, ""), func(r *site.Root) {
			r.AsOf, r.Config.Explorer, r.Config.ExplorerKeys = "2026-11-20T00:00:00Z", true, tt.keys
		})
		_, err := Publish(context.Background(), s, openLocal(folder), Options{Signing: tt.signing, anyRules: true})
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
		if _, there := readAll(t, folder)[site.RootKey]; there != (tt.want == nil) {
			t.Errorf("%s: got a root: %t", tt.name, there)
		}
	}
}

// The note of the bucket decides what a publish may do.
func TestSignOverOtherNotes(t *testing.T) {
	older, newer := asOf(t, objectsOf(5, ""), 20), asOf(t, objectsOf(6, "b"), 21)
	mine, other := newSigning(t), newSigning(t)
	replacing := *mine
	replacing.ReplaceNote = true
	renewed := *other
	renewed.ReplaceNote = true
	useUp := func(t *testing.T, folder string) {
		stolen(t, folder, note.Key, mine, 1<<53-1)
		put(t, folder, objectOf(t, folder), "{}") // the manifest does not show this
	}
	damage := func(t *testing.T, folder string) {
		text := readAll(t, folder)[note.Key]
		put(t, folder, note.Key, strings.Replace(text, "\n1\n", "\n7\n", 1))
	}
	for _, tt := range []struct {
		name    string
		first   Options
		change  func(*testing.T, string)
		next    memorySite
		options Options
		want    error
		counter uint64 // 0: no note
		puts    bool   // whether objects are put
	}{
		{"an unsigned bucket is signed without putting objects", Options{}, nil, older, Options{Signing: mine}, nil, 1, false},
		{"an unsigned bucket gets a newer signed site", Options{}, nil, newer, Options{Signing: mine}, nil, 1, true},
		{"unsigned into a signed bucket", Options{Signing: mine}, nil, newer, Options{}, ErrSigned, 1, false},
		{"unsigned into a signed bucket, with the intention", Options{Signing: mine}, nil, newer, Options{Unsigned: true}, nil, 0, true},
		{"the signature is removed from the same site", Options{Signing: mine}, nil, older, Options{Unsigned: true}, nil, 0, false},
		{"by another key", Options{Signing: other}, nil, newer, Options{Signing: mine}, errOtherNote, 1, false},
		{"by another key, replaced", Options{Signing: other}, nil, newer, Options{Signing: &replacing}, nil, 1, true},
		{"a forged note", Options{Signing: mine}, damage, newer, Options{Signing: mine}, errOtherNote, 0, false},
		{"a forged note, replaced", Options{Signing: mine}, damage, newer, Options{Signing: &replacing}, nil, 1, true},
		{"by its key, with a counter that no clock has reached", Options{Signing: mine}, useUp, newer, Options{Signing: mine}, errStolen, 0, false},
		{"by its key, with an excessive counter, replaced", Options{Signing: mine}, useUp, newer, Options{Signing: &replacing}, nil, 1, true},
		{"by its key, with an excessive counter, replaced by a new key", Options{Signing: mine}, useUp, newer, Options{Signing: &renewed}, nil, 1, true},
		{"by its key, with an excessive counter, the same site by a new key", Options{Signing: mine}, useUp, older, Options{Signing: &renewed}, nil, 1, true},
		{"announced by its key, with an excessive counter", Options{Signing: mine}, func(t *testing.T, folder string) { announceFlood(t, folder, mine) },
			newer, Options{Signing: mine}, nil, 2, true},
		{"an older site", Options{Signing: mine}, func(t *testing.T, folder string) { publish(t, newer, openLocal(folder), Options{Signing: mine}) },
			older, Options{Signing: mine}, ErrRollback, 2, false},
		{"an older site, where somebody has put an older root", Options{Signing: mine}, func(t *testing.T, folder string) {
			root := readAll(t, folder)[site.RootKey]
			publish(t, newer, openLocal(folder), Options{Signing: mine})
			put(t, folder, site.RootKey, root)
		}, asOf(t, objectsOf(7, "c"), 20), Options{Signing: mine}, ErrRollback, 2, false},
		{"an older site, with the intention", Options{Signing: mine}, func(t *testing.T, folder string) { publish(t, newer, openLocal(folder), Options{Signing: mine}) },
			older, Options{Signing: mine, AllowRollback: true}, nil, 3, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			bucket := openLocal(folder)
			publish(t, older, bucket, tt.first)
			if tt.change != nil {
				tt.change(t, folder)
			}
			before := readAll(t, folder)
			report, err := Publish(context.Background(), tt.next, bucket, tt.options)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if put := report.Done.Put > 0; put != tt.puts {
				t.Errorf("got %d objects put, want some: %v", report.Done.Put, tt.puts)
			}
			after := readAll(t, folder)
			if err != nil {
				for key, body := range before {
					if after[key] != body && key != site.LockKey {
						t.Errorf("%s was changed by a publish that was refused", key)
					}
				}
				return
			}
			equalSites(t, withoutNote(inBucket(t, folder)), tt.next)
			if _, signed := after[note.Key]; signed != (tt.counter > 0) {
				t.Fatalf("the bucket is signed: got %v", signed)
			}
			if tt.counter > 0 {
				if n := openNote(t, folder, tt.options.Signing.Keys); n.Counter != tt.counter {
					t.Errorf("got the counter %d, want %d", n.Counter, tt.counter)
				}
			}
			if again := publish(t, tt.next, bucket, tt.options); again.Outcome != Unchanged {
				t.Errorf("the same again: got %s, want unchanged", again.Outcome)
			}
		})
	}
}

// stolen puts a note of the current root, as a thief of the key would.
func stolen(t testing.TB, folder string, key site.Key, by *Signing, counters ...uint64) {
	t.Helper()
	var all [][]byte
	for _, counter := range counters {
		signed, err := note.Sign(note.Of(keyName, counter, "2026-11-20T00:00:00Z", []byte(readAll(t, folder)[site.RootKey])), by.Signers...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, signed)
	}
	put(t, folder, key, string(note.Join(all...)))
}

// announceFlood announces as many sites as readers check, with counters ahead of the clock.
func announceFlood(t testing.TB, folder string, by *Signing) {
	t.Helper()
	var counters []uint64
	for n := range note.MaxAnnounced {
		counters = append(counters, 1<<53-1-uint64(n))
	}
	stolen(t, folder, note.NextKey, by, counters...)
}

// objectOf returns the key of some object of the site in a folder.
func objectOf(t testing.TB, folder string) site.Key {
	t.Helper()
	for key := range readAll(t, folder) {
		if strings.HasPrefix(string(key), "api/") {
			return key
		}
	}
	t.Fatal("there is no object")
	return ""
}

// A bucket signed by one key is signed by a second one too, and then by the second alone, without
// putting an object. The counter stays, because the root does.
func TestRotateKeys(t *testing.T) {
	folder := t.TempDir()
	bucket, from := openLocal(folder), asOf(t, objectsOf(5, ""), 20)
	before, after := testkey.New(t, keyName), testkey.New(t, keyName)
	both, err := note.ParseKeys(after.Public, before.Public)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name      string
		signing   *Signing
		oldReader bool // whether a reader that knows only the old key accepts the site
		newReader bool
	}{
		{"the old key", &Signing{Signers: []note.Signer{before.Signer}, Keys: before.Keys, Now: before1970}, true, false},
		{"both", &Signing{Signers: []note.Signer{after.Signer, before.Signer}, Keys: both, Now: before1970}, true, true},
		{"the new key", &Signing{Signers: []note.Signer{after.Signer}, Keys: after.Keys, Now: before1970}, false, true},
	} {
		report := publish(t, from, bucket, Options{Signing: step.signing})
		if step.name != "the old key" && report.Done.Put+report.Done.Manifests > 0 {
			t.Errorf("%s: got %+v, want no objects put", step.name, report.Done)
		}
		for _, reader := range []struct {
			keys note.Keys
			want bool
		}{{before.Keys, step.oldReader}, {after.Keys, step.newReader}} {
			n, _, err := reader.keys.Open([]byte(readAll(t, folder)[note.Key]), time.Now())
			if (err == nil) != reader.want || err == nil && n.Counter != 1 {
				t.Errorf("%s: got %+v, %v, want it to be accepted: %v", step.name, n, err, reader.want)
			}
		}
	}
}

// Readers accept the next site even if the note was lost or replaced by an old one, because
// counters are times.
func TestLostNote(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, folder, old string){
		"lost":     func(t *testing.T, folder, _ string) { remove(t, folder, note.Key) },
		"put back": func(t *testing.T, folder, old string) { put(t, folder, note.Key, old) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			bucket, signing := openLocal(folder), newSigning(t)
			now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
			signing.Now = func() time.Time { return now }
			var old string
			for n := range 3 { // within a second
				publish(t, asOf(t, objectsOf(n+2, ""), 20+n), bucket, Options{Signing: signing})
				if n == 0 {
					old = readAll(t, folder)[note.Key]
				}
			}
			reader, err := checked.Open(context.Background(), storage.OpenLocal(folder), signing.Keys, checked.Options{})
			if err != nil {
				t.Fatal(err)
			}
			lose(t, folder, old)
			now = now.Add(time.Minute)
			next := asOf(t, objectsOf(7, ""), 22)
			publish(t, next, bucket, Options{Signing: signing})
			if _, _, err := reader.Read(context.Background(), site.RootKey); err != nil || string(reader.RootBody()) != next[site.RootKey] {
				t.Errorf("a reader that has seen the note before: %v", err)
			}
			if n := openNote(t, folder, signing.Keys); n.Counter != uint64(now.Unix()) {
				t.Errorf("got the counter %d, want %d", n.Counter, now.Unix())
			}
		})
	}
}

// A signer that fails, or signs something else, changes nothing.
func TestSignerFails(t *testing.T) {
	folder := t.TempDir()
	bucket, signing, other := openLocal(folder), newSigning(t), newSigning(t)
	publish(t, asOf(t, objectsOf(5, ""), 20), bucket, Options{Signing: signing})
	before := withoutFreeLock(readAll(t, folder))
	elsewhere, here := testkey.New(t, "other.example"), testkey.New(t, keyName)
	two, err := note.ParseKeys(here.Public, elsewhere.Public)
	if err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string]*Signing{
		"a signature of another key":      {Signers: other.Signers, Keys: signing.Keys},
		"a signature more than keys":      {Signers: slices.Concat(signing.Signers, other.Signers), Keys: signing.Keys},
		"keys with two names":             {Signers: []note.Signer{here.Signer, elsewhere.Signer}, Keys: two, ReplaceNote: true},
		"the same key twice":              {Signers: slices.Concat(signing.Signers, signing.Signers), Keys: signing.Keys},
		"no signer":                       {Keys: signing.Keys},
		"no key that readers could check": {Signers: signing.Signers},
	} {
		if _, err := Publish(context.Background(), asOf(t, objectsOf(6, ""), 21), bucket, Options{Signing: broken}); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	after := withoutFreeLock(readAll(t, folder))
	if len(after) != len(before) {
		t.Errorf("got %d objects, want the %d of before", len(after), len(before))
	}
	for key, body := range before {
		if after[key] != body {
			t.Errorf("%s was changed", key)
		}
	}
}

// Wherever a publish was cut off, readers may have seen its announcement. So the site before it,
// published again, gets a greater counter, and is rejected if the newer root is in the bucket,
// unless a rollback is allowed.
func TestBackAfterACutOffPublish(t *testing.T) {
	signing := newSigning(t)
	first, second := asOf(t, objectsOf(4, ""), 20), asOf(t, objectsOf(5, "b"), 21)
	o := Options{Signing: signing, BreakLock: true, drain: dead, Concurrency: 1}
	announced, refused := 0, 0
	for cut := 0; ; cut++ {
		folder := t.TempDir()
		bucket := openLocal(folder)
		publish(t, first, bucket, o)
		_, dying := Publish(context.Background(), second, &mortal{Bucket: bucket, left: cut}, o)
		if dying != nil && !errors.Is(dying, errDead) {
			t.Fatal(dying)
		}
		all := readAll(t, folder)
		_, isAnnounced := all[note.NextKey]
		isLive := all[site.RootKey] == second[site.RootKey]
		if isLive {
			refused++
			if _, err := Publish(context.Background(), first, bucket, o); !errors.Is(err, ErrRollback) {
				t.Errorf("cut off after %d writes, with the newer root: got %v, want ErrRollback", cut, err)
			}
		}
		again := o
		again.AllowRollback = true
		publish(t, first, bucket, again)
		equalSites(t, withoutNote(inBucket(t, folder)), first)
		want := uint64(1)
		if isAnnounced || isLive {
			announced++
			want = 3
		}
		if n := openNote(t, folder, signing.Keys); n.Counter != want {
			t.Errorf("cut off after %d writes: got the counter %d, want %d", cut, n.Counter, want)
		}
		if dying == nil || t.Failed() {
			break
		}
	}
	if announced < 10 || refused < 2 {
		t.Errorf("%d publishes were cut off after they had announced the site, and %d after its root: the test tests nothing", announced, refused)
	}
}

// A root put by somebody else proves nothing about the objects: all are checked.
func TestRootOfSomebodyElse(t *testing.T) {
	folder := t.TempDir()
	bucket, signing := openLocal(folder), newSigning(t)
	first, second := asOf(t, objectsOf(5, ""), 20), asOf(t, objectsOf(5, ""), 21)
	publish(t, first, bucket, Options{Signing: signing})
	put(t, folder, site.RootKey, strings.Replace(first[site.RootKey], "2026-11-20", "2026-11-19", 1))
	put(t, folder, objectOf(t, folder), "{}") // unknown to the manifest
	publish(t, second, bucket, Options{Signing: signing})
	equalSites(t, withoutNote(inBucket(t, folder)), second)
}
