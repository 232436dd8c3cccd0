package client_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/site/shards"
)

// A proofJob is a bucket, and the expected result of a page with keys.
type proofJob struct {
	Name   string `json:"name"`
	Says   string `json:"says"`   // message of the error; "" for any
	Before string `json:"before"` // a site that the page has read before; "" for none
	// BeforeKeys are the earlier keys of the page; nil means Keys.
	BeforeKeys []string       `json:"before_keys"`
	Base       string         `json:"base"`
	Keys       []string       `json:"keys"`
	Options    map[string]any `json:"options"`
	Path       string         `json:"path"`
	Status     int            `json:"status"`
	Bodies     []string       `json:"bodies"` // the only correct bodies
	Code       string         `json:"code"`   // code of the error; "" without an error
}

const (
	asked    = "/api/v1/lists/7/records"
	askedKey = site.Key("api/v1/lists/7/records")

	detailsKey = site.Key("api/v1/lists/7/details")
)

// proofSite returns a small site with the given number of digits in shard names. Its lists contain
// the version.
func proofSite(t *testing.T, digits, version int) memsite.Site {
	t.Helper()
	objects := map[site.Key]string{"_errors/no-such-list": `{"status":404}`, detailsKey: `{"ens":"of the site"}`}
	for i := range 60 {
		shown := version
		if i%3 == 0 {
			shown = 0
		}
		objects[site.Key(fmt.Sprintf("api/v1/lists/%d/records", i))] = fmt.Sprintf(`{"records":[],"list":%d,"version":%d}`, i, shown)
		objects[site.Key(fmt.Sprintf("api/v1/users/ü%d.é\U0001F98A\uFF5E/records", i))] = fmt.Sprint(i)
	}
	if version > 0 {
		objects[site.Key(fmt.Sprintf("api/v1/lists/10%d/records", version))] = `{"records":[]}`
	}
	return memsite.New(t, site.Root{
		Format: site.Format, AsOf: fmt.Sprintf("2026-11-2%dT00:00:00Z", version), BucketDigits: 1, ShardDigits: digits,
		Config: site.Config{BasePath: "api/v1"},
	}, objects)
}

