package purger

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"
)

// some is a purge of every shape.
var some = Purge{
	Exact: []string{"/_site", "/api/v1/lists/1/records", "/api/v1/lists/1/records?includeTags=false"},
	Wide:  []string{"/api/v1/lists/1/searchFollowing", "/api/v1/users/"},
}

// invalidated gives the paths of an invalidation, after checking its shape and limits.
func invalidated(t *testing.T, r told) []string {
	t.Helper()
	checkSignature(t, r, "cloudfront", "us-east-1")
	var in struct {
		XMLName         xml.Name
		CallerReference string
		Paths           struct {
			Items    []string `xml:"Items>Path"`
			Quantity int
		}
	}
	if err := xml.Unmarshal([]byte(r.body), &in); err != nil {
		t.Fatalf("invalidation: got %v: %s, want valid XML", err, r.body)
	}
	if r.method != http.MethodPost || r.path != "/2020-05-31/distribution/EDFDVBD6EXAMPLE/invalidation" || !strings.HasPrefix(r.header.Get("Content-Type"), "text/xml") ||
		in.XMLName.Local != "InvalidationBatch" || in.XMLName.Space != "http://cloudfront.amazonaws.com/doc/2020-05-31/" || in.CallerReference == "" {
		t.Errorf("request or result: got %+v, want the documented form", r)
	}
	paths, wild := in.Paths.Items, 0
	if in.Paths.Quantity != len(paths) {
		t.Errorf("quantity: got %d, want %d", in.Paths.Quantity, len(paths))
	}
	for _, p := range paths {
		if tag, ok := strings.CutPrefix(p, "#"); ok { // visible ASCII without commas, at most 256 characters
			if len(tag) == 0 || len(tag) > 256 || strings.ContainsFunc(tag, func(r rune) bool { return r < 33 || r > 126 || r == ',' }) {
				t.Errorf("tag: got %q, want one that CloudFront accepts", tag)
			}
			continue
		}
		at := strings.Index(p, "*")
		if at >= 0 {
			wild++
		}
		// Unsafe characters of RFC 1738, which the service refuses with all other paths.
		if !strings.HasPrefix(p, "/") || at >= 0 && at != len(p)-1 || len(p) > 4000 || strings.ContainsAny(p, " <>\"#{}|\\^~[]`'") {
			t.Errorf("path: got %q, want one that CloudFront accepts", p)
		}
	}
	if wild > 15 || len(paths)-wild > 3000 {
		t.Errorf("paths: got %d, %d with a *, want at most 3000 and 15", len(paths), wild)
	}
	return paths
}

// A cloudFrontStub completes each invalidation at the second poll.
type cloudFrontStub struct {
	*stub
	t       *testing.T
	open    map[string]int
	batches [][]string
}

func newCloudFrontStub(t *testing.T) *cloudFrontStub {
	c := &cloudFrontStub{t: t, open: map[string]int{}}
	c.stub = newStub(t, func(n int, r told, w http.ResponseWriter) {
		if r.method == http.MethodPost {
			if len(c.open) > 0 {
				t.Error("a second invalidation: got it before the first was completed, want one at a time")
			}
			c.batches = append(c.batches, invalidated(t, r))
			id := fmt.Sprint("I", n)
			c.open[id] = 2
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `<Invalidation xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/"><Id>%s</Id><Status>InProgress</Status></Invalidation>`, id)
			return
		}
		checkSignature(t, r, "cloudfront", "us-east-1")
		id := strings.TrimPrefix(r.path, "/2020-05-31/distribution/EDFDVBD6EXAMPLE/invalidation/")
		if r.method != http.MethodGet || c.open[id] == 0 {
			t.Errorf("request: got %s %s, want GET of an open invalidation", r.method, r.path)
		}
		status := "InProgress"
		if c.open[id]--; c.open[id] == 0 {
			status = "Completed"
			delete(c.open, id)
		}
		fmt.Fprintf(w, `<Invalidation><Id>%s</Id><Status>%s</Status></Invalidation>`, id, status)
	})
	return c
}

