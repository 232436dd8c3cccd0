package publisher_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/fakes3"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/storage"
)

// lacking lists the limitations of servers, by their names in docs/publish.md.
var lacking = map[string]fakes3.Lacks{
	"nothing":                        {},
	"conditions: refused":            {Conditions: fakes3.Refused},
	"conditions: ignored":            {Conditions: fakes3.Ignored},
	"quotes in If-Match":             {Match: fakes3.Unquoted},
	"strong ETags":                   {Match: fakes3.Weak, ETag: fakes3.Weak},
	"unquoted If-Match":              {Match: fakes3.Quoted},
	"quotes":                         {Match: fakes3.Unquoted, ETag: fakes3.Unquoted},
	"If-Match":                       {Match: fakes3.None},
	"ETags of puts":                  {PutETag: true},
	"deleting several objects: 400":  {Deletes: http.StatusBadRequest},
	"deleting several objects: 501":  {Deletes: http.StatusNotImplemented},
	"Content-MD5":                    {ContentMD5: true},
	"MD5s as ETags":                  {OtherETags: func([]byte) bool { return true }},
	"MD5s as ETags of large objects": {OtherETags: func(body []byte) bool { return len(body) > 1000 }},
	"MD5s as ETags, metadata":        {OtherETags: func([]byte) bool { return true }, Metadata: true},
	"metadata":                       {Metadata: true},
	"Google Cloud Storage":           {Conditions: fakes3.Ignored, Deletes: http.StatusBadRequest},
}

// unlocked reports whether a server cannot keep publishers apart.
func unlocked(lacks fakes3.Lacks) bool {
	return lacks.Conditions != fakes3.Kept || lacks.Match == fakes3.None
}

