package edge_test

import (
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	module "github.com/followpress/followpress/client"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
)

// A signedStore is a store with a signed note.
type signedStore struct {
	server.Store
	note []byte
}

func (s signedStore) Get(ctx context.Context, key site.Key) ([]byte, error) {
	if key == site.NoteKey {
		return s.note, nil
	}
	return s.Store.Get(ctx, key)
}

// signedOrigins are origins over the conformance site whose bucket has a note by the key.
func signedOrigins(t testing.TB, key testkey.Key) *origins {
	t.Helper()
	o := newOrigins(t)
	store, err := storage.OpenSite(t.Context(), sitePath(t), storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // it was read
	body, err := store.Get(t.Context(), site.RootKey)
	if err != nil {
		t.Fatal(err)
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := note.Sign(note.Of(key.Signer.Name(), uint64(time.Now().Unix()), root.AsOf, body), key.Signer)
	if err != nil {
		t.Fatal(err)
	}
	o.bucket = newOrigin(t, bucketHandler(o.config, signedStore{store, signed}, ""))
	configs.Store(o.bucket.URL+"/bucket", o.config)
	return o
}

// At an address that answers from live, a request for the signed site gets the bucket's, whatever
// is cached.
func TestSigned(t *testing.T) {
	key := testkey.New(t, "follow.example")
	forEdges(t, func(t *testing.T, s subject) {
		o := signedOrigins(t, key)
		live := o.liveOf(t)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL, before(live))
		const object, computed = "/api/v1/lists/1/details", "/api/v1/lists/8/searchFollowing?limit=1&offset=1"
		isLive := func(a answer) bool { return a.status == http.StatusOK && a.header.Get("X-Heads") != "" }
		for range 2 {
			for _, path := range []string{object, computed, "/api/v1/lists/1/details?cache=fresh", "/_site"} {
				for _, value := range []string{"", "yes", "Only", "only, only"} {
					askLive(t, base, path)
					if a := ask(t, http.MethodGet, base, path, "X-Signed", value); !isLive(a) || !varies(a) {
						t.Errorf("%s with X-Signed: %s: got %d %v, want live's answer, which varies", path, value, a.status, a.header)
					}
				}
				for _, more := range [][]string{nil, {"X-After", "8453:101"}, {"Prefer", "wait=5"}} {
					a := ask(t, http.MethodGet, base, path, append(more, "X-Signed", "only")...)
					if want := o.answer(path); a.status != want.status || a.body != want.body || a.header.Get("X-Heads") != "" || !varies(a) {
						t.Errorf("%s, signed only, with %v: got %d %v, want the answer of the bucket or the fallback", path, more, a.status, a.header)
					}
				}
			}
			for _, path := range []string{"/_live/status", "/_live/events"} {
				if a := ask(t, http.MethodGet, base, path, "X-Signed", "only"); a.status != http.StatusNotFound {
					t.Errorf("%s, signed only: got %d, want a 404", path, a.status)
				}
			}
		}
		if a := ask(t, http.MethodOptions, base, object, "Origin", "https://example.org", "Access-Control-Request-Headers", "x-signed"); a.header.Get("Access-Control-Allow-Headers") != "*" {
			t.Errorf("preflight: got %d %v, want all headers allowed", a.status, a.header)
		}
		checkSignedClient(t, base+"/", key.Public, object, o.answer(object).body)
	}, "cloudfront")
}

// varies reports whether caches know that the answer depends on the header.
func varies(a answer) bool {
	return slices.Contains(strings.Split(strings.Join(a.header.Values("Vary"), ", "), ", "), "X-Signed")
}

const signedClient = `
const [at, base, key, signed, path] = process.argv.slice(1);
const { openSite } = await import(at);
const options = { keys: [key] };
if (signed) {
  options.fetch = (url, init) => fetch(url, { ...init, headers: { ...init?.headers, 'X-Signed': 'only' } });
}
const { status, body, cause } = await openSite(base, options).answer('GET', path);
console.log(JSON.stringify({ status, body, error: cause?.message ?? '' }));
`

// checkSignedClient reads an address that answers from live with the client, as docs/client.md says.
func checkSignedClient(t *testing.T, base, key, path, want string) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range module.Files() {
		write(t, dir, f.Name, string(f.Body))
	}
	write(t, dir, "package.json", `{"type":"module"}`)
	for _, signed := range []string{"", "signed"} {
		printed, err := exec.Command("node", "--input-type=module", "-e", signedClient, "file://"+filepath.Join(dir, "followpress.js"), base, key, signed, path).CombinedOutput()
		if err != nil {
			t.Fatalf("node: %v\n%s", err, printed)
		}
		var got struct {
			Status      int
			Body, Error string
		}
		if err := json.Unmarshal(printed, &got); err != nil {
			t.Fatalf("node: %v\n%s", err, printed)
		}
		if signed != "" && (got.Status != http.StatusOK || got.Body != want || got.Error != "") {
			t.Errorf("a client with keys that asks for the signed site: got %+v, want %s", got, want)
		}
		if signed == "" && (got.Status != http.StatusServiceUnavailable || !strings.Contains(got.Error, "this address answers from live")) {
			t.Errorf("a client with keys that does not: got %+v, want a 503 that says why", got)
		}
	}
}