// withDeltas returns the site to in the form after a publish that keeps the shards of from.
func withDeltas(t *testing.T, from, to memsite.Site) memsite.Site {
	t.Helper()
	stored := maps.Clone(to)
	deltas := map[string]*shards.Delta{}
	readers := map[bool]*shards.Reader{}
	var root site.Root
	for isNew, s := range map[bool]memsite.Site{false: from, true: to} {
		r, err := site.ParseRoot([]byte(s[site.RootKey]))
		if err != nil {
			t.Fatal(err)
		}
		if readers[isNew], err = shards.Open(t.Context(), &r, s.Get); err != nil {
			t.Fatal(err)
		}
		root = r
	}
	for _, name := range site.HashPrefixes(root.ShardDigits) {
		was, err := readers[false].Shard(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		is, err := readers[true].Shard(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		stored[site.ManifestKey(name)] = from[site.ManifestKey(name)]
		patch := shards.NewPatch(name, was.Objects, is.Objects, readers[true].Digest(name))
		if len(patch.Objects)+len(patch.Gone) == 0 {
			continue
		}
		group := shards.Group(name)
		if deltas[group] == nil {
			deltas[group] = &shards.Delta{Name: group}
		}
		deltas[group].Shards = append(deltas[group].Shards, patch)
	}
	for group, delta := range deltas {
		stored[site.DeltaKey(group)] = string(shards.Pack(delta.Append(nil)))
	}
	return stored
}

// addRefreshed adds refreshed data of a fallback. The page accepts the data if it has the key that
// signed the entry.
func addRefreshed(t *testing.T, is memsite.Site, add func(proofJob, testkey.Key, memsite.Site)) {
	t.Helper()
	refresher := testkey.New(t, "refresher")
	const put = `{"ens":"refreshed"}`
	entry := func(k testkey.Key, key site.Key, from string) string {
		kept, err := refresh.KeepCopy([]byte(from), []byte(put), nil)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := note.SignEntry(key, time.Now(), kept, k.Signer)
		if err != nil {
			t.Fatal(err)
		}
		return string(signed)
	}
	const at = site.Key("_refresh/details/7")
	copied := site.RefreshCopyKey(detailsKey)
	for name, c := range map[string]struct {
		at    site.Key
		entry string
		code  string
	}{
		"signed":                            {at, entry(refresher, at, is[detailsKey]), ""},
		"signed, as a copy":                 {copied, entry(refresher, copied, is[detailsKey]), ""},
		"signed by another of that name":    {at, entry(testkey.New(t, "refresher"), at, is[detailsKey]), "altered"},
		"signed of another object":          {at, entry(refresher, "_refresh/details/8", is[detailsKey]), "altered"},
		"in place of what another site had": {at, entry(refresher, at, "older"), "altered"},
		"not signed":                        {at, `{"stored":[]}`, "altered"},
		"altered":                           {at, strings.Replace(entry(refresher, at, is[detailsKey]), `"writes":1`, `"writes":2`, 1), "altered"},
	} {
		s := testkey.New(t, "follow.example")
		bucket := s.Sign(t, is, 7)
		bucket[detailsKey], bucket[c.at] = put, c.entry
		job := proofJob{Name: "refreshed, " + name, Path: "/api/v1/lists/7/details", Code: c.code, Options: map[string]any{"refreshedKeys": []string{refresher.Public}}}
		if c.code == "" {
			job.Bodies = []string{put}
		}
		add(job, s, bucket)
	}
	s := testkey.New(t, "follow.example")
	bucket := s.Sign(t, is, 7)
	bucket[detailsKey], bucket[at] = put, entry(refresher, at, is[detailsKey])
	add(proofJob{Name: "refreshed, of a page without that key", Path: "/api/v1/lists/7/details", Code: "altered"}, s, bucket)
}

// stages returns a bucket during the publish of a signed site that replaces another one, step by step.
func stages(t *testing.T, s testkey.Key, from, to memsite.Site) (all []memsite.Site) {
	t.Helper()
	bucket := s.Sign(t, from, 1)
	at := func() { all = append(all, maps.Clone(bucket)) }
	bucket["_next/_site.note"], bucket["_next/2/_site"] = s.Note(t, to, 2), to[site.RootKey]
	for key, body := range to {
		if strings.HasPrefix(string(key), "_manifest/") && from[key] != body {
			bucket["_next/2/"+key] = body
		}
	}
	at()
	for _, ofManifest := range []bool{false, true} {
		for n, key := range slices.Sorted(maps.Keys(to)) {
			if key != site.RootKey && strings.HasPrefix(string(key), "_manifest/") == ofManifest {
				bucket[key] = to[key]
			}
			if n == len(to)/2 {
				at()
			}
		}
		at()
	}
	bucket[site.RootKey] = to[site.RootKey]
	at()
	bucket[note.Key] = bucket["_next/_site.note"]
	at()
	return append(all, s.Sign(t, to, 2))
}

// Whatever is altered in a bucket, a page with keys gets an error that describes the alteration. It
// gets answers from a correct site, even while another one is being published.
func TestProof(t *testing.T) {
	servers.Wanted(t)
	var jobs []proofJob
	add := func(j proofJob, s testkey.Key, bucket memsite.Site) {
		j.Base, j.Keys = serve(t, bucket), append(j.Keys, s.Public)
		if j.Path == "" {
			j.Path = asked
		}
		if j.Status == 0 {
			j.Status = http.StatusOK
			if j.Code != "" {
				j.Status = http.StatusServiceUnavailable
			}
		}
		jobs = append(jobs, j)
	}
	key := func() testkey.Key { return testkey.New(t, fmt.Sprintf("site%d.example", len(jobs))) }

	for _, digits := range []int{1, 2, 3} {
		old, is := proofSite(t, digits, 1), proofSite(t, digits, 2)
		for name, stored := range map[string]memsite.Site{"in shards": is, "with deltas": withDeltas(t, old, is)} {
			s := key()
			for path, bodies := range map[string][]string{asked: {is[askedKey]}, "/api/v1/lists/6/records": {is["api/v1/lists/6/records"]}} {
				add(proofJob{Name: fmt.Sprintf("right, %d digits, %s, %s", digits, name, path), Path: path, Bodies: bodies}, s, s.Sign(t, stored, 1))
			}
			add(proofJob{Name: fmt.Sprintf("absent, %d digits, %s", digits, name), Path: "/api/v1/lists/101/records", Status: 404}, s, s.Sign(t, stored, 1))
		}
		s := key()
		for n, bucket := range stages(t, s, old, is) {
			for path, key := range map[string]site.Key{asked: askedKey, "/api/v1/lists/6/records": "api/v1/lists/6/records"} {
				add(proofJob{Name: fmt.Sprintf("publish, %d digits, stage %d, %s", digits, n, path), Path: path, Bodies: []string{old[key], is[key]}}, s, bucket)
			}
		}
	}

	old, is := proofSite(t, 2, 1), proofSite(t, 2, 2)
	shardOf := func(key site.Key) site.Key { return site.ManifestKey(site.ManifestShard(key, 2)) }
	fault := func(name, code string, alter func(s testkey.Key, bucket memsite.Site)) {
		s := key()
		bucket := s.Sign(t, is, 7)
		alter(s, bucket)
		add(proofJob{Name: name, Code: code}, s, bucket)
	}
	fault("an object altered", "altered", func(_ testkey.Key, b memsite.Site) { b[askedKey] = strings.Replace(b[askedKey], "7", "8", 1) })
	fault("an object cut off", "altered", func(_ testkey.Key, b memsite.Site) { b[askedKey] = b[askedKey][:9] })
	fault("an object swapped", "altered", func(_ testkey.Key, b memsite.Site) { b[askedKey] = b["api/v1/lists/8/records"] })
	fault("an object of yesterday", "altered", func(_ testkey.Key, b memsite.Site) { b[askedKey] = old[askedKey] })
	fault("an object removed", "altered", func(_ testkey.Key, b memsite.Site) { delete(b, askedKey) })
	fault("a shard with its objects of yesterday", "altered", func(_ testkey.Key, b memsite.Site) {
		b[askedKey], b[shardOf(askedKey)] = old[askedKey], old[shardOf(askedKey)]
	})
	fault("a shard that is no gzip file", "altered", func(_ testkey.Key, b memsite.Site) { b[shardOf(askedKey)] = "x" })
	fault("a delta for an altered shard", "altered", func(_ testkey.Key, b memsite.Site) {
		b[shardOf(askedKey)] = old[shardOf(askedKey)]
		name := site.ManifestShard(askedKey, 2)
		b[site.DeltaKey(shards.Group(name))] = string(shards.Pack([]byte(fmt.Sprintf(`{"delta":%q,"shards":[{"shard":%q,"objects":[],"gone":[]}]}`, shards.Group(name), name))))
	})
	fault("the root of another site", "altered", func(_ testkey.Key, b memsite.Site) { b[site.RootKey] = old[site.RootKey] })
	fault("a root with its own note of an unknown key", "unsigned", func(s testkey.Key, b memsite.Site) {
		b[note.Key] = testkey.New(t, s.Signer.Name()).Note(t, b, 8)
	})
	fault("a note of a key of another site", "unsigned", func(_ testkey.Key, b memsite.Site) { b[note.Key] = testkey.New(t, "other.example").Note(t, b, 8) })
	fault("a note about another site, by a known key", "unsigned", func(s testkey.Key, b memsite.Site) {
		signed, err := note.Sign(note.Of("other.example", 8, "2026-11-22T00:00:00Z", []byte(b[site.RootKey])), s.Signer)
		if err != nil {
			t.Fatal(err)
		}
		b[note.Key] = string(signed)
	})
	fault("a counter more than a day ahead", "ahead", func(s testkey.Key, b memsite.Site) {
		b[note.Key] = s.Note(t, b, uint64(time.Now().Add(note.MaxAhead+time.Hour).Unix()))
	})
	fault("the last counter", "ahead", func(s testkey.Key, b memsite.Site) { b[note.Key] = s.Note(t, b, 1<<53-1) })
	fault("no note", "unsigned", func(_ testkey.Key, b memsite.Site) { delete(b, note.Key) })
	fault("live", "unsigned", func(_ testkey.Key, b memsite.Site) {
		delete(b, note.Key)
		b[site.RootKey] = strings.Replace(b[site.RootKey], "{", `{"live":true,`, 1)
	})
	jobs[len(jobs)-1].Says = "_site: unsigned: this address answers from live, which nobody signs: ask the bucket"
	fault("no note but an announcement of another root", "between", func(s testkey.Key, b memsite.Site) {
		delete(b, note.Key)
		b["_next/_site.note"] = s.Note(t, old, 9)
	})
	fault("a note whose signature is no base64", "altered", func(_ testkey.Key, b memsite.Site) {
		b[note.Key] = b[note.Key][:len(b[note.Key])-10] + "@" + b[note.Key][len(b[note.Key])-9:]
	})
	large := proofSite(t, 3, 2)
	s3, old3 := key(), proofSite(t, 3, 1)
	withIndex := s3.Sign(t, large, 7)
	name := site.ManifestShard(askedKey, 3)
	for _, key := range []site.Key{askedKey, site.ManifestKey(name), site.ManifestKey(name[:1])} {
		withIndex[key] = old3[key]
	}
	add(proofJob{Name: "an index with its shard and their objects of yesterday", Code: "altered"}, s3, withIndex)
	for _, at := range []int{3, 25, -10} {
		fault(fmt.Sprintf("a note with one bit flipped at %d", at), "altered", func(_ testkey.Key, b memsite.Site) {
			flipped := []byte(b[note.Key])
			flipped[(at+len(flipped))%len(flipped)] ^= 1
			b[note.Key] = string(flipped)
		})
	}
	fault("a note with a forged second line", "altered", func(s testkey.Key, b memsite.Site) {
		b[note.Key] = strings.Replace(b[note.Key], "\n"+s.Signer.Name()+"\n", "\nother.example\n", 1)
	})
	fault("a root that is neither the live nor the announced one", "between", func(s testkey.Key, b memsite.Site) {
		b[site.RootKey] = proofSite(t, 2, 3)[site.RootKey]
		b["_next/_site.note"], b["_next/8/_site"] = s.Note(t, old, 8), old[site.RootKey]
	})
	fault("an object of an old announcement", "altered", func(s testkey.Key, b memsite.Site) {
		b["_next/_site.note"], b["_next/6/_site"] = s.Note(t, old, 6), old[site.RootKey]
		b[askedKey] = old[askedKey]
		b["_next/6/"+shardOf(askedKey)] = old[shardOf(askedKey)]
	})

	addRefreshed(t, is, add)
	s := key()
	fresh := s.Sign(t, is, 7)
	fresh["api/v1/lists/107/details"] = `{"unlisted":true}`
	add(proofJob{Name: "an object that no manifest lists is absent", Path: "/api/v1/lists/107/details", Status: 404}, s, fresh)

	newest, rolled := serve(t, s.Sign(t, is, 8)), s.Sign(t, old, 7)
	add(proofJob{Name: "a rollback", Before: newest, Code: "older"}, s, rolled)
	add(proofJob{Name: "a rollback that is meant", Before: newest, Options: map[string]any{"allowRollback": true}, Bodies: []string{old[askedKey]}}, s, rolled)
	s = key()
	add(proofJob{Name: "another root with the same counter", Before: serve(t, s.Sign(t, old, 8)), Code: "older"}, s, s.Sign(t, is, 8))
	add(proofJob{Name: "a key that is none", Keys: []string{"x"}, Code: "unsupported"}, s, s.Sign(t, is, 9))
	s = key()
	add(proofJob{Name: "one of two keys has signed", Keys: []string{key().Public}, Bodies: []string{is[askedKey]}}, s, s.Sign(t, is, 9))

	// The objects to check a body with are requested before the body arrives.
	s = key()
	objects := s.Sign(t, is, 1)
	waits := map[string]string{"/" + string(site.RootKey): "/" + string(note.Key), "/" + string(askedKey): "/" + string(shardOf(askedKey))}
	come := map[string]chan struct{}{}
	for _, by := range waits {
		come[by] = make(chan struct{})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := come[r.URL.Path]; c != nil {
			close(c) // each object is requested once
		}
		if by := waits[r.URL.Path]; by != "" {
			select {
			case <-come[by]:
			case <-r.Context().Done(): // the client gives up earlier
			}
		}
		bucket(objects).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	add(proofJob{Name: "all at the same time", Bodies: []string{is[askedKey]}}, s, objects)
	jobs[len(jobs)-1].Base = server.URL + "/"

	var sent atomic.Int64
	for _, endless := range []site.Key{askedKey, shardOf(askedKey), site.RootKey, note.Key, site.DeltaKey(shards.Group(site.ManifestShard(askedKey, 2)))} {
		s := key()
		objects := s.Sign(t, is, 1)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/"+string(endless) {
				bucket(objects).ServeHTTP(w, r)
				return
			}
			w.Header().Set("Access-Control-Allow-Origin", "*")
			block := make([]byte, 1<<16)
			for range 1 << 30 >> 16 {
				n, err := w.Write(block)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		}))
		t.Cleanup(server.Close)
		add(proofJob{Name: fmt.Sprintf("a gigabyte at %s", endless), Code: "altered"}, s, objects)
		jobs[len(jobs)-1].Base = server.URL + "/"
	}

	dir := modules(t)
	body, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "jobs.json", body)
	node := exec.Command("node", "--test", "test/proof.test.mjs")
	node.Env = append(os.Environ(), "FOLLOWPRESS_PROOFS="+filepath.Join(dir, "jobs.json"), "FOLLOWPRESS_CLIENT=file://"+dir+"/")
	if output, err := node.CombinedOutput(); err != nil {
		t.Errorf("node: %v\n%s", err, output)
	}
	// Each body is read three times; bytes sent beyond its limit are in buffers.
	if most := int64(256 << 20); sent.Load() > most || sent.Load() == 0 {
		t.Errorf("gigabytes: %d bytes were sent, want at most %d", sent.Load(), most)
	}
}
