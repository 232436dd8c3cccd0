package purger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/secret"
)

// The flag is checked before anything is published.
func TestFlags(t *testing.T) {
	for _, c := range []struct {
		flag, says string
		change     func(*Options)
	}{
		{"", "use cloudflare:ZONE, cloudfront:ID", nil},
		{"akamai:1", `unknown service "akamai": use `, nil},
		{"varnish:cache.internal", `unknown service "varnish": use `, nil},
		{"https://cache.example.org/purge", "a URL alone names no service: put http: before it", nil},
		{hush + ":1", "cloudfront:ID", nil},
		{"cloudflare", `"cloudflare" lacks the part after the service: use `, nil},
		{"http:", "use http:URL-TEMPLATE", nil},
		{"cloudflare:zone", "CLOUDFLARE_API_TOKEN", func(o *Options) { o.CloudflareToken = "" }},
		{"cloudflare:zone", "--purge-url", func(o *Options) { o.Sites = nil }},
		{"fastly:service", "FASTLY_API_TOKEN", func(o *Options) { o.FastlyToken = "" }},
		{"fastly:service", "--purge-url", func(o *Options) { o.Sites = nil }},
		{"fastly:service", "like https://HOST", func(o *Options) { o.Sites = []string{"api.example.org"} }},
		{"fastly:service", "like https://HOST", func(o *Options) { o.Sites = []string{"https://api.example.org/folder"} }},
		{"http:http://cache/{key}", "not {path}", nil},
		{"http:http://cache{path}?u={url}", "not {path}", nil},
		{"http:http://cache{path}?u={path}", "{path} twice", nil},
		{"http:cache{path}", "not a URL", nil},
		{"http:http://cache/{path}", "http://cache{path}", nil},
		{"http:http://cache/" + hush + "/{path}?k=" + hush, "begins with a slash", nil},
		{"http:http://cache/?u=/{path}", "begins with a slash", nil},
		{"http:http://cache//purge{path}", "two slashes", nil},
		{"http:http://cache//" + hush, "two slashes", nil},
		{"http:http://user:" + hush + "@cache{path}", "has a user", nil},
	} {
		o := Options{Sites: []string{"https://api.example.org"}, CloudflareToken: "x", FastlyToken: "x"}
		if c.change != nil {
			c.change(&o)
		}
		if _, err := New(c.flag, o); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), hush) {
			t.Errorf("%q: got %v, want %q", c.flag, err, c.says)
		}
	}
}

// checkKinds returns an error if a kind of service lacks something. TestMain calls it first,
// because every test would fail.
func checkKinds() error {
	files, err := filepath.Glob("*.go")
	if err != nil {
		return err
	}
	var code strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		code.Write(text)
	}
	constructors := regexp.MustCompile(`(?m)^func new(\w+)\(.*\) \(service, error\) {$`).FindAllStringSubmatch(code.String(), -1)
	for _, c := range constructors {
		if !regexp.MustCompile(`, new` + c[1] + `\}`).MatchString(code.String()) {
			return fmt.Errorf("purger/purger.go: kinds lacks new%s", c[1])
		}
		if !strings.Contains(code.String(), "\nfunc Test"+c[1]+"(t *testing.T) {") {
			return fmt.Errorf("purger/services_test.go: lacks Test%s", c[1])
		}
	}
	for kind, known := range kinds {
		if operands[kind] == "" && kind != HTTP {
			return fmt.Errorf("purger/purger_test.go: operands lacks %s", kind)
		}
		o := Options{Sites: []string{"https://api.example.org"}, AWS: func(context.Context) (Credentials, error) { return Credentials{}, nil }}
		setSecrets(&o, hush)
		s, err := known.open(cmp.Or(operands[kind], "http://cache"), o, &secret.Hider{})
		if err != nil {
			return fmt.Errorf("purger/%s.go: %w", kind, err)
		}
		for field, missing := range map[string]bool{"name": s.name == "", "inFlight": s.inFlight == 0, "cut": s.cut == nil, "request": s.request == nil} {
			if missing {
				return fmt.Errorf("purger/%s.go: the service lacks %s", kind, field)
			}
		}
	}
	return nil
}

// operands has an operand for the flag of each kind except HTTP, whose operand is a URL.
var operands = map[Kind]string{CloudFront: "EDFDVBD6EXAMPLE", Cloudflare: "zone1", Fastly: "service1"}