func TestCloudFront(t *testing.T) {
	for _, c := range []struct {
		name string
		what Purge
		want [][]string
	}{
		{"everything", Everything(), [][]string{{"/*"}}},
		{"some", some, [][]string{{"/_site", "/api/v1/lists/1/records", "/api/v1/lists/1/records?includeTags=false",
			"/api/v1/lists/1/searchFollowing*", "/api/v1/users/*"}}},
		{"wide alone", Purge{Wide: []string{"/api/v1/users/"}}, [][]string{{"/api/v1/users/*"}}},
		{"a * in a name", Purge{Wide: []string{"/api/v1/users/a%2Ab/searchFollowing", "/api/v1/users/a*b/searchFollowing"}},
			[][]string{{"/api/v1/users/a*"}}},
		{"odd names", Purge{Exact: []string{"/_site", "/x/~y"}, Wide: []string{"/api/v1/users/a%5Bb%5D~%7C%27c.eth/searchFollowing", "/api/v1/users/a[b]~|'c.eth/searchFollowing",
			"/api/v1/users/c%27d/searchFollowing", "/api/v1/users/c'd/searchFollowing"}},
			[][]string{{"/_site", "/api/v1/users/a*", "/api/v1/users/c*", "/x/*"}}},
		{"a name that is odd from its start", Purge{Wide: []string{"/api/v1/users/a/searchFollowing", "/api/v1/users/|/searchFollowing"}}, [][]string{{"/api/v1/users/*"}}},
		{"one shard of the manifest", Purge{Exact: []string{"/_manifest/a", "/_site"}}, [][]string{{"/_manifest/a", "/_site"}}},
		{"shards of the manifest cost as much as all", Purge{Exact: []string{"/_manifest/a", "/_manifest/b", "/_site"}}, [][]string{{"/_site", "/_manifest/*"}}},
		{"as many as may be in progress", Purge{Exact: many(3001)}, [][]string{many(3001)[:3000], many(3001)[3000:]}},
		{"too many with a *", Purge{Exact: []string{"/_site", "/api/v1/lists/1/records"}, Wide: wide(16)}, [][]string{{"/_site", "/api/v1/lists/*"}}},
		{"patterns", Purge{Exact: []string{"/_site", "/api/v1/lists/1/stats", "/api/v1/users/bob/stats"}, Each: []string{"/api/v1/users/*/following", "/api/v1/lists/1/*/buttonState"}},
			[][]string{{"/_site", "/api/v1/lists/1/*", "/api/v1/users/*"}}},
		{"as many with a * as there may be", Purge{Wide: wide(15)}, [][]string{wildcards(wide(15))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newCloudFrontStub(t)
			r := mustPurge(t, s.stub.open(t, "cloudfront:EDFDVBD6EXAMPLE"), c.what)
			if !slices.EqualFunc(s.batches, c.want, slices.Equal) {
				t.Errorf("items: got %q, want %q", s.batches, c.want)
			}
			if len(s.open) > 0 || len(s.told) != 3*len(c.want) || r.Requests != len(c.want) || r.Everything != c.what.All {
				t.Errorf("requests: got %d, result %+v, want polls until completion", len(s.told), r)
			}
			s.noSecret(t)
		})
	}
}

func wide(n int) []string { return numbered("/api/v1/lists/%d/searchFollowing", n) }

// CloudFront answers 400 where others answer 429. Retries keep the caller reference;
// another purge has another one.
func TestCloudFrontIsBusy(t *testing.T) {
	references := map[string]int{}
	s := newStub(t, func(n int, r told, w http.ResponseWriter) {
		references[regexp.MustCompile(`<CallerReference>(.*)</CallerReference>`).FindStringSubmatch(r.body)[1]]++
		if n == 1 {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `<ErrorResponse xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/"><Error><Type>Sender</Type><Code>TooManyInvalidationsInProgress</Code></Error></ErrorResponse>`)
			return
		}
		_, _ = io.WriteString(w, `<Invalidation><Id>I1</Id><Status>Completed</Status></Invalidation>`)
	})
	p := s.open(t, "cloudfront:EDFDVBD6EXAMPLE")
	mustPurge(t, p, Everything())
	if len(s.told) != 2 || len(references) != 1 {
		t.Errorf("requests: got %d, references %v, want 2 with one reference", len(s.told), references)
	}
	mustPurge(t, p, Everything())
	if len(references) != 2 {
		t.Errorf("references: got %v, want a different one per purge", references)
	}
}

