package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
)

// An attacked bucket is one that the test writes to.
type attacked struct {
	t *testing.T
	storage.Bucket
	folder string // "" for a server
	args   []string
	is     memsite.Site // what the test has put
}

// put writes the objects that differ from those in the bucket.
func (b attacked) put(s memsite.Site) {
	b.t.Helper()
	for key, body := range s {
		if was, ok := b.is[key]; ok && was == body {
			continue
		}
		b.is[key] = body
		o := storage.Object{Entry: site.NewEntry(key, []byte(body)), Body: []byte(body), ContentType: "application/json"}
		if _, err := b.Put(b.t.Context(), o, storage.Always); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b attacked) remove(keys ...site.Key) {
	b.t.Helper()
	for _, key := range keys {
		delete(b.is, key)
	}
	if err := b.Delete(b.t.Context(), keys); err != nil {
		b.t.Fatal(err)
	}
}

// grow makes an object too large: 1 GiB in a folder. A server takes a smaller one, which is quicker
// to put and still too large.
func (b attacked) grow(key site.Key) {
	b.t.Helper()
	if b.folder == "" {
		b.put(memsite.Site{key: strings.Repeat(" ", 16<<20)})
		return
	}
	delete(b.is, key)
	if err := os.Truncate(filepath.Join(b.folder, filepath.FromSlash(string(key))), 1<<30); err != nil {
		b.t.Fatal(err)
	}
}

// onBuckets runs a test on a folder and on a server. open makes an empty bucket.
func onBuckets(t *testing.T, check func(t *testing.T, open func() attacked)) {
	t.Helper()
	t.Run("folder", func(t *testing.T) {
		check(t, func() attacked {
			folder := t.TempDir()
			bucket := storage.OpenLocal(folder)
			bucket.NoSync = true
			return attacked{t, bucket, folder, []string{"--site=" + folder}, memsite.Site{}}
		})
	})
	t.Run("MinIO", func(t *testing.T) {
		s := servers.Start(t, servers.MinIO)
		s.Env(t)
		check(t, func() attacked {
			at := storage.Location{Bucket: s.Bucket(t)}
			bucket, err := storage.OpenBucket(t.Context(), at, storage.S3Options{Endpoint: s.Endpoint})
			if err != nil {
				t.Fatal(err)
			}
			return attacked{t, bucket, "", []string{"--site=s3://" + at.Bucket, "--endpoint=" + s.Endpoint}, memsite.Site{}}
		})
	})
}

// demo returns the demo site of a day, in memory. The details of all lists contain the day.
func demo(t *testing.T, day int) memsite.Site {
	t.Helper()
	files, _, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: fixtures.Demo()}, generator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := memsite.Read(files)
	if err != nil {
		t.Fatal(err)
	}
	return s.With(t, func(objects memsite.Site, root *site.Root) {
		root.AsOf = fmt.Sprintf("2026-11-%02dT00:00:00Z", day)
		for key, body := range objects {
			if strings.HasSuffix(string(key), "/details") {
				objects[key] = strings.Replace(body, "{", fmt.Sprintf(`{"day":%d,`, day), 1)
			}
		}
	})
}