// services returns a flag for each kind, in front of a stub.
func services(s *stub) []string {
	all := []string{"http:" + s.URL + "{path}"}
	for kind, operand := range operands {
		all = append(all, string(kind)+":"+operand)
	}
	return all
}

// eventually answers with a failure first, then as each service does.
func eventually(failures int, fail func(w http.ResponseWriter)) func(int, told, http.ResponseWriter) {
	return func(n int, r told, w http.ResponseWriter) {
		if n <= failures {
			fail(w)
			return
		}
		if strings.Contains(r.path, "/invalidation") {
			_, _ = io.WriteString(w, `<Invalidation><Id>I1</Id><Status>Completed</Status></Invalidation>`)
			return
		}
		ok(n, r, w)
	}
}

// Retryable failures are retried, with the complete request.
func TestRetries(t *testing.T) {
	for name, fail := range map[string]func(http.ResponseWriter){
		"too many requests": func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"server error":      func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"unavailable":       func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"broken connection": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		s := newStub(t, eventually(2, fail))
		for _, flag := range services(s) {
			t.Run(name+" "+flag, func(t *testing.T) {
				s.told = nil
				r := mustPurge(t, s.open(t, flag), Everything())
				if len(s.told) != 3 || r.Retries != 2 || r.Requests != 1 || !r.Everything {
					t.Errorf("requests: got %d, result %+v, want a retry", len(s.told), r)
				}
				if s.told[0].body != "" && s.told[2].body != s.told[0].body {
					t.Errorf("retry: got %q, then %q, want equal requests", s.told[0].body, s.told[2].body)
				}
				s.noSecret(t, r.String())
			})
		}
	}
}

// Errors that a retry cannot fix fail at once, and name what to check.
func TestNoRetries(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusMovedPermanently, http.StatusNotImplemented} {
		s := newStub(t, func(_ int, _ told, w http.ResponseWriter) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "no,\n never")
		})
		for _, flag := range services(s) {
			s.told = nil
			r, err := s.open(t, flag).Purge(t.Context(), Everything())
			if err == nil || len(s.told) != 1 || !strings.Contains(err.Error(), "no, never") || r.Error != err.Error() {
				t.Errorf("%s, %d: got %d requests: %v, want one", flag, status, len(s.told), err)
			}
			if hint := strings.Contains(err.Error(), "check the credentials"); hint != (status == http.StatusForbidden) {
				t.Errorf("%s, %d: got %v, want a hint on credentials only for 403", flag, status, err)
			}
			s.noSecret(t, err.Error())
		}
	}
}

