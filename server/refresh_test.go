package server_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
)

const (
	freshDetails = largeList + "details?cache=fresh"
	badgeData    = largeList + "badges?cache=fresh"
)

// accountOf returns the account of a list of the demo.
func accountOf(t testing.TB, files afero.Fs, tokenID string) string {
	t.Helper()
	body, err := afero.ReadFile(files, "api/v1/lists/"+tokenID+"/details")
	if err != nil {
		t.Fatal(err)
	}
	details, _, err := site.DecodeDetails(body)
	if err != nil {
		t.Fatal(err)
	}
	return details.Address
}

// readObject returns an object of a site in memory.
func readObject(t testing.TB, files afero.Fs, key site.Key) string {
	t.Helper()
	body, err := afero.ReadFile(files, string(key))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A row is a line of a table.
type row map[string]json.RawMessage

func (r row) text(member string) string {
	var text string
	_ = json.Unmarshal(r[member], &text) // other values are ""
	return text
}

// rewritten returns the demo snapshot with a table changed: each row by change, which
// gives nil to leave it out, and more rows at the end.
func rewritten(t testing.TB, table string, change func(row) row, more ...any) afero.Fs {
	t.Helper()
	files := afero.NewCopyOnWriteFs(afero.FromIOFS{FS: fixtures.Demo()}, afero.NewMemMapFs())
	old, err := afero.ReadFile(files, table)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	add := func(value any) {
		line, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	for lines := bufio.NewScanner(bytes.NewReader(old)); lines.Scan(); {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r = change(r); r != nil {
			add(r)
		}
	}
	for _, value := range more {
		add(value)
	}
	if err := afero.WriteFile(files, table, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return files
}

// withProfile returns the demo snapshot in which an account has another profile.
func withProfile(t testing.TB, account string, p site.Profile) afero.Fs {
	t.Helper()
	found := false
	files := rewritten(t, "accounts.ndjson", func(r row) row {
		if r.text("address") == account {
			found = true
			body, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			r["ens"] = body
		}
		return r
	})
	if !found {
		t.Fatalf("account %s: got no row, want one", account)
	}
	return files
}

// A refresh returns the upstream's data in the generator's format. It stores them in the object,
// and for the next run of the generator.
func TestRefreshDetails(t *testing.T) {
	t.Parallel()
	files := demo(t)
	account := accountOf(t, files, "104")
	fresh := profileOf("frésh & <new> \u2028 \"x\" \U0001F389.eth", 1_795_300_000_000)
	want := readObject(t, generated(t, withProfile(t, account, fresh), site.Config{}), "api/v1/lists/104/details")
	onBuckets(t, func(t *testing.T, open func() bucket) {
		published(t, files, open())
		u := newUpstream(t, profiles(func(string) site.Profile { return fresh }).handler(t), nil)
		base := listen(t, newHandler(t, open(), server.Options{Refresh: u.options()}))
		other := listen(t, newHandler(t, open(), server.Options{}))
		before, _ := request(t, http.MethodGet, base+largeList+"details")

		r, body := request(t, http.MethodGet, base+freshDetails)
		if body != want {
			t.Errorf("got  %s\nwant %s", body, want)
		}
		isFresh(t, r, body)
		if asked := u.requests(); !slices.Equal(asked, []string{"/a/" + account}) {
			t.Errorf("requests to the upstream: got %q, want one for the account", asked)
		}
		if slices.ContainsFunc(u.keys, func(key string) bool { return key != "" }) {
			t.Error("requests for a profile: got the API key of badges, want none")
		}
		// All clients get it, with the headers of any object.
		for _, b := range []string{base, other} {
			r, body := request(t, http.MethodGet, b+largeList+"details")
			if body != want || r.Header.Get("Cache-Control") != before.Header.Get("Cache-Control") || r.Header.Get("X-Refresh") != "" {
				t.Errorf("afterwards: got %v %s, want the fresh object and the usual headers", r.Header, body)
			}
		}
		kept := content(t, open(), "_refresh/")
		if len(kept) != 1 {
			t.Errorf("kept: got %v, want one object", kept)
		}
		address, err := site.ParseAddress(account)
		if err != nil {
			t.Fatal(err)
		}
		p, err := refresh.DecodeProfile([]byte(kept["_refresh/details/104"]), address, time.Time{})
		if err != nil || p.Address != account || p.Name != fresh.Name || p.Fresh != fresh.Fresh {
			t.Errorf("kept: got %+v, %v, want the fresh profile", p, err)
		}
	})
}

// isFresh checks the headers of a refreshed answer.
func isFresh(t testing.TB, r *http.Response, body string) {
	t.Helper()
	if r.StatusCode != http.StatusOK || r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("X-Refresh") != "" ||
		r.Header.Get("Etag") != `"`+site.Sum([]byte(body)).String()+`"` || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: got %d %v, want 200 and its headers", r.Request.URL, r.StatusCode, r.Header)
	}
}

// tokens returns an upstream's badges: the token of an account for some events.
func tokens(t testing.TB, events map[string]string) http.HandlerFunc {
	t.Helper()
	described := map[string]json.RawMessage{}
	rewritten(t, "events.ndjson", func(r row) row {
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		described[string(r["id"])] = body
		return r
	})
	return func(w http.ResponseWriter, r *http.Request) {
		account, event, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/scan/"), "/")
		token, ok := events[event]
		if !ok {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, ` {"tokenId":%q,"owner":%q,"event":%s,"more":[]}`+"\n", token, "0x"+strings.ToUpper(account[2:]), described[event])
	}
}

func TestRefreshBadges(t *testing.T) {
	t.Parallel()
	files := demo(t)
	account := accountOf(t, files, "104")
	held := map[string]string{"214087": "99", "198846": "100"}
	var more []any
	for event, token := range held {
		more = append(more, map[string]string{"event_id": event, "token_id": token, "owner": account})
	}
	snapshot := rewritten(t, "badges.ndjson", func(r row) row {
		if r.text("owner") == account {
			return nil
		}
		return r
	}, more...)
	want := readObject(t, generated(t, snapshot, site.Config{}), "api/v1/lists/104/badges")
	onBuckets(t, func(t *testing.T, open func() bucket) {
		published(t, files, open())
		u := newUpstream(t, nil, tokens(t, held))
		base := listen(t, newHandler(t, open(), server.Options{Refresh: u.options()}))
		r, body := request(t, http.MethodGet, base+badgeData)
		if body != want {
			t.Errorf("got  %s\nwant %s", body, want)
		}
		isFresh(t, r, body)
		if asked := u.requests(); len(asked) != 5 || !slices.Contains(asked, "/scan/"+account+"/214087") {
			t.Errorf("requests to the upstream: got %q, want one for each of 5 events", asked)
		}
		if slices.ContainsFunc(u.keys, func(key string) bool { return key != badgeKey }) {
			t.Errorf("keys: got %q, want the API key in each request", u.keys)
		}
		if _, stored := request(t, http.MethodGet, base+largeList+"badges"); stored != want {
			t.Errorf("afterwards: got %s, want the fresh badges", stored)
		}
		all := content(t, open(), "")
		if all["api/v1/lists/104/badges"] != want {
			t.Errorf("stored: got %s, want the fresh badges", all["api/v1/lists/104/badges"])
		}
		kept, of, err := refresh.DecodeKeptBadges([]byte(all["_refresh/badges/104"]))
		if err != nil || of.String() != account || len(kept.Badges) != 5 || time.Since(time.UnixMilli(kept.Fetched)).Abs() > time.Minute {
			t.Errorf("kept: got %+v, %v, want 5 badges of the account, fetched now", kept, err)
		}
		for _, b := range kept.Badges {
			if b.Participated != (held[b.EventID] != "") {
				t.Errorf("kept: got %+v, want what the account holds", b)
			}
		}
	})
}

// A refresh that finds nothing new does not replace the object, but is stored below
// _refresh/: the next site may be made from an older snapshot.
func TestRefreshWithoutNews(t *testing.T) {
	t.Parallel()
	files := demo(t)
	b := local(t, files)
	u := newUpstream(t, nil, nil)
	stored, _, err := site.DecodeDetails([]byte(readObject(t, files, "api/v1/lists/104/details")))
	if err != nil {
		t.Fatal(err)
	}
	u.tell(profiles(func(string) site.Profile { return stored.ENS }).handler(t), nil)
	before := content(t, b, "")
	base := listen(t, newHandler(t, b, server.Options{Refresh: u.options()}))
	r, body := request(t, http.MethodGet, base+freshDetails)
	isFresh(t, r, body)
	after := content(t, b, "")
	if len(after) != len(before)+1 || after["_refresh/details/104"] == "" {
		t.Errorf("objects: got %d before and %d after, want one more, the kept one", len(before), len(after))
	}
	if body != before["api/v1/lists/104/details"] {
		t.Errorf("got %s, want the stored object", body)
	}
}

// For any fault of an upstream, the answer is the stored one, marked as such. Nothing is written,
// and redirects are not followed.
func TestAnUpstreamThatFails(t *testing.T) {
	t.Parallel()
	const elsewhere = "0x00000000000000000000000000000000000000aa"
	files := demo(t)
	account := accountOf(t, files, "104")
	event := `{"id":214087,"fancy_id":"","name":"","event_url":"","image_url":"","country":"","city":"","description":"","year":2026,"start_date":"","end_date":"","expiry_date":""}`
	token := func(event, tokenID, owner string) http.HandlerFunc {
		return says(fmt.Sprintf(`{"event":%s,"tokenId":%s,"owner":%q}`, event, tokenID, owner))
	}
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host: got a request for %s with the key %q, want none", r.URL, r.Header.Get("X-API-Key"))
	}))
	t.Cleanup(other.Close)
	both := map[string]http.HandlerFunc{
		"too slow":         func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"slow in its body": slowBody,
		"cut off":          cutOff,
		"gone":             func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"huge":             says(`{"name":"x","more":"` + strings.Repeat("x", 1<<20) + `"}`),
		"huge when read":   gzipped(`{"name":"x","more":"` + strings.Repeat("x", 4<<20) + `"}`),
		"huge headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Huge", strings.Repeat("x", 128<<10))
			_, _ = w.Write([]byte(`{"name":"x"}`))
		},
		"endless 1xx": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.WriteHeader(http.StatusProcessing)
			}
		},
		"nothing": says(""), "no JSON": says("<html>"), "an array": says("[]"), "null": says("null"), "a text": says(`"x"`),
		"half of it": says(`{"name":"x"`), "two": says(`{"name":"x"}{"name":"y"}`), "no UTF-8": says("{\"name\":\"\xff\"}"),
		"half a character": says(`{"name":"\ud800"}`), "deep": says(`{"records":` + strings.Repeat(`{"a":`, 200_000)),
		"deep and whole": says(`{"name":"x","records":` + strings.Repeat(`{"a":`, 150_000) + "1" + strings.Repeat("}", 150_001)),
	}
	for _, status := range []int{201, 204, 206, 304, 400, 401, 403, 410, 418, 429, 500, 502, 503} {
		both[fmt.Sprint("status ", status)] = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			if status >= 400 {
				fmt.Fprintf(w, `{"name":"x","address":%q}`, account)
			}
		}
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		both[fmt.Sprint("redirect ", status)] = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/steal", status)
		}
	}
	onlyProfile := map[string]http.HandlerFunc{
		"of somebody else": says(`{"address":"` + elsewhere + `","name":"x"}`), "of nobody": says(`{"address":"x","name":"x"}`),
		"a number as name": says(`{"name":5}`), "records that are a list": says(`{"name":"x","records":[]}`),
		"fresh that is a text": says(`{"name":"x","fresh":"1"}`), "fresh too large": says(`{"name":"x","fresh":1e30}`),
		"nobody": http.NotFound,
	}
	onlyBadges := map[string]http.HandlerFunc{
		"another event": token(strings.Replace(event, "214087", "1", 1), `"1"`, account),
		"another owner": token(event, `"1"`, elsewhere), "no owner": token(event, `"1"`, ""),
		"no event": token("null", `"1"`, account), "half an event": token(`{"id":214087}`, `"1"`, account),
		"a number as token": token(event, `1`, account), "no token": token(event, `""`, account), "a bad token": token(event, `"01"`, account),
		"the second event fails": func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/214087") {
				http.NotFound(w, r)
				return
			}
			w.WriteHeader(http.StatusInternalServerError)
		},
	}
	onBuckets(t, func(t *testing.T, open func() bucket) {
		b := open()
		published(t, files, b)
		before := content(t, b, "")
		u := newUpstream(t, nil, nil)
		o := server.Options{Refresh: u.options()}
		o.Refresh.UpstreamTimeout = 500 * time.Millisecond
		base := listen(t, newHandler(t, open(), o))
		for path, kinds := range map[string][]map[string]http.HandlerFunc{freshDetails: {both, onlyProfile}, badgeData: {both, onlyBadges}} {
			key := site.Key(strings.TrimPrefix(strings.TrimSuffix(path, "?cache=fresh"), "/"))
			for _, kind := range kinds {
				for name, answer := range kind {
					u.tell(answer, answer)
					r, body := request(t, http.MethodGet, base+path)
					if r.StatusCode != http.StatusOK || r.Header.Get("X-Refresh") != "failed" || r.Header.Get("Cache-Control") != "no-store" {
						t.Errorf("%s, %s: got %d %v, want 200, X-Refresh: failed and no-store", path, name, r.StatusCode, r.Header)
					}
					if body != before[key] {
						t.Errorf("%s, %s: got %.300s, want the stored object", path, name, body)
					}
					if len(u.requests()) == 0 {
						t.Errorf("%s, %s: got no request to the upstream, want one", path, name)
					}
				}
			}
		}
		u.Close()
		r, body := request(t, http.MethodGet, base+freshDetails)
		if r.StatusCode != http.StatusOK || r.Header.Get("X-Refresh") != "failed" || body != before["api/v1/lists/104/details"] {
			t.Errorf("no upstream at all: got %d %v, want 200 and X-Refresh: failed", r.StatusCode, r.Header)
		}
		unchanged(t, b, before, "after all failures")
	})
}

