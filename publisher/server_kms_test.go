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

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// Under SSE-KMS no ETag is an MD5. Verify, repair and resuming a killed run still work, and right
// objects are not put again.
func TestETagsThatAreNoMD5s(t *testing.T) {
	server := servers.StartEncrypting(t)
	first := demo(t)
	second := first.Changed(t, 5, " ")
	config := first.Root(t).Config
	records, details := first.Keys(t, routes.Records), first.Keys(t, routes.Details)
	missing, altered, refreshed := records[0], records[1], details[0]
	refresh := config.RefreshesOf(refreshed)[0]
	p := newPlace(t, server, "site/")
	report := publish(t, first, p.open(t, nil), publisher.Options{})
	if report.Bulk {
		t.Error("archives: got them, want none, because they lose the digests")
	}
	for key, info := range p.list(t) {
		if info.ETag == site.Sum([]byte(first[key])).String() {
			t.Fatalf("ETag of %s: got its MD5, want another one", key)
		}
	}

	verify := func(want found, most int, says string) {
		t.Helper()
		var log bytes.Buffer
		r := newRecorder(p.at)
		v, err := publisher.Verify(t.Context(), p.open(t, r), publisher.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		want.check(t, v)
		shards := len(first.Root(t).Manifest)
		if heads, gets := r.of(http.MethodHead), r.of(http.MethodGet)-shards-1; heads > len(first) || gets > most || r.all() != heads+gets+shards+1+r.lists() {
			t.Errorf("verify: got %d heads, %d gets of objects, want at most %d and %d", heads, gets, len(first), most)
		}
		if !strings.Contains(log.String(), says) {
			t.Errorf("log: want %q in it, got %s", says, &log)
		}
	}
	verify(found{}, 0, "SSE-KMS")

	p.remove(t, missing)
	p.put(t, altered, strings.Repeat("x", len(first[altered])), minio.PutObjectOptions{})
	p.put(t, refreshed, "fresh", minio.PutObjectOptions{})
	p.put(t, refresh, keptFor(first[refreshed]), minio.PutObjectOptions{})
	p.put(t, details[1], first[details[1]], minio.PutObjectOptions{}) // the right bytes, without followpress metadata
	verify(found{missing: []site.Key{missing}, altered: []site.Key{altered}, refreshed: []site.Key{refreshed}}, 5, "SSE-KMS")

	r := newRecorder(p.at)
	if _, err := publisher.Repair(t.Context(), first, p.open(t, r), publisher.Options{}); err != nil {
		t.Fatal(err)
	}
	if put, want := slices.Sorted(maps.Keys(r.objectsPut())), []site.Key{missing, altered, site.RootKey}; !slices.Equal(put, slices.Sorted(slices.Values(want))) {
		t.Errorf("puts of repair: got %v, want %v", put, want)
	}
	verify(found{refreshed: []site.Key{refreshed}}, 4, "SSE-KMS")

	// A run was cut off: some objects of the second site are there.
	p.remove(t, refresh)
	changed := map[site.Key]bool{refreshed: true}
	for key, body := range second {
		if body != first[key] {
			changed[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(changed))[:10] {
		route, _ := config.RouteOf(key)
		p.put(t, key, second[key], minio.PutObjectOptions{ContentType: route.ContentType, CacheControl: route.CacheControl})
		delete(changed, key)
	}
	p.put(t, site.MarkKey, "{}", minio.PutObjectOptions{})
	r = newRecorder(p.at)
	if report := publish(t, second, p.open(t, r), publisher.Options{}); !report.Resumed {
		t.Error("outcome: got nothing to resume, want a run that was cut off")
	}
	if put, want := slices.Sorted(maps.Keys(r.objectsPut())), slices.Sorted(maps.Keys(changed)); !slices.Equal(put, want) {
		t.Errorf("resumed: got %d puts, want %d: %v, %v", len(put), len(want), put, want)
	}
	for key, body := range second {
		if got, _ := p.get(t, key); got != body {
			t.Errorf("%s: got another object, want it unchanged", key)
		}
	}
	if again := publish(t, second, p.open(t, nil), publisher.Options{}); again.Outcome != publisher.Unchanged {
		t.Errorf("published again: got %s, want unchanged", again.Outcome)
	}
}

// keptFor returns the entry below _refresh/ of a refresh that replaced a body with "fresh".
func keptFor(replaced string) string {
	return fmt.Sprintf(`{"stored":[{"md5":%q,"from":%q}]}`, site.Sum([]byte("fresh")), site.Sum([]byte(replaced)))
}

type found struct{ missing, altered, unknown, foreign, refreshed []site.Key }

func (f found) check(t *testing.T, v *publisher.Verification) {
	t.Helper()
	for _, kind := range []struct {
		name string
		want []site.Key
		got  publisher.Found
	}{{"missing", f.missing, v.Missing}, {"altered", f.altered, v.Altered}, {"unknown", f.unknown, v.Unknown}, {"foreign", f.foreign, v.Foreign}, {"refreshed", f.refreshed, v.Refreshed}} {
		want := slices.Sorted(slices.Values(kind.want))
		if !slices.Equal(kind.got.Keys, want) || kind.got.Count != len(want) {
			t.Errorf("%s: got %v (%d), want %v", kind.name, kind.got.Keys, kind.got.Count, want)
		}
	}
}