// Retry-After is honoured if it is short enough, and retries end with patience.
func TestPatience(t *testing.T) {
	s := newStub(t, eventually(1, func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	begun := time.Now()
	mustPurge(t, s.open(t, "cloudflare:zone1"), Everything())
	if took := time.Since(begun); took < time.Second || len(s.told) != 2 {
		t.Errorf("Retry-After: got %d requests in %s, want 2 in more than a second", len(s.told), took)
	}
	s.answer = func(_ int, _ told, w http.ResponseWriter) {
		w.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, err := s.open(t, "cloudflare:zone1").Purge(t.Context(), Everything())
	if err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "longer than the patience of 2s") || len(s.told) != 3 {
		t.Errorf("patience: got %v after %d more requests, want an error after one, because Retry-After is longer", err, len(s.told)-2)
	}
}

// A cache whose Retry-After is zero or in the past gets no more requests than one without
// Retry-After.
func TestNoBusyLoop(t *testing.T) {
	for _, after := range []string{"0", "-1", "Wed, 21 Oct 2015 07:28:00 GMT", "9999999999"} {
		s := newStub(t, func(_ int, _ told, w http.ResponseWriter) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		_, err := s.open(t, "cloudflare:zone1").Purge(t.Context(), Everything())
		if err == nil || len(s.told) > 15 {
			t.Errorf("%s: got %d requests and %v, want at most 15 and an error", after, len(s.told), err)
		}
	}
}

// An interrupt ends the waiting.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newStub(t, func(_ int, _ told, w http.ResponseWriter) {
		cancel()
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	_, err := s.open(t, "http:"+s.URL, func(o *Options) { o.firstBackoff, o.Patience = time.Hour, 2*time.Hour }).Purge(ctx, Everything())
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A plan reports the requests of a purge, and sends none.
func TestPlanAsksNothing(t *testing.T) {
	s := newStub(t, ok)
	for _, flag := range services(s) {
		r := s.open(t, flag).Plan(Purge{Exact: many(100)})
		if len(s.told) > 0 || !r.Planned || r.Items == 0 || r.Requests == 0 || len(r.First) != min(r.Items, 20) || r.Everything || !strings.Contains(r.String(), "to purge") {
			t.Errorf("%s: got %d requests: %+v, want none", flag, len(s.told), r)
		}
	}
}

// compactNaively compares every URL with every other one.
func compactNaively(p Purge) Purge {
	matches := func(pattern, path string) bool {
		return regexp.MustCompile("^" + expression(pattern) + "$").MatchString(path)
	}
	below := func(path string) bool {
		return slices.ContainsFunc(p.Wide, func(w string) bool { return strings.HasSuffix(w, "/") && w != path && strings.HasPrefix(path, w) })
	}
	var left Purge
	for _, pattern := range p.Each {
		if !below(pattern) {
			left.Each = append(left.Each, pattern)
		}
	}
	covered := func(path string) bool {
		return below(path) || slices.ContainsFunc(left.Each, func(pattern string) bool { return matches(pattern, path) })
	}
	for _, w := range p.Wide {
		if !covered(w) {
			left.Wide = append(left.Wide, w)
		}
	}
	for _, u := range p.Exact {
		if path, _, _ := strings.Cut(u, "?"); !slices.Contains(p.Wide, path) && !covered(path) {
			left.Exact = append(left.Exact, u)
		}
	}
	for _, list := range []*[]string{&left.Exact, &left.Wide, &left.Each} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return left
}

// Nothing that is covered is purged twice, and nothing else is left out.
func TestCompactLeavesWhatTheNaiveWayLeaves(t *testing.T) {
	random := rand.New(rand.NewPCG(22, 6))
	path := func(segments ...string) string {
		var b strings.Builder
		for range 1 + random.IntN(4) {
			b.WriteString("/" + segments[random.IntN(len(segments))])
		}
		return b.String()
	}
	removed := 0
	for range 5_000 {
		var p Purge
		for range random.IntN(8) {
			p.Exact = append(p.Exact, path("a", "b", "ab", "*")+[]string{"", "?", "?a=/b/", "?*"}[random.IntN(4)])
		}
		for range random.IntN(4) {
			p.Wide = append(p.Wide, path("a", "b", "ab", "*")+[]string{"", "/"}[random.IntN(2)])
			p.Each = append(p.Each, path("a", "b", "*", "*"))
		}
		want := compactNaively(p)
		got := Purge{Exact: slices.Clone(p.Exact), Wide: slices.Clone(p.Wide), Each: slices.Clone(p.Each)}.compact()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("compact of %v\ngot  %v\nwant %v", p, got, want)
		}
		removed += len(p.Exact) + len(p.Wide) + len(p.Each) - len(got.Exact) - len(got.Wide) - len(got.Each)
	}
	if removed < 4_000 {
		t.Errorf("got %d URLs removed in all, want more to test with", removed)
	}
}

// A night that changes every list purges in time. Compared with each other, these URLs take longer than
// a test may.
func TestCompactOfManyURLs(t *testing.T) {
	const lists = 50_000
	p := manyURLs(lists)
	got := p.compact()
	if len(got.Each) != lists || len(got.Wide) != lists || len(got.Exact) != lists {
		t.Errorf("got %d, %d and %d URLs, want %d of each", len(got.Each), len(got.Wide), len(got.Exact), lists)
	}
}

// manyURLs has a folder, a pattern, and URLs that they cover and do not cover, of each list.
func manyURLs(lists int) (p Purge) {
	for i := range lists {
		list := fmt.Sprintf("/api/v1/lists/%d/", i)
		p.Wide = append(p.Wide, list+"search/", list+"search/1")
		p.Each = append(p.Each, list+"*/buttonState", list+"search/*")
		p.Exact = append(p.Exact, list+"bob/buttonState", list+"records", list+"search/2?limit=1")
	}
	return p
}