// If a part is refused for good, everything is purged, with one more request: one odd
// name must not keep the rest stale.
func TestRefused(t *testing.T) {
	for flag, everything := range map[string]string{
		"cloudfront:EDFDVBD6EXAMPLE": "<Path>/*</Path>", "cloudflare:zone1": `{"purge_everything":true}`, "fastly:service1": "/service/service1/purge_all",
	} {
		t.Run(flag, func(t *testing.T) {
			last := ""
			s := newStub(t, func(n int, r told, w http.ResponseWriter) {
				last = r.path + r.body
				if !strings.Contains(last, everything) {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, `<ErrorResponse><Error><Code>InvalidArgument</Code></Error></ErrorResponse>`)
					return
				}
				eventually(0, nil)(n, r, w)
			})
			r := mustPurge(t, s.open(t, flag), Purge{Exact: many(1)})
			if !r.Everything || r.Requests != 2 || r.Retries != 0 || len(s.told) != 2 || !strings.Contains(last, everything) {
				t.Errorf("requests: got %d, the last %q: %+v, want the second to purge everything", len(s.told), last, r)
			}
			if !strings.Contains(s.log.String(), "purging everything") {
				t.Errorf("log: got %s, want that everything is purged", &s.log)
			}
		})
	}
}

// If one of many invalidations is refused, one for everything replaces the rest.
func TestCloudFrontRefusesOneOfMany(t *testing.T) {
	s := newStub(t, func(n int, r told, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		eventually(0, nil)(n, r, w)
	})
	mustPurge(t, s.open(t, "cloudfront:EDFDVBD6EXAMPLE"), Purge{Exact: many(9001)})
	if len(s.told) != 2 || !slices.Equal(invalidated(t, s.told[1]), []string{"/*"}) {
		t.Errorf("requests: got %d, want 2, the second for everything", len(s.told))
	}
}

// A wait is reported once, and only if there is one.
func TestCloudFrontTellsOfWaiting(t *testing.T) {
	s := newCloudFrontStub(t)
	var lines []string
	tell := func(o *Options) { o.Tell = func(line string) { lines = append(lines, line) } }
	mustPurge(t, s.stub.open(t, "cloudfront:EDFDVBD6EXAMPLE", tell), Purge{Exact: many(3001)})
	if len(lines) != 2 || !strings.Contains(lines[0], "invalidation I1 ") || !strings.Contains(lines[1], "cloudfront:EDFDVBD6EXAMPLE: waiting") {
		t.Errorf("lines: got %q, want one for each wait", lines)
	}
	lines = nil
	mustPurge(t, newStub(t, eventually(0, nil)).open(t, "cloudfront:EDFDVBD6EXAMPLE", tell), Everything())
	if len(lines) > 0 {
		t.Errorf("lines: got %q, want none", lines)
	}
}

