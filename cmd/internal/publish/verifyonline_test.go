package publish

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
)

// An online site is one behind a server that lists nothing.
type online struct {
	url string

	mu       sync.Mutex
	objects  memsite.Site
	requests map[site.Key]int
	fail     func(key site.Key, n int) (status int) // status for the nth request for a key; 0 to answer
	endless  site.Key                               // has a body that never ends
}

func newOnline(t *testing.T, objects memsite.Site) *online {
	t.Helper()
	o := &online{objects: objects, requests: map[site.Key]int{}}
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	o.url = server.URL + "/prefix"
	return o
}

func (o *online) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, "/prefix/")
	key := site.Key(path)
	o.mu.Lock()
	o.requests[key]++
	body, found := o.objects[key]
	status := 0
	if o.fail != nil {
		status = o.fail(key, o.requests[key])
	}
	o.mu.Unlock()
	switch {
	case r.URL.RawQuery != "" || !ok:
		w.WriteHeader(http.StatusTeapot) // nobody lists
	case status != 0:
		w.WriteHeader(status)
	case key == o.endless:
		for piece := make([]byte, 1<<10); ; {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	case !found:
		w.WriteHeader(http.StatusNotFound)
	default:
		_, _ = w.Write([]byte(body))
	}
}

// count returns the number of requests for keys that match pattern.
func (o *online) count(pattern string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, times := range o.requests {
		if regexp.MustCompile(pattern).MatchString(string(key)) {
			n += times
		}
	}
	return n
}

// filesOf reads a folder as a site.
func filesOf(t *testing.T, folder string) memsite.Site {
	t.Helper()
	objects := memsite.Site{}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		objects[site.Key(filepath.ToSlash(name))] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestVerifyOnline: verify --key checks a CDN like a bucket, and reports what it could not check.
func TestVerifyOnline(t *testing.T) {
	key, stranger := testkey.New(t, "follow.example"), testkey.New(t, "follow.example").Public
	folder := t.TempDir()
	if status, _, stderr := runPublish("--site", demoSite(t, "out"), "--dest", "file://"+folder, "--sign", key.File(t), "--no-sync"); status != 0 {
		t.Fatal(stderr)
	}
	published := filesOf(t, folder)
	if status, _, stderr := runPublish("--snapshot", demoSnapshot(t, aFollow), "--dest", "file://"+folder, "--sign", key.File(t), "--no-sync"); status != 0 {
		t.Fatal(stderr)
	}
	next := filesOf(t, folder)
	const board = "api/v1/leaderboard/followers"
	replace := func(key site.Key, from, to string) func(o *online) {
		return func(o *online) {
			is := strings.Replace(o.objects[key], from, to, 1)
			if is == o.objects[key] {
				t.Fatalf("%s: want %q in it", key, from)
			}
			o.objects[key] = is
		}
	}
	all := []string{"--key", key.Public}
	for _, c := range []struct {
		name   string
		alter  func(o *online)
		args   []string
		status int
		says   string
	}{
		{"all is well", nil, all, 0, "because this location cannot be listed\nOK"},
		{"a sample", nil, []string{"--key", key.Public, "--sample", "10"}, 0, "10 objects read, 0 differ\nsample    at most 26 % of all"},
		{"a sample of more than all", nil, []string{"--key", key.Public, "--sample", "1000000"}, 0, "0 differ\nnot checked"},
		{"without a key", nil, nil, 2, "add --key=PUBLIC"},
		{"with --exclude", nil, []string{"--key", key.Public, "--exclude", "x"}, 2, "--exclude is for a bucket"},
		{"another key", nil, []string{"--key", stranger}, 1, "no known key has signed it"},
		{"no note", func(o *online) { delete(o.objects, note.Key) }, all, 1, "_site.note: no note"},
		{"no site", func(o *online) { o.objects = memsite.Site{} }, all, 1, "no site: "},
		{"an object altered", replace(board, `"rank"`, `"Rank"`), all, 1, board},
		{"an object is missing", func(o *online) { delete(o.objects, board) }, all, 1, board},
		{"an object without end", func(o *online) { o.endless = board }, all, 1, board},
		{"a note without end", func(o *online) { o.endless = note.Key }, all, 1, "_site.note"},
		{"a root without end", func(o *online) { o.endless = site.RootKey }, all, 1, "_site"},
		{"a shard without end", func(o *online) { o.endless = site.ManifestKey(site.ManifestShard(board, 1)) }, all, 1, "_manifest/"},
		{"a forged counter", replace(note.Key, "follow.example\n", "follow.example\n1"), all, 1, "a signature is not that of its key"},
		{"another root", replace(site.RootKey, `"as_of":"2026`, `"as_of":"2025`), all, 1, "_site"},
		{"busy at first", func(o *online) {
			o.fail = func(_ site.Key, n int) int {
				return map[int]int{1: http.StatusServiceUnavailable, 2: http.StatusTooManyRequests}[n]
			}
		}, []string{"--key", key.Public, "--sample", "2"}, 0, "0 differ"},
		{"busy for ever", func(o *online) {
			o.fail = func(key site.Key, n int) int { return map[bool]int{true: http.StatusServiceUnavailable}[key == board] }
		}, []string{"--key", key.Public, "--patience", "300ms"}, 1, "got status 503"},
		{"another site meanwhile", func(o *online) {
			o.fail = func(key site.Key, _ int) int {
				if strings.HasPrefix(string(key), "api/") {
					o.objects = next
				}
				return 0
			}
		}, all, 1, "another site has been published"},
		{"what no manifest lists", func(o *online) { o.objects["api/v1/lists/4444/details"] = "{}" }, all, 0, "not checked: objects outside the manifest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOnline(t, memsite.Site{})
			for key, body := range published {
				o.objects[key] = body
			}
			if c.alter != nil {
				c.alter(o)
			}
			status, stdout, stderr := run("verify", append([]string{"--dest", o.url}, c.args...)...)
			if status != c.status || !strings.Contains(stdout+stderr, c.says) {
				t.Errorf("got status %d, %q, %q; want %d, and %q", status, stdout, stderr, c.status, c.says)
			}
		})
	}
}

