package edge_test

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dop251/goja"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/settings"
)

// A cloudFront runs the function in a JavaScript engine with CloudFront's events, and does what
// CloudFront does with the result, as far as its documentation says: it chooses the origin, fails over,
// caches by path and query, and adds the headers of the policy.
type cloudFront struct {
	t                testing.TB
	bucket, fallback string
	live             string
	settings         []string // the value of settings.Header in the headers policy

	mu      sync.Mutex
	vm      *goja.Runtime
	handler goja.Callable
	chosen  []string // origins of the request at hand
	over    []any    // statuses on which the second one is asked
	kept    map[string]answer
}

func startCloudFront(t testing.TB, bucketURL, fallbackURL string, change ...func(*edge.Options)) string {
	t.Helper()
	// CloudFront takes names only, and the policy needs https: the origins are ours here.
	c, stack := newCloudFront(t, render(t, "cloudfront", bucketURL, fallbackURL, "", change...))
	var o edge.Options
	for _, c := range change {
		c(&o)
	}
	c.bucket, c.fallback, c.live, c.kept = bucketURL, fallbackURL, o.Live, map[string]answer{}
	_, policy, _ := strings.Cut(stack, "- Header: "+strings.ToLower(settings.Header)+"\n")
	c.settings = regexp.MustCompile(`Value: "(.*)"`).FindStringSubmatch(policy)[1:]
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	return s.URL
}