func TestCloudflare(t *testing.T) {
	s := newStub(t, ok)
	p := s.open(t, "cloudflare:zone1", func(o *Options) { o.Sites = []string{"https://api.example.org", "https://www.example.org"} })
	got := func() (all []map[string]any) {
		for _, r := range s.told {
			if r.method != http.MethodPost || r.path != "/client/v4/zones/zone1/purge_cache" || r.header.Get("Authorization") != "Bearer "+hush ||
				r.header.Get("Content-Type") != "application/json" {
				t.Errorf("request or result: got %+v, want the documented form", r)
			}
			var body map[string]any
			if err := json.Unmarshal([]byte(r.body), &body); err != nil {
				t.Error(err)
			}
			all = append(all, body)
		}
		s.told = nil
		return all
	}
	mustPurge(t, p, Everything())
	if all := got(); len(all) != 1 || fmt.Sprint(all[0]) != "map[purge_everything:true]" {
		t.Errorf("everything: got %v, want purge_everything", all)
	}
	mustPurge(t, p, some)
	want := "map[prefixes:[api.example.org/_site api.example.org/api/v1/lists/1/records api.example.org/api/v1/lists/1/searchFollowing api.example.org/api/v1/users " +
		"www.example.org/_site www.example.org/api/v1/lists/1/records www.example.org/api/v1/lists/1/searchFollowing www.example.org/api/v1/users]]"
	if all := got(); len(all) != 1 || fmt.Sprint(all[0]) != want {
		t.Errorf("some: got %v, want the prefixes of both hosts", all)
	}
	mustPurge(t, p, Purge{Wide: []string{"/api/v1/users/a[b]~|'c.eth/searchFollowing", "/api/v1/users/bob/searchFollowing"}, Exact: []string{"/_site"}})
	if all := got(); len(all) != 1 || fmt.Sprint(all[0]) != "map[prefixes:[api.example.org/_site api.example.org/api/v1/users www.example.org/_site www.example.org/api/v1/users]]" {
		t.Errorf("an odd name: got %v, want the folder of users", all)
	}
	mustPurge(t, p, Purge{Exact: many(140)})
	n := 0
	for i, body := range got() {
		prefixes := body["prefixes"].([]any)
		if n += len(prefixes); len(prefixes) > 100 || i < 2 && len(prefixes) != 100 {
			t.Errorf("prefixes of a request: got %d, want at most 100", len(prefixes))
		}
	}
	if n != 280 {
		t.Errorf("prefixes: got %d, want 280", n)
	}
	s.answer = func(_ int, _ told, w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"success":false,"errors":[{"code":1}]}`)
	}
	if _, err := p.Purge(t.Context(), some); err == nil || !strings.Contains(err.Error(), `"success":false`) {
		t.Errorf("an answer without success: got %v, want an error", err)
	}
	s.noSecret(t)
}

func TestFastly(t *testing.T) {
	s := newStub(t, ok)
	p := s.open(t, "fastly:service1")
	got := func() (all []string) {
		for _, r := range s.told {
			if r.method != http.MethodPost || r.header.Get("Fastly-Key") != hush || r.body != "" || r.header.Get("Fastly-Soft-Purge") != "" {
				t.Errorf("request or result: got %+v, want the documented form", r)
			}
			all = append(all, r.path+" "+r.query)
		}
		s.told = nil
		slices.Sort(all)
		return all
	}
	// A search may be cached under any query: no list of URLs is complete.
	for _, what := range []Purge{Everything(), some, {Each: []string{"/api/v1/users/*/ens"}}} {
		if r := mustPurge(t, p, what); !r.Everything {
			t.Errorf("request or result: got %+v, want the documented form", r)
		}
		if all := got(); !slices.Equal(all, []string{"/service/service1/purge_all "}) {
			t.Errorf("everything: got %q, want one request for everything", all)
		}
	}
	r := mustPurge(t, p, Purge{Exact: some.Exact})
	want := []string{"/purge/api.example.org/_site ", "/purge/api.example.org/api/v1/lists/1/records ", "/purge/api.example.org/api/v1/lists/1/records includeTags=false"}
	if all := got(); !slices.Equal(all, want) || r.Requests != 3 || r.Everything {
		t.Errorf("some: got %q, %+v, want the three URLs", all, r)
	}
	s.noSecret(t)
}

func manyTags(n int) []string { return numbered("fp-list-%04d", n) }

// For each service with tags, a purge by tags has the documented form, and no request exceeds the
// service's limit of tags.
func TestTagsAtServices(t *testing.T) {
	everywhere := []Kind{CloudFront, Cloudflare, Fastly}
	for _, c := range []struct {
		flag        string
		most        int
		path        string
		credentials func(r told) bool
		tags        func(t *testing.T, r told) []string
	}{
		{"fastly:service1", 256, "/service/service1/purge", func(r told) bool { return r.header.Get("Fastly-Key") == hush },
			func(t *testing.T, r told) []string { return listOf(t, r, "surrogate_keys") }},
		{"cloudflare:zone1", 100, "/client/v4/zones/zone1/purge_cache", func(r told) bool { return r.header.Get("Authorization") == "Bearer "+hush },
			func(t *testing.T, r told) []string { return listOf(t, r, "tags") }},
	} {
		for _, n := range []int{1, c.most, c.most + 1, 3*c.most - 1} {
			s := newStub(t, ok)
			r := mustPurge(t, s.open(t, c.flag), Purge{All: true, Tags: manyTags(n), Tagged: everywhere})
			var got []string
			for _, request := range s.told {
				if request.method != http.MethodPost || request.path != c.path || !c.credentials(request) || request.header.Get("Content-Type") != "application/json" {
					t.Errorf("%s: got %+v, want the documented form", c.flag, request)
				}
				tags := c.tags(t, request)
				if len(tags) > c.most {
					t.Errorf("%s: got %d tags in a request, want at most %d", c.flag, len(tags), c.most)
				}
				got = append(got, tags...)
			}
			slices.Sort(got)
			want := manyTags(n)
			if requests := (n + c.most - 1) / c.most; !slices.Equal(got, want) || len(s.told) != requests || r.Requests != requests ||
				!r.Tags || r.Everything || r.Items != n || !strings.Contains(r.String(), " tag") {
				t.Errorf("%s, %d tags: got %d in %d requests, and %s, want all in %d", c.flag, n, len(got), len(s.told), r, requests)
			}
			s.noSecret(t)
		}
	}
}

// listOf returns the only member of a body in JSON, a list of texts.
func listOf(t *testing.T, r told, member string) []string {
	t.Helper()
	var body map[string][]string
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || len(body) != 1 {
		t.Errorf("body: got %v: %s, want only %s", err, r.body, member)
	}
	return body[member]
}

// CloudFront accepts tags as items that begin with a #, in the same number as paths, one
// invalidation at a time.
func TestTagsAtCloudFront(t *testing.T) {
	s := newCloudFrontStub(t)
	r := mustPurge(t, s.stub.open(t, "cloudfront:EDFDVBD6EXAMPLE"), Purge{All: true, Tags: manyTags(3001), Tagged: []Kind{CloudFront}})
	if len(s.batches) != 2 || len(s.batches[0]) != 3000 || s.batches[0][0] != "#fp-list-0000" || s.batches[1][0] != "#fp-list-3000" || !r.Tags || len(s.open) > 0 {
		t.Errorf("got %d invalidations, %+v, want two", len(s.batches), r)
	}
}

// Tags are sent if they avoid purging everything, or need fewer requests, and only to services for
// whose tags the site has headers.
func TestTagsOrURLs(t *testing.T) {
	few := Purge{Exact: some.Exact}
	for _, c := range []struct {
		name, flag string
		what       Purge
		tags       int
		tagged     []Kind
		want       bool
	}{
		{"instead of everything", "fastly:service1", some, 3, []Kind{Fastly}, true},
		{"instead of everything, in several requests", "fastly:service1", some, 600, []Kind{Fastly}, true},
		{"fewer requests", "fastly:service1", few, 200, []Kind{Fastly}, true},
		{"more requests", "fastly:service1", few, 1000, []Kind{Fastly}, false},
		{"no tags", "fastly:service1", some, 0, []Kind{Fastly}, false},
		{"tags of another service", "fastly:service1", some, 3, []Kind{CloudFront, Cloudflare}, false},
		{"fewer items, as each costs", "cloudfront:EDFDVBD6EXAMPLE", some, 4, []Kind{CloudFront}, true},
		{"more items", "cloudfront:EDFDVBD6EXAMPLE", some, 6, []Kind{CloudFront}, false},
		{"fewer prefixes", "cloudflare:zone1", Purge{Exact: many(140)}, 7, []Kind{Cloudflare}, true},
		{"a service that knows none", "http:http://localhost{path}", some, 1, []Kind{CloudFront, Cloudflare, Fastly}, false},
	} {
		c.what.Tags, c.what.Tagged = manyTags(c.tags), c.tagged
		if r := newStub(t, ok).open(t, c.flag).Plan(c.what); r.Tags != c.want {
			t.Errorf("%s: got %+v, want tags: %v", c.name, r, c.want)
		}
	}
}

// If a service refuses tags, for example because of the plan, everything is purged. Rate limits are
// waited for.
func TestTagsAreRefused(t *testing.T) {
	for flag, everything := range map[string]string{"fastly:service1": "/service/service1/purge_all", "cloudflare:zone1": "purge_everything"} {
		s := newStub(t, func(n int, r told, w http.ResponseWriter) {
			switch {
			case n == 1:
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
			case strings.Contains(r.body, "fp-list"):
				w.WriteHeader(http.StatusBadRequest)
			default:
				ok(n, r, w)
			}
		})
		r := mustPurge(t, s.open(t, flag), Purge{All: true, Tags: manyTags(3), Tagged: []Kind{Fastly, Cloudflare}})
		if last := s.told[len(s.told)-1]; len(s.told) != 3 || !r.Everything || r.Retries != 1 || !strings.Contains(last.path+last.body, everything) {
			t.Errorf("%s: got %d requests, the last %+v, and %+v, want everything in the third", flag, len(s.told), last, r)
		}
	}
}

func TestHTTP(t *testing.T) {
	s := newStub(t, ok)
	purge := func(flag string, what Purge) (all []string) {
		t.Helper()
		s.told = nil
		mustPurge(t, s.open(t, flag), what)
		for _, r := range s.told {
			if r.method != "PURGE" || r.body != "" {
				t.Errorf("request or result: got %+v, want the documented form", r)
			}
			all = append(all, strings.TrimSuffix(r.path+"?"+r.query, "?"))
		}
		slices.Sort(all)
		return all
	}
	for _, c := range []struct {
		template string
		what     Purge
		want     []string
	}{
		{"{path}", Everything(), []string{"/*"}},
		{"{path}", some, []string{"/_site", "/api/v1/lists/1/records", "/api/v1/lists/1/records?includeTags=false", "/api/v1/lists/1/searchFollowing",
			"/api/v1/lists/1/searchFollowing?*", "/api/v1/users/*"}},
		{"/all?k=" + hush, some, []string{"/all?k=" + hush}}, // one URL for everything, whatever changed
		{"/", Everything(), []string{"/"}},
		{"", some, []string{"/"}},
		{"{path}", Purge{Wide: []string{"/users/a[b]~|'c*.eth/x"}}, []string{"/users/a[b]~|'c%2A.eth/x", "/users/a[b]~|'c%2A.eth/x?*"}},
		{"/purge{path}", Purge{Exact: []string{"/_site"}}, []string{"/purge/_site"}},
		{"/?u=https%3A%2F%2Fapi.example.org{path}&k=" + hush, Purge{Exact: []string{"/a?b=c"}}, []string{"/?u=https%3A%2F%2Fapi.example.org%2Fa%3Fb%3Dc&k=" + hush}},
	} {
		if got := purge("http:"+s.URL+c.template, c.what); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.template, got, c.want)
		}
	}
	s.noSecret(t, s.open(t, "http:"+s.URL+"/"+hush+"{path}").service.name)
	// Nothing to purge is not a failure.
	for _, status := range []int{http.StatusNotFound, http.StatusPreconditionFailed} {
		s.answer = func(_ int, _ told, w http.ResponseWriter) { w.WriteHeader(status) }
		purge("http:"+s.URL+"{path}", some)
		// A purge of everything always finds something.
		if r, err := s.open(t, "http:"+s.URL+"/").Purge(t.Context(), some); err == nil || !r.Everything {
			t.Errorf("status %d of the URL for everything: got no error, want one", status)
		}
	}
	// A refused purge does not stop the others, and is reported.
	s.answer = func(n int, _ told, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusBadRequest)
		}
	}
	s.told = nil
	if _, err := s.open(t, "http:"+s.URL+"{path}").Purge(t.Context(), Purge{Exact: many(100)}); err == nil || !strings.Contains(err.Error(), "1 of 100 refused") || len(s.told) != 100 {
		t.Errorf("requests: got %d: %v, want the others in spite of a refusal", len(s.told), err)
	}
	// No error contains the secret of a template either.
	s.Close()
	_, err := s.open(t, "http:"+s.URL+"/"+hush+"{path}", func(o *Options) { o.Patience = 1 }).Purge(t.Context(), some)
	if err == nil {
		t.Fatal("an unreachable server: got no error, want one")
	}
	s.noSecret(t, err.Error())
}

// No part of a secret is left if another part of the URL is contained in it, or if the
// server escapes it in another way.
func TestSecretsThatServersSpellTheirWay(t *testing.T) {
	for query, answers := range map[string][]string{
		"apikey=apikey-0123SECRET":       {"apikey=apikey-0123SECRET"},
		"apikey-0123SECRET=apikey":       {"apikey-0123SECRET=apikey"},
		"token=0123%2bSECRET%2fabcdef":   {"0123%2bSECRET%2fabcdef", "0123%2BSECRET%2Fabcdef", "0123+SECRET/abcdef"},
		"token=0123+SECRET%7Eabcdef":     {"0123+SECRET%7eabcdef", "0123%20SECRET~abcdef", "0123%2BSECRET~abcdef", "0123 SECRET~abcdef"},
		"token=0123%FFSECRET%E9abcdef":   {"0123\xffSECRET\xe9abcdef", "0123%ffSECRET%e9abcdef"},
		"token=0123SECRET&u={path}&x=23": {"0123SECRET"},
	} {
		for _, answer := range answers {
			s := newStub(t, func(_ int, _ told, w http.ResponseWriter) {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprintf(w, "no, not with %s", answer)
			})
			_, err := s.open(t, "http:"+s.URL+"/?"+query, func(*Options) {}).Purge(t.Context(), some)
			if err == nil || !strings.Contains(err.Error(), "no, not with") || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "abcdef") {
				t.Errorf("%s, repeated as %q: got %v, want it hidden", query, answer, err)
			}
		}
	}
}

// If no request found anything to purge, the template may be wrong, so there is a warning.
func TestNothingToForget(t *testing.T) {
	for name, c := range map[string]struct {
		found int // requests that find something
		says  bool
	}{"nowhere": {0, true}, "once": {1, false}} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, func(n int, _ told, w http.ResponseWriter) {
				if n > c.found {
					w.WriteHeader([]int{http.StatusNotFound, http.StatusPreconditionFailed}[n%2])
				}
			})
			r := mustPurge(t, s.open(t, "http:"+s.URL+"{path}"), Purge{Exact: many(20)})
			if r.Nothing != 20-c.found {
				t.Errorf("nothing to purge: got %d of %d, want %d", r.Nothing, r.Requests, 20-c.found)
			}
			if says := strings.Contains(s.log.String(), "level=WARN"); says != c.says {
				t.Errorf("warned: got %v, want %v: %s", says, c.says, &s.log)
			}
		})
	}
}

// proxied is the variable that makes this binary purge something through the proxy that
// the environment names: a process asks for that only once.
const proxied = "FOLLOWPRESS_TEST_PURGE"

func TestMain(m *testing.M) {
	if flag := os.Getenv(proxied); flag != "" {
		p, err := New(flag, Options{Patience: time.Second})
		if err == nil {
			_, err = p.Purge(context.Background(), Purge{Wide: []string{"/users/a|b[c]'/x"}, Exact: []string{"/_site", "/a?b=c"}})
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	if err := checkKinds(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	m.Run()
}

// Behind a proxy the request has the whole URL, byte for byte; without one the path.
func TestProxy(t *testing.T) {
	for _, c := range []struct {
		flag, through string
		want          []string
	}{
		{"http:http://cache.invalid:81{path}", "HTTP_PROXY", []string{
			"PURGE http://cache.invalid:81/_site cache.invalid:81", "PURGE http://cache.invalid:81/a?b=c cache.invalid:81",
			"PURGE http://cache.invalid:81/users/a|b[c]'/x cache.invalid:81", "PURGE http://cache.invalid:81/users/a|b[c]'/x?* cache.invalid:81"}},
		{"http:http://cache.invalid", "HTTP_PROXY", []string{"PURGE http://cache.invalid/ cache.invalid"}},
		{"http:http://%s{path}", "no proxy", []string{"PURGE /_site %s", "PURGE /a?b=c %s", "PURGE /users/a|b[c]'/x %s", "PURGE /users/a|b[c]'/x?* %s"}},
	} {
		t.Run(c.through+" "+c.flag, func(t *testing.T) {
			s := newStub(t, ok) // the proxy, or the cache itself
			address := strings.TrimPrefix(s.URL, "http://")
			fill := func(text string) string { return strings.ReplaceAll(text, "%s", address) }
			command := exec.Command(os.Args[0])
			command.Env = []string{proxied + "=" + fill(c.flag), "HTTP_PROXY=" + s.URL}
			if c.through == "no proxy" {
				command.Env = []string{proxied + "=" + fill(c.flag), "HTTP_PROXY=http://127.0.0.1:1"} // nothing goes through it to this machine
			}
			if output, err := command.CombinedOutput(); err != nil {
				t.Fatalf("invalidation: got %v: %s, want valid XML", err, output)
			}
			var got, want []string
			for _, r := range s.told {
				got = append(got, r.method+" "+strings.TrimSuffix(r.path+"?"+r.query, "?")+" "+r.host)
			}
			for _, line := range c.want {
				want = append(want, fill(line))
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("items: got %q, want %q", got, want)
			}
		})
	}
}

// No credential appears in the output, wherever the server repeats it: for each service of the
// table, with a secret in each field of Options that can have one.
func TestServersThatRepeatWhatTheyGot(t *testing.T) {
	for kind := range kinds {
		operand := operands[kind]
		if kind == HTTP {
			operand = "%s/secret-before-{path}-secret-after?k=secret-query&u=1"
		}
		for name, shout := range map[string]func(string) string{
			"as it is": func(s string) string { return s }, "in upper case": strings.ToUpper,
			"in base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("it was " + s)) },
		} {
			for place, answer := range echoes {
				t.Run(fmt.Sprintf("%s, %s, %s", kind, place, name), func(t *testing.T) {
					t.Parallel()
					address := repeating(t, func(got string) string { return answer(shout(got)) })
					var told strings.Builder
					o := Options{
						Sites: []string{"https://api.example.org"}, Patience: 20 * time.Millisecond, firstBackoff: time.Millisecond, pollWait: time.Millisecond,
						Log:       slog.New(slog.NewTextHandler(&told, &slog.HandlerOptions{Level: slog.LevelDebug})),
						Tell:      func(line string) { told.WriteString(line) },
						Endpoints: map[Kind]string{kind: address + "/secret-endpoint"},
						AWS: func(context.Context) (Credentials, error) {
							return Credentials{"AKIDEXAMPLE", "secret-of-aws", "secret-session"}, nil
						},
					}
					setSecrets(&o, "secret-token")
					p, err := New(string(kind)+":"+strings.ReplaceAll(operand, "%s", address), o)
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // CloudFront is asked for 15 minutes
					defer cancel()
					r, err := p.Purge(ctx, Purge{Exact: many(2)})
					if err == nil && place != "invalidation" {
						t.Fatal("got no error, want one")
					}
					report, encodeErr := json.Marshal([]Result{p.Plan(some), r})
					if encodeErr != nil {
						t.Fatal(encodeErr)
					}
					all := strings.Join([]string{told.String(), fmt.Sprint(err), r.String(), p.Name(), string(report), fmt.Sprintf("%+v", []any{o.CloudflareToken, o.FastlyToken})}, "\n")
					for _, bad := range []string{"secret-", "c2VjcmV0LW", "NlY3JldC", "zZWNyZXQt", "\x1b", "\u202e"} {
						if strings.Contains(strings.ToLower(all), strings.ToLower(bad)) {
							t.Errorf("got %q in %s", bad, all)
						}
					}
				})
			}
		}
	}
}

// echoes are answers that repeat a request, which is in one line.
var echoes = map[string]func(string) string{
	"status line": func(got string) string { return "HTTP/1.1 403 no " + got + "\r\nContent-Length: 0\r\n\r\n" },
	"no status":   func(got string) string { return "HTTP/1.1 " + got + "\r\n\r\n" },
	"no answer":   func(got string) string { return got + "\r\n\r\n" },
	"header":      func(got string) string { return "HTTP/1.1 403 no\r\n" + got + "\r\nContent-Length: 0\r\n\r\n" },
	"length":      func(got string) string { return "HTTP/1.1 403 no\r\nContent-Length: " + got + "\r\n\r\n" },
	"body":        func(got string) string { return answerOf(http.StatusForbidden, "\x1b]0;"+got+"\x07\u202e") },
	"bad request": func(got string) string { return answerOf(http.StatusBadRequest, got) },
	"success":     func(got string) string { return answerOf(http.StatusTeapot, got) },
	"invalidation": func(got string) string {
		return answerOf(http.StatusOK, "<Invalidation><Id>"+strings.NewReplacer("&", "", "<", "").Replace(got)+"</Id></Invalidation>")
	},
	"redirect": func(got string) string {
		return "HTTP/1.1 302 x\r\nLocation: http://%zz/" + got + "\r\nContent-Length: 0\r\n\r\n"
	},
	"other server": func(got string) string {
		return "HTTP/1.1 302 x\r\nLocation: http://h/" + got + "\r\nContent-Length: 0\r\n\r\n"
	},
}

func answerOf(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// repeating returns the URL of a server that answers each request with a text made from the request.
func repeating(t *testing.T, answer func(got string) string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				for from := bufio.NewReader(c); ; {
					r, err := http.ReadRequest(from)
					if err != nil {
						return
					}
					got, err := httputil.DumpRequest(r, true)
					if err != nil {
						return
					}
					line := strings.Join(strings.Fields(strings.ReplaceAll(string(got), "\r\n", " ")), " ")
					if _, err := fmt.Fprint(c, answer(line)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}