// TestVerifyOnlineReport: the report is that of a bucket.
func TestVerifyOnlineReport(t *testing.T) {
	key := testkey.New(t, "follow.example")
	o := newOnline(t, key.Sign(t, largeSite(t), 7))
	var told publisher.Verification
	for _, sample := range []int{0, 300} {
		status, stdout, stderr := run("verify", "--dest", o.url, "--key", key.Public, "--report", "-", fmt.Sprintf("--sample=%d", sample))
		told = publisher.Verification{}
		if err := json.Unmarshal([]byte(stdout), &told); err != nil || status != 0 {
			t.Fatalf("got status %d, %v, %s", status, err, stderr)
		}
		want := objectsOfLargeSite
		if sample > 0 {
			want = sample
		}
		s := told.Signed
		if !told.Unlisted || told.Dest != o.url || told.AsOf == "" || told.Objects != objectsOfLargeSite || s == nil ||
			s.Checked != want || s.Differ != 0 || s.Counter != 7 || (s.Bound != nil) != (sample > 0) {
			t.Errorf("--sample=%d: got %s", sample, stdout)
		}
	}
}

const objectsOfLargeSite = 8_000 // 31 in a shard, on average

func largeSite(t *testing.T) memsite.Site {
	t.Helper()
	config, err := site.Config{BasePath: "api/v1"}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	objects := map[site.Key]string{}
	for n := range objectsOfLargeSite {
		objects[config.ListKey(fmt.Sprint(n), site.Details)] = fmt.Sprintf(`{"list":%d}`, n)
	}
	return memsite.New(t, site.Root{Format: site.Format, AsOf: "2026-11-27T00:00:00Z", Config: config, BucketDigits: 1, ShardDigits: 2,
		Counts: site.Counts{Objects: objectsOfLargeSite}}, objects)
}

// TestSampleOnlineReadsLittle: of few objects few shards are read, and each once when all are.
func TestSampleOnlineReadsLittle(t *testing.T) {
	key := testkey.New(t, "follow.example")
	signed := key.Sign(t, largeSite(t), 1)
	o := newOnline(t, signed)
	if status, _, stderr := run("verify", "--dest", o.url, "--key", key.Public, "--sample", "12"); status != 0 || !strings.Contains(stderr, "at most 22 %") {
		t.Errorf("got status %d, %s", status, stderr)
	}
	if objects, shards := o.count("^api/"), o.count("^_manifest/"); objects != 12 || shards > 100 {
		t.Errorf("a sample: got %d requests for objects and %d for shards, want 12 and some", objects, shards)
	}
	o.requests = map[site.Key]int{}
	if status, _, stderr := run("verify", "--dest", o.url, "--key", key.Public); status != 0 {
		t.Error(stderr)
	}
	if objects, shards := o.count("^api/"), o.count("^_manifest/"); objects != objectsOfLargeSite || shards != 256 {
		t.Errorf("all: got %d requests for objects and %d for shards, want each once", objects, shards)
	}
	for n := range objectsOfLargeSite * 3 / 10 {
		o.objects[site.Config{BasePath: "api/v1"}.ListKey(fmt.Sprint(n), site.Details)] = "{}"
	}
	delete(o.objects, site.ManifestKey("77"))
	status, _, stderr := run("verify", "--dest", o.url, "--key", key.Public, "--sample", "200")
	if status != 1 || !regexp.MustCompile(`[3-9][0-9] of 200 objects; `).MatchString(stderr) || !regexp.MustCompile(`at most [2-5][0-9] % of all 8000 objects differ`).MatchString(stderr) {
		t.Errorf("30 %% altered: got status %d, %s", status, stderr)
	}
}