// newCloudFront loads the function of a rendered distribution, and returns its stack.
func newCloudFront(t testing.TB, dir string) (c *cloudFront, stack string) {
	t.Helper()
	code, err := os.ReadFile(filepath.Join(dir, "function.js"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(filepath.Join(dir, "cloudfront.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c = &cloudFront{t: t, vm: goja.New()}
	c.load(string(code))
	return c, string(body)
}

// load runs the code without what the runtime of CloudFront Functions lacks.
func (c *cloudFront) load(code string) {
	source, imported := strings.CutPrefix(code, "import cf from 'cloudfront';\n")
	if !imported {
		c.t.Fatal("the function does not import cloudfront")
	}
	cf := c.vm.NewObject()
	for name, choose := range map[string]func(goja.FunctionCall) goja.Value{
		"selectRequestOriginById": func(call goja.FunctionCall) goja.Value {
			c.chosen = []string{call.Argument(0).String()}
			return nil
		},
		"createRequestOriginGroup": func(call goja.FunctionCall) goja.Value {
			group := call.Argument(0).Export().(value)
			c.chosen, c.over = nil, group["failoverCriteria"].(value)["statusCodes"].([]any)
			for _, member := range group["originIds"].([]any) {
				c.chosen = append(c.chosen, member.(value)["originId"].(string))
			}
			if len(c.chosen) != 2 || slices.Contains(c.over, any(int64(403))) != (c.live == "") {
				c.t.Errorf("origin group: got %+v, want two origins, and failover on 403 unless live answers", group)
			}
			return nil
		},
	} {
		if err := cf.Set(name, choose); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := c.vm.Set("cf", cf); err != nil {
		c.t.Fatal(err)
	}
	const lacks = "String.prototype.normalize = undefined; Array.from = undefined; eval = undefined; Function = undefined; setTimeout = undefined;"
	if _, err := c.vm.RunString(lacks + source); err != nil {
		c.t.Fatal(err)
	}
	var ok bool
	if c.handler, ok = goja.AssertFunction(c.vm.Get("handler")); !ok {
		c.t.Fatal("there is no handler")
	}
}

type value = map[string]any

// event returns the request as CloudFront passes it to a function.
func event(r *http.Request, path, query string) value {
	querystring := map[string]any{}
	for pair := range strings.SplitSeq(query, "&") {
		name, text, _ := strings.Cut(pair, "=")
		if pair == "" {
			continue
		}
		one, ok := querystring[name].(value)
		if !ok {
			querystring[name] = value{"value": text}
			continue
		}
		if one["multiValue"] == nil {
			one["multiValue"] = []any{value{"value": one["value"]}}
		}
		one["multiValue"] = append(one["multiValue"].([]any), value{"value": text})
	}
	headers := value{}
	for _, name := range []string{
		"accept", "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "last-event-id", "prefer", "range", "x-after", "x-signed",
	} {
		if r.Header.Get(name) != "" {
			headers[name] = value{"value": r.Header.Get(name)}
		}
	}
	if r.ContentLength > 0 {
		headers["content-length"] = value{"value": strconv.FormatInt(r.ContentLength, 10)}
	}
	return value{
		"version": "1.0", "context": value{"eventType": "viewer-request"}, "viewer": value{"ip": "198.51.100.1"},
		"request": value{
			"method": r.Method, "uri": path, "querystring": querystring, "headers": headers, "cookies": value{},
			"rawQueryString": func() string { return query },
		},
	}
}

// decide returns the result of the function, and sets the origins that it chooses.
func (c *cloudFront) decide(r *http.Request) value {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	c.chosen = []string{"bucket"}
	got, err := c.handler(goja.Undefined(), c.vm.ToValue(event(r, path, query)))
	if err != nil {
		c.t.Fatalf("%s: %v", r.RequestURI, err)
	}
	return got.Export().(value)
}

func (c *cloudFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	result := c.decide(r)
	if status, ok := result["statusCode"]; ok {
		c.write(w, r, c.made(int(status.(int64)), result))
		return
	}
	uri, querystring := result["uri"].(string), result["querystring"].(string)
	if strings.HasPrefix(uri, "/_lock") {
		c.t.Errorf("%s: got %s, want no path of _lock", r.RequestURI, uri)
	}
	if querystring != "" {
		uri += "?" + querystring
	}
	if r.Method == http.MethodPost {
		c.write(w, r, c.passed(r, uri))
		return
	}
	accept := ""
	if sent, ok := result["headers"].(value)["accept"].(value); ok {
		accept = sent["value"].(string)
	}
	c.write(w, r, c.cached(uri, accept))
}

// passed returns the answer to a request whose method CloudFront neither caches nor sends to an origin group.
func (c *cloudFront) passed(r *http.Request, uri string) answer {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(c.chosen) != 1 || c.chosen[0] != "fallback" {
		c.t.Errorf("%s %s: got the origins %v (%v), want the fallback", r.Method, uri, c.chosen, err)
	}
	a, err := trySend(r.Method, c.fallback, uri, string(body))
	if err != nil || a.status >= 500 {
		return problemAnswer(site.Unavailable)
	}
	return a
}

func (c *cloudFront) made(status int, result value) answer {
	a := answer{status: status, header: http.Header{}}
	for name, v := range result["headers"].(value) {
		a.header.Set(name, v.(value)["value"].(string))
	}
	a.body, _ = result["body"].(string)
	return a
}

var maxAge = regexp.MustCompile(`max-age=[1-9]`)

func (c *cloudFront) cached(uri, accept string) answer {
	if a, ok := c.kept[uri+accept]; ok {
		return a
	}
	var a answer
	for _, id := range c.chosen {
		base := map[string]string{"bucket": c.bucket, "fallback": c.fallback, "live": c.live, "patient": c.live}[id]
		u, err := url.Parse(base)
		if err != nil {
			c.t.Fatal(err)
		}
		if a, err = tryAsk(http.MethodGet, u.Scheme+"://"+u.Host, u.Path+uri, "Accept", accept); err != nil {
			a = answer{status: http.StatusBadGateway}
		}
		if !slices.Contains(c.over, any(int64(a.status))) {
			break
		}
	}
	switch { // CustomErrorResponses
	case a.status >= 500:
		return problemAnswer(site.Unavailable)
	case c.live != "" && a.status == http.StatusForbidden, c.fallback == "" && (a.status == http.StatusForbidden || a.status == http.StatusNotFound):
		return problemAnswer(site.NoSuchRoute)
	}
	if c.live == "" && maxAge.MatchString(a.header.Get("Cache-Control")) {
		c.kept[uri+accept] = a
	}
	return a
}

func problemAnswer(p *site.Problem) answer {
	return answer{p.Status, http.Header{
		"Content-Type": {"application/problem+json"}, "Cache-Control": {p.CacheControl},
	}, string(p.Body())}
}

func (c *cloudFront) write(w http.ResponseWriter, r *http.Request, a answer) {
	for name, values := range a.header {
		if name != "Last-Modified" && !strings.HasPrefix(name, "X-Amz") {
			w.Header()[name] = values
		}
	}
	for _, h := range site.EveryHeader() {
		w.Header().Set(h.Name, h.Value)
	}
	w.Header()[settings.Header] = c.settings
	if etag := a.header.Get("ETag"); etag != "" && (r.Header.Get("If-None-Match") == "*" || strings.Contains(r.Header.Get("If-None-Match"), etag)) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if a.body == "" {
		w.Header().Del("Content-Length")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write([]byte(a.body)) // a HEAD has no body: net/http sees to it
}

// The code is within the limits of CloudFront Functions (cloudfront-js-2.0), with room for a base path.
func TestCloudFrontRestrictions(t *testing.T) {
	for _, config := range []site.Config{{}, {API: site.APIEFP}, {API: site.APIEFP, Names: site.NamesLookup}, site.AllFeatures()} {
		config.BasePath = strings.Repeat("base/", 20) + "path"
		config, err := config.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		for _, urls := range [][2]string{{}, {"https://fallback.example.org"}, {"https://fallback.example.org", "https://live.example.org"}} {
			checkRestrictions(t, render(t, "cloudfront", "https://bucket.example.org", urls[0], "", func(o *edge.Options) { o.Config, o.Live = config, urls[1] }))
		}
	}
}

func checkRestrictions(t *testing.T, dir string) {
	t.Helper()
	code, err := os.ReadFile(filepath.Join(dir, "function.js"))
	if err != nil {
		t.Fatal(err)
	}
	if len(code) > 10*1024 {
		t.Errorf("the function: got %d bytes, want at most 10,240", len(code))
	}
	_, program, _ := strings.Cut(string(code), "\n") // after the import
	for _, syntax := range []string{`\bfor ?\([^;)]* of `, `\.\.\.`, `\bclass\b`, `\?\.`, `\?\?`, `\beval\b`, `\bnew Function\b`, `\bsetTimeout\b`, `\bimport\b`, `\brequire\b`, `\(\?<`} {
		if found := regexp.MustCompile(syntax).FindString(program); found != "" {
			t.Errorf("the function: got %q, want only what its engine has", found)
		}
	}
	yaml, err := os.ReadFile(filepath.Join(dir, "cloudfront.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(code)), "\n") {
		if !strings.Contains(string(yaml), "\n        "+line+"\n") {
			t.Errorf("the stack: got no line %.80s", line)
		}
	}
}

// TestCloudFrontFunction checks which origins CloudFront asks, and which headers of a request stay: they change its answer,
// or its cache keys.
func TestCloudFrontFunction(t *testing.T) {
	const bucketURL, fallbackURL, liveURL = "https://bucket.example.org", "https://fallback.example.org", "https://live.example.org"
	const stored, live, conditions = "stored", "live", "if-match if-modified-since if-none-match if-range if-unmodified-since range"
	const list, search = "/api/v1/lists/8/details", "/api/v1/lists/8/searchFollowing?term=a"
	for _, api := range []string{site.APISpec, site.APIEFP} {
		functions, stacks := map[string]*cloudFront{}, map[string]string{}
		for _, kind := range []string{stored, live} {
			dir := render(t, "cloudfront", bucketURL, fallbackURL, "", func(o *edge.Options) {
				o.Config = withDefaultsOf(t, site.Config{API: api, Data: kind == stored})
				if kind == live {
					o.Live = liveURL
				}
			})
			checkRestrictions(t, dir)
			functions[kind], stacks[kind] = newCloudFront(t, dir)
		}
		functions[live].live = liveURL
		for _, one := range []struct {
			kind, method, uri string
			headers           string // names, and values other than 1
			origins, left     string
		}{
			{stored, "GET", list, conditions, "bucket fallback", "if-none-match"},
			{stored, "GET", search, conditions, "fallback", "if-none-match"},
			{stored, "GET", "/_data/follows.parquet", "range if-range if-match", "bucket fallback", "if-range range"},
			{stored, "GET", "/_data/follows-0002.parquet", "range if-range if-match", "bucket fallback", "if-range range"},
			{stored, "GET", "/_data/datapackage.json", "range if-range if-match", "bucket fallback", ""},
			{stored, "GET", "/_site", "range if-range if-match", "bucket fallback", ""},
			{live, "GET", list, "", "live bucket", ""},
			{live, "GET", list, "prefer last-event-id", "live bucket", ""},
			{live, "GET", list, "x-after prefer last-event-id", "patient bucket", "prefer x-after"},
			{live, "GET", list + "?cache=fresh", "", "patient fallback", ""},
			{live, "GET", search, "", "live fallback", ""},
			{live, "GET", search, "x-after", "patient fallback", "x-after"},
			{live, "GET", "/api/v1/users/CAF%C3%89.eth/searchFollowing", "", "live fallback", ""},
			{live, "HEAD", "/_site", "", "live bucket", ""},
			{live, "GET", "/_live/events?x=1", "last-event-id prefer", "patient", "last-event-id"},
			{live, "GET", "/_live/status", "", "patient", ""},
			{live, "GET", "/_live/status", "x-signed", "patient", ""},
			{live, "GET", list, "x-signed", "live bucket", ""},
			{live, "GET", list, "x-signed:only", "bucket fallback", "x-signed"},
			{live, "GET", list, "x-signed:only x-after prefer", "bucket fallback", "x-signed"},
			{live, "GET", search, "x-signed:only", "fallback", "x-signed"},
			{live, "GET", "/_site", "x-signed:only", "bucket fallback", "x-signed"},
		} {
			request := httptest.NewRequest(one.method, one.uri, nil)
			for _, header := range strings.Fields(one.headers) {
				name, text, _ := strings.Cut(header, ":")
				request.Header.Set(name, cmp.Or(text, "1"))
			}
			c := functions[one.kind]
			left := slices.Sorted(maps.Keys(c.decide(request)["headers"].(value)))
			if origins := strings.Join(c.chosen, " "); origins != one.origins || strings.Join(left, " ") != one.left {
				t.Errorf("%s, %s: %s %s with %s: got the origins %q and the headers %v, want %q and %q", api, one.kind, one.method, one.uri, one.headers, origins, left, one.origins, one.left)
			}
			if one.kind == live && slices.Contains(c.over, any(int64(http.StatusNotFound))) {
				t.Errorf("failover on %v: a 404 of live is an answer", c.over)
			}
		}
		if got := functions[live].decide(httptest.NewRequest(http.MethodPost, "/_live/events", nil)); got["statusCode"] == nil {
			t.Errorf("POST of events: got %v, want a problem", got)
		}
		for _, line := range []string{"MaxTTL: 2", "Headers: [X-After, Prefer, Last-Event-ID, X-Signed]", "- Id: live", "- Id: patient", "OriginReadTimeout: 1", "ConnectionAttempts: 1", "ConnectionTimeout: 1"} {
			if !strings.Contains(stacks[live], " "+line+"\n") {
				t.Errorf("the stack: got no line %q", line)
			}
		}
		// With tables, readers may learn that they can ask for parts.
		if strings.Contains(stacks[stored], "Header: Accept-Ranges") || !strings.Contains(stacks[live], "Header: Accept-Ranges") {
			t.Error("the stack: got Accept-Ranges removed where there are tables, or kept where there are none")
		}
	}
}

// The headers policy has the headers of every answer of the handler.
func TestCloudFrontPolicy(t *testing.T) {
	body, err := os.ReadFile(filepath.Join(render(t, "cloudfront", "https://bucket.example.org", "", ""), "cloudfront.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	stack := strings.ReplaceAll(string(body), `"`, "")
	said := http.Header{}
	for _, h := range append(site.EveryHeader(), site.Config{}.PreflightHeaders()...) {
		said.Set(h.Name, h.Value)
	}
	for property, name := range map[string]string{
		"AccessControlAllowHeaders": "Access-Control-Allow-Headers", "AccessControlAllowMethods": "Access-Control-Allow-Methods",
		"AccessControlAllowOrigins": "Access-Control-Allow-Origin", "AccessControlExposeHeaders": "Access-Control-Expose-Headers",
	} {
		if want := "          " + property + ":\n            Items: [" + said.Get(name) + "]\n"; !strings.Contains(stack, want) {
			t.Errorf("the policy lacks %s", want)
		}
	}
	if want := "AccessControlMaxAgeSec: " + said.Get("Access-Control-Max-Age") + "\n"; !strings.Contains(stack, want) {
		t.Errorf("the policy lacks %s", want)
	}
	_, removed, _ := strings.Cut(stack, "RemoveHeadersConfig")
	if n := strings.Count(removed, "- Header: "); n == 0 || n > 10 {
		t.Errorf("removed headers: got %d, want 1 to 10", n)
	}
}

func withDefaultsOf(t testing.TB, c site.Config) site.Config {
	t.Helper()
	c, err := c.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