func fakeBucket(t *testing.T, server *fakes3.Server) storage.Bucket {
	t.Helper()
	bucket, err := storage.OpenBucket(t.Context(), storage.Location{Bucket: "bucket", Prefix: "p/"}, storage.S3Options{Endpoint: server.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

// equalFake compares what a server holds with a site.
func equalFake(t *testing.T, server *fakes3.Server, want memory) {
	t.Helper()
	got := memory{}
	for _, name := range server.Keys() {
		if key := site.Key(strings.TrimPrefix(name, "p/")); key != site.LockKey {
			got[key] = string(server.Body(name))
		}
	}
	if err := got.CompareStored(want); err != nil {
		t.Error(err)
	}
}

// Whatever a server lacks, the bucket becomes the site, obsolete objects are deleted, nothing is
// left to do, and a verification finds nothing.
func TestServersThatLackSomething(t *testing.T) {
	first := demo(t)
	gone := first.Keys(t, routes.Badges)[:3]
	second := first.Changed(t, 5, " ").With(t, func(objects memory, _ *site.Root) {
		for _, key := range gone {
			delete(objects, key)
		}
	})
	for _, name := range slices.Sorted(maps.Keys(lacking)) {
		t.Run(name, func(t *testing.T) {
			lacks := lacking[name]
			server := fakes3.Start(t, lacks)
			for i, next := range []memory{first, second, second} {
				deletes := server.Requests(http.MethodDelete)
				var log strings.Builder
				report := publish(t, next, fakeBucket(t, server), publisher.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
				if want := []publisher.Outcome{publisher.Published, publisher.Published, publisher.Unchanged}[i]; report.Outcome != want || report.Bulk {
					t.Errorf("run %d: got %s, archives %v, want %s", i, report.Outcome, report.Bulk, want)
				}
				want := unlocked(lacks) && i < 2
				if warned := strings.Count(log.String(), "conditional writes"); report.Unlocked != want || want != (warned == 1) || warned > 1 {
					t.Errorf("run %d: without a lock: got %v and %d warnings, want %v, and one if so: %s", i, report.Unlocked, warned, want, &log)
				}
				deleted := 0
				if i == 1 && lacks.Deletes != 0 {
					deleted = len(gone)
				}
				if i < 2 {
					deleted++ // the mark
				}
				if i == 0 {
					deleted++ // the archive that was not unpacked
				}
				if got := server.Requests(http.MethodDelete) - deletes; got != deleted {
					t.Errorf("run %d: got %d requests that delete an object, want %d", i, got, deleted)
				}
				equalFake(t, server, next)
			}
			if n := server.Requests(http.MethodPost); n != 1 {
				t.Errorf("got %d requests to delete several objects, want one", n)
			}
			v, err := publisher.Verify(t.Context(), fakeBucket(t, server), publisher.Options{})
			if err != nil || !v.Good() || v.Marked {
				t.Errorf("verify: got %+v, %v, want nothing wrong", v, err)
			}
		})
	}
}

// A server that ignores version 2 of listings gets an error that names the cause.
func TestAServerWithoutListingsOfVersion2(t *testing.T) {
	server := fakes3.Start(t, fakes3.Lacks{ListV2: true})
	publish(t, demo(t), fakeBucket(t, server), publisher.Options{})
	if _, err := publisher.Verify(t.Context(), fakeBucket(t, server), publisher.Options{Patience: time.Second}); err == nil || !strings.Contains(err.Error(), "list") {
		t.Errorf("verify: got %v, want an error about the listing", err)
	}
}

// An object that a server stores with other bytes is put again, whether it belongs to the site or
// is the root, the mark or the lock. If the server insists, the run fails and names the object.
func TestAServerThatAltersBodies(t *testing.T) {
	first := demo(t)
	second := first.Changed(t, 5, " ")
	var changed site.Key
	for key, body := range second {
		if first[key] != body && first[key] != "" && strings.HasPrefix(string(key), first.Root(t).Config.BasePath) {
			changed = key
		}
	}
	for _, key := range []site.Key{changed, site.RootKey, site.MarkKey, site.LockKey, site.DeltaKey("0")} {
		for _, always := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, always %v", key, always), func(t *testing.T) {
				server := fakes3.Start(t, fakes3.Lacks{ContentMD5: true})
				publish(t, first, fakeBucket(t, server), publisher.Options{})
				n := 0
				server.Lack(fakes3.Lacks{ContentMD5: true, Store: func(name string, body []byte) []byte {
					if name != "p/"+string(key) || n > 0 && !always {
						return body
					}
					n++
					body = bytes.Clone(body)
					copy(body[len(body)/2:], "XXXX")
					return body
				}})
				report, err := publisher.Publish(t.Context(), second, fakeBucket(t, server), publisher.Options{Patience: 500 * time.Millisecond})
				if n == 0 {
					t.Fatal("nothing was altered")
				}
				if !always {
					if err != nil || report.Outcome != publisher.Published {
						t.Errorf("altered once: got %s, %v, want it to be put again", report.Outcome, err)
					}
					equalFake(t, server, second)
					return
				}
				if err == nil || !strings.Contains(err.Error(), string(key)) || !strings.Contains(err.Error(), "other bytes") {
					t.Errorf("altered always: got %v, want an error that names %s", err, key)
				}
				if key != site.RootKey && string(server.Body("p/"+string(site.RootKey))) != first[site.RootKey] {
					t.Error("altered always: got another root, want that of the first site")
				}
			})
		}
	}
}

// A server that rejects every ETag keeps nobody waiting: once broken, the lock of an earlier run is
// freed.
func TestALockThatWasLeftOnAServerThatRefusesEveryETag(t *testing.T) {
	server := fakes3.Start(t, fakes3.Lacks{Match: fakes3.None})
	bucket := fakeBucket(t, server)
	body := []byte(`{"id":"x","owner":"an older version","lease_seconds":60}`)
	left := storage.Object{Entry: site.NewEntry(site.LockKey, body), Body: body}
	if _, err := bucket.Put(t.Context(), left, storage.Always); err != nil {
		t.Fatal(err)
	}
	first := demo(t)
	for i, next := range []memory{first, first.Changed(t, 5, " ")} {
		begun := time.Now()
		report := publish(t, next, bucket, publisher.Options{BreakLock: i == 0})
		if !report.Unlocked || time.Since(begun) > time.Minute {
			t.Errorf("run %d: got unlocked %v after %v, want true at once", i, report.Unlocked, time.Since(begun))
		}
		if !bytes.Equal(server.Body("p/_site"), []byte(next[site.RootKey])) {
			t.Errorf("run %d: got another root, want that of the site", i)
		}
		if !bytes.Contains(server.Body("p/_lock"), []byte(`"released":true`)) {
			t.Errorf("run %d: got the lock %s, want a free one", i, server.Body("p/_lock"))
		}
	}
}

// A setup reports whether a server can keep publishers apart, and leaves a held lock alone.
func TestSetUpTriesConditions(t *testing.T) {
	const step = "a lock between publishers (conditional writes)"
	for name, lacks := range lacking {
		server := fakes3.Start(t, lacks)
		setUp := func() []string {
			t.Helper()
			done, err := publisher.SetUp(t.Context(), fakeBucket(t, server), site.Config{}, publisher.Options{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return done
		}
		for range 2 {
			done := setUp()
			if got := slices.Contains(done, step); got == unlocked(lacks) || !got && !strings.HasPrefix(done[len(done)-1], publisher.Skipped+step) {
				t.Errorf("%s: got %q", name, done)
			}
			if body := server.Body("p/_lock"); body != nil && !bytes.Contains(body, []byte(`"released":true`)) {
				t.Errorf("%s: got the lock %s, want a free one", name, body)
			}
		}
		held := []byte(`{"id":"x","owner":"somebody","lease_seconds":60}`)
		if _, err := fakeBucket(t, server).Put(t.Context(), storage.Object{Entry: site.NewEntry(site.LockKey, held), Body: held}, storage.Always); err != nil {
			t.Fatal(err)
		}
		if done := setUp(); !strings.Contains(done[len(done)-1], "somebody") || !bytes.Equal(server.Body("p/_lock"), held) {
			t.Errorf("%s: a lock that is held: got %q and %s", name, done, server.Body("p/_lock"))
		}
	}
}