func details(s memsite.Site) (keys []site.Key) {
	for key := range s {
		if strings.HasSuffix(string(key), "/details") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// is asks for an object, and wants a status, and one of some bodies for a 200.
func (p *running) is(key site.Key, status int, bodies ...string) {
	p.t.Helper()
	response, body := get(p.t, p.base+key.URLPath())
	if response.StatusCode != status || status == http.StatusOK && !slices.Contains(bodies, body) {
		p.t.Errorf("%s: got %d %s, want %d %q", key, response.StatusCode, body, status, bodies)
	}
	if status == http.StatusBadGateway && (!strings.Contains(body, "signed") || response.Header.Get("Cache-Control") != site.NoStore) {
		p.t.Errorf("%s: got %s, Cache-Control %q, want a problem that nobody keeps", key, body, response.Header.Get("Cache-Control"))
	}
}

// logs waits for a line of the log that has all of some texts.
func (p *running) logs(texts ...string) {
	p.t.Helper()
	waitFor(p.t, fmt.Sprintf("a line of the log with %q, not %s", texts, p.Stderr()), func() bool {
		for line := range strings.Lines(p.Stderr()) {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
				return true
			}
		}
		return false
	})
}

func TestNothingIsServedThatNobodySigned(t *testing.T) {
	a := testkey.New(t, "follow.example")
	yesterday, today := a.Sign(t, demo(t, 23), 1), a.Sign(t, demo(t, 24), 2)
	keys := details(today)
	onBuckets(t, func(t *testing.T, open func() attacked) {
		b := open()
		b.put(today)
		p := run(t, executable(t), append(b.args, "--key="+a.Public, "--poll=20ms", "--metrics-addr=127.0.0.1:0")...)
		cached, other := keys[0], keys[1]
		p.is(cached, http.StatusOK, today[cached])
		forged := strings.Replace(today[keys[2]], "24", "66", 1)
		alteredToo := demo(t, 24).With(t, func(objects memsite.Site, _ *site.Root) { objects[keys[5]] = forged })
		delete(alteredToo, site.RootKey)
		for n, fault := range []struct {
			name   string
			attack func(key site.Key)
			got    string
		}{
			{"altered", func(key site.Key) { b.put(memsite.Site{key: forged}) }, "SHA-256"},
			{"swapped with another list's", func(key site.Key) { b.put(memsite.Site{key: today[other]}) }, "bytes"},
			{"replaced by yesterday's", func(key site.Key) { b.put(memsite.Site{key: yesterday[key]}) }, "SHA-256"},
			{"replaced, with its shard of the manifest", func(key site.Key) { b.put(alteredToo) }, ""},
			{"removed", func(key site.Key) { b.remove(key) }, "no such object"},
			{"1 GiB", func(key site.Key) { b.grow(key) }, "bytes"},
		} {
			key := keys[n+2]
			fault.attack(key)
			t.Log(fault.name)
			p.is(key, http.StatusBadGateway)
			p.logs("request failed", `"expected":"`, `"got":"`, fault.got, string(key))
			b.put(today)
			p.is(key, http.StatusOK, today[key])
		}
		if _, body := get(t, p.metricsURL()); !strings.Contains(body, "followpress_altered_total 6") {
			t.Errorf("metrics: got no 6 for 6 refused answers:\n%s", body)
		}
		// After a rollback, the fallback keeps serving the checked site.
		// Buckets tell times in seconds, so a root put again counts as new once its second is over.
		// The fallback then reads its cached objects again.
		uncached := keys[8]
		waitFor(t, "cached objects, with an older site in the bucket", func() bool {
			b.put(today)
			p.is(cached, http.StatusOK, today[cached])
			b.put(yesterday)
			p.logs("cannot read the root, serving the last known site", "older")
			_, body := get(t, p.base+cached.URLPath())
			return body == today[cached]
		})
		p.is(uncached, http.StatusBadGateway)
		p.is("readyz", http.StatusOK, "ok\n")
		b.put(today)
		p.is(uncached, http.StatusOK, today[uncached])
		next := a.Sign(t, demo(t, 25), 3)
		forgery := testkey.New(t, "follow.example").Sign(t, withoutNote(next), 3)
		b.put(memsite.Site{site.RootKey: forgery[site.RootKey], note.Key: forgery[note.Key]})
		p.logs("cannot read the root, serving the last known site", note.ErrUnsigned.Error())
		p.is(cached, http.StatusOK, today[cached])
		b.put(next)
		waitFor(t, "the next site", func() bool { _, body := get(t, p.base+cached.URLPath()); return body == next[cached] })

		allowing := run(t, executable(t), append(b.args, "--key="+a.Public, "--poll=20ms", "--allow-rollback")...)
		b.put(today)
		waitFor(t, "the older site", func() bool { _, body := get(t, allowing.base+cached.URLPath()); return body == today[cached] })
	})
}

func withoutNote(s memsite.Site) memsite.Site {
	s = maps.Clone(s)
	delete(s, note.Key)
	return s
}

func TestASiteThatNobodySignedIsNotServed(t *testing.T) {
	a, stranger, elsewhere := testkey.New(t, "follow.example"), testkey.New(t, "follow.example"), testkey.New(t, "other.example")
	s := withoutNote(demo(t, 24))
	signed := a.Sign(t, s, 1)
	onBuckets(t, func(t *testing.T, open func() attacked) {
		b := open()
		b.put(s)
		for _, tt := range []struct{ name, note, line string }{
			{"no note", "", "read _site.note: no note"},
			{"of an unknown key", stranger.Sign(t, s, 1)[note.Key], note.ErrUnsigned.Error()},
			{"of another bucket", elsewhere.Sign(t, demo(t, 25), 7)[note.Key], note.ErrUnsigned.Error()},
			{"of another root", a.Sign(t, demo(t, 25), 7)[note.Key], note.ErrOtherRoot.Error()},
			{"one bit flipped", signed[note.Key][:len(signed[note.Key])-9] + "!" + signed[note.Key][len(signed[note.Key])-8:], "_site.note"},
			{"with a forged second line", strings.Replace(signed[note.Key], "\nfollow.example\n", "\nother.example\n", 1), note.ErrForged.Error()},
		} {
			if tt.note != "" {
				b.put(memsite.Site{note.Key: tt.note})
			}
			t.Log(tt.name)
			fails(t, nil, tt.line, append(b.args, "--addr=127.0.0.1:0", "--key="+a.Public)...)
		}
		// While the first note is being published nobody can tell.
		b.remove(note.Key)
		next := a.Sign(t, demo(t, 25), 1)
		b.put(memsite.Site{note.NextKey: next[note.Key], site.NextKey(1, site.RootKey): next[site.RootKey]})
		p := run(t, executable(t), append(b.args, "--key="+a.Public, "--timeout=200ms")...)
		p.is(details(s)[0], http.StatusServiceUnavailable)
		b.put(next)
		waitFor(t, "the signed site", func() bool { return status(t, p.base+details(s)[0].URLPath()) == http.StatusOK })
	})
}

// Refreshed objects need a signature: fallbacks that know the key serve them, and others refuse.
// A fallback ignores stored refreshes that it did not sign, and never signs an altered object.
func TestRefreshedObjectsNeedASignature(t *testing.T) {
	publisher, refresher := testkey.New(t, "follow.example"), testkey.New(t, "refresher")
	s := publisher.Sign(t, demo(t, 24), 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"name":"refreshed.eth","fresh":%d}`, time.Now().UnixMilli())
	}))
	defer upstream.Close()
	onBuckets(t, func(t *testing.T, open func() attacked) {
		b := open()
		b.put(s)
		key := details(s)[0]
		of := site.RefreshKey(site.Details, strings.Split(string(key), "/")[3])
		b.put(memsite.Site{of: `{"name":"vitalik.eth","fresh":9000000000000,"stored":[]}`})
		checks := append(b.args, "--key="+publisher.Public)
		signs := run(t, executable(t), append(checks, "--refresh-key="+refresher.File(t), "--profile-upstream="+upstream.URL+"/{address}")...)
		response, refreshed := get(t, signs.base+key.URLPath()+"?cache=fresh")
		if response.StatusCode != http.StatusOK || !strings.Contains(refreshed, "refreshed.eth") {
			t.Fatalf("got %d %s, want what the upstream says, and not what nobody has signed", response.StatusCode, refreshed)
		}
		run(t, executable(t), append(checks, "--refreshed-key="+refresher.Public)...).is(key, http.StatusOK, refreshed)
		run(t, executable(t), checks...).is(key, http.StatusBadGateway)

		altered := strings.Replace(refreshed, "refreshed.eth", "vitalik.eth", 1)
		b.put(memsite.Site{details(s)[1]: altered})
		if response, body := get(t, signs.base+details(s)[1].URLPath()+"?cache=fresh"); response.StatusCode == http.StatusOK {
			t.Errorf("an altered object was refreshed: got %s", body)
		}
	})
}

func TestKeyFlags(t *testing.T) {
	a := testkey.New(t, "follow.example")
	for _, tt := range []struct {
		line string
		args []string
	}{
		{"--key: read the key", []string{"--key=nonsense"}},
		{"need --key", []string{"--allow-rollback"}},
		{"need --key", []string{"--refreshed-key=" + a.Public}},
		{"--refreshed-key: read the key", []string{"--key=" + a.Public, "--refreshed-key=nonsense"}},
		{"--refresh-key needs --key", []string{"--refresh-key=" + a.File(t), "--profile-upstream=https://x/{address}"}},
		{"needs --profile-upstream", []string{"--key=" + a.Public, "--refresh-key=" + a.File(t)}},
		{"--refresh-key: read the key", []string{"--key=" + a.Public, "--refresh-key=/nowhere", "--profile-upstream=https://x/{address}"}},
		{"unsigned refreshed data is never served", []string{"--key=" + a.Public, "--profile-upstream=https://x/{address}"}},
	} {
		p := begin(t, executable(t), nil, append([]string{"--site=" + t.TempDir()}, tt.args...)...)
		if status := p.wait(); status != 2 || !strings.Contains(p.Stderr(), tt.line) {
			t.Errorf("%q: got status %d, %s, want 2 and %q", tt.args, status, p.Stderr(), tt.line)
		}
	}
}