func slowBody(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte(`{"name":"x"`))
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func cutOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"name":"x"}`))
}

func gzipped(body string) http.HandlerFunc {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, body) // to a buffer
	_ = z.Close()
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}
}

// Requests that do not ask for a refresh send no request to an upstream.
func TestRequestsThatRefreshNothing(t *testing.T) {
	t.Parallel()
	files := demo(t)
	b := local(t, files)
	before := content(t, b, "")
	u := newUpstream(t, profiles(func(string) site.Profile { return profileOf("x", 1) }).handler(t), nil)
	base := listen(t, newHandler(t, b, server.Options{Refresh: u.options()}))
	for path, status := range map[string]int{
		"/api/v1/lists/999999/details?cache=fresh":    404,
		"/api/v1/lists/999999/badges?cache=fresh":     404,
		"/api/v1/lists/x/details?cache=fresh":         400,
		"/api/v1/lists/0104/badges?cache=fresh":       400,
		"/api/v1/lists/..%2f104/details?cache=fresh":  400,
		largeList + "records?cache=fresh":             200,
		largeList + "searchFollowing?cache=fresh":     200,
		largeList + "details?cache=FRESH":             200,
		largeList + "details?cache=stale&cache=fresh": 200,
		"/api/v1/leaderboard/followers?cache=fresh":   200,
		"/_refresh/details/104?cache=fresh":           404,
	} {
		r, _ := request(t, http.MethodGet, base+path)
		if r.StatusCode != status || r.Header.Get("X-Refresh") != "" || status == 200 && r.Header.Get("Cache-Control") == "no-store" {
			t.Errorf("%s: got %d %v, want %d without X-Refresh", path, r.StatusCode, r.Header, status)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodOptions, http.MethodDelete} {
		request(t, method, base+freshDetails)
	}
	if asked := u.requests(); len(asked) > 0 {
		t.Errorf("requests to the upstream: got %q, want none", asked)
	}
	unchanged(t, b, before, "after requests that refresh nothing")
}

// HEAD is GET without the body: it refreshes as well.
func TestRefreshByHead(t *testing.T) {
	t.Parallel()
	b := local(t, demo(t))
	u := newUpstream(t, profiles(func(string) site.Profile { return profileOf("x", 1_795_300_000_000) }).handler(t), nil)
	base := listen(t, newHandler(t, b, server.Options{Refresh: u.options()}))
	head, none := request(t, http.MethodHead, base+freshDetails)
	_, body := request(t, http.MethodGet, base+largeList+"details")
	if none != "" || !strings.Contains(body, `"name":"x"`) || head.Header.Get("Content-Length") != strconv.Itoa(len(body)) {
		t.Errorf("HEAD: got %v, want the length of the fresh object: %s", head.Header, body)
	}
	isFresh(t, head, body)
}

// An object without an upstream is answered from the store, also if no object has one.
func TestNoUpstream(t *testing.T) {
	t.Parallel()
	files := demo(t)
	u := newUpstream(t, profiles(func(string) site.Profile { return profileOf("x", 1_795_300_000_000) }).handler(t), tokens(t, nil))
	for _, c := range []struct{ has, lacks string }{{freshDetails, badgeData}, {badgeData, freshDetails}, {"", freshDetails}} {
		b := local(t, files)
		o := server.Options{Refresh: u.options()}
		switch c.has {
		case freshDetails:
			o.Refresh.BadgeUpstream = ""
		case badgeData:
			o.Refresh.ProfileUpstream = ""
		default:
			o = server.Options{}
		}
		base := listen(t, newHandler(t, b, o))
		if c.has != "" {
			r, body := request(t, http.MethodGet, base+c.has)
			isFresh(t, r, body)
			u.requests()
		}
		r, _ := request(t, http.MethodGet, base+c.lacks)
		if r.StatusCode != 200 || r.Header.Get("X-Refresh") != "unavailable" || r.Header.Get("Cache-Control") != "no-store" || len(u.requests()) > 0 {
			t.Errorf("%s: got %d %v, want 200, X-Refresh: unavailable and no-store", c.lacks, r.StatusCode, r.Header)
		}
	}
}

// A list is refreshed once per interval, and all lists together at a limited rate.
// Beyond that the answer is the stored object with Retry-After, or a 429 if that is wanted, and no upstream is asked.
func TestRefreshesAreLimited(t *testing.T) {
	t.Parallel()
	b := local(t, demo(t))
	u := newUpstream(t, profiles(func(string) site.Profile { return profileOf("x", 1_795_300_000_000) }).handler(t), tokens(t, nil))
	tooMany := func(base, path string, least, most int) {
		t.Helper()
		u.requests()
		r, body := request(t, http.MethodGet, base+path)
		wait, err := strconv.Atoi(r.Header.Get("Retry-After"))
		_, stored := request(t, http.MethodGet, base+strings.TrimSuffix(path, "?cache=fresh"))
		if r.StatusCode != 200 || body != stored || r.Header.Get("X-Refresh") != "limited" || err != nil || wait < least || wait > most || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d %v, want the stored object, Retry-After and no-store", path, r.StatusCode, r.Header)
		}
		if asked := u.requests(); len(asked) > 0 {
			t.Errorf("%s: got requests to the upstream for %q, want none", path, asked)
		}
	}
	fresh := func(base, path string) {
		t.Helper()
		r, body := request(t, http.MethodGet, base+path)
		isFresh(t, r, body)
	}

	o := server.Options{Refresh: u.options()}
	o.Refresh.Interval = time.Hour
	base := listen(t, newHandler(t, b, o))
	fresh(base, freshDetails)
	tooMany(base, freshDetails, 3590, 3600)
	fresh(base, badgeData) // has its own interval
	tooMany(base, badgeData, 3590, 3600)
	fresh(base, "/api/v1/lists/67/details?cache=fresh")
	if r, _ := request(t, http.MethodGet, base+largeList+"details"); r.StatusCode != 200 {
		t.Errorf("without a refresh: got %d, want 200", r.StatusCode)
	}

	// A refresh that failed counts too: it has asked the upstream.
	u.tell(http.NotFound, nil)
	if r, _ := request(t, http.MethodGet, base+"/api/v1/lists/110/details?cache=fresh"); r.Header.Get("X-Refresh") != "failed" {
		t.Errorf("got %v, want X-Refresh: failed", r.Header)
	}
	tooMany(base, "/api/v1/lists/110/details?cache=fresh", 3590, 3600)

	u.tell(profiles(func(string) site.Profile { return profileOf("x", 1_795_300_000_000) }).handler(t), nil)
	strict := o
	strict.Refresh.Strict = true
	base = listen(t, newHandler(t, b, strict))
	fresh(base, freshDetails)
	r, body := request(t, http.MethodGet, base+freshDetails)
	if r.StatusCode != 429 || r.Header.Get("Retry-After") == "" || r.Header.Get("X-Refresh") != "" || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("strict: got %d %v, want 429 with Retry-After and no-store", r.StatusCode, r.Header)
	}
	checkProblem(t, freshDetails, r, []byte(body))

	o.Refresh.Interval, o.Refresh.Rate = time.Nanosecond, 0.0001
	base = listen(t, newHandler(t, b, o))
	fresh(base, freshDetails)
	tooMany(base, "/api/v1/lists/67/details?cache=fresh", 1, 10000)

	o.Refresh.Interval, o.Refresh.Rate = 30*time.Millisecond, 1e6
	base = listen(t, newHandler(t, b, o))
	fresh(base, freshDetails)
	eventually(t, "a refresh after the interval", func() bool {
		r, _ := request(t, http.MethodGet, base+freshDetails)
		return r.StatusCode == 200
	})
}
