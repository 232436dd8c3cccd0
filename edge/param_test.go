package edge

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates/openapi"
)

var badOrder = &site.Problem{Name: "bad-order", Status: 400, Detail: "The order must be rank, name or a/b.", CacheControl: "public, max-age=60"}

// MadeUp are invented parameters, one of every kind.
var MadeUp = map[site.Param]site.ParamRule{
	"about": {Kind: site.ParamText, About: "made-up text", Problem: site.BadTerm, Most: 20},
	"order": {Kind: site.ParamChoice, About: "made-up choice", Problem: badOrder, Values: []string{"name", "a/b"}, Neutral: "rank"},
	"since": {Kind: site.ParamNumber, About: "made-up number", Problem: site.BadLimit, Least: 3, Default: 7, Most: 5000},
	"whole": {Kind: site.ParamBool, About: "made-up truth", Problem: site.BadIncludeTags, Values: []string{"true"}, Neutral: "false"},
}

// AddParam adds a parameter to the tables of site while a test runs, and to every route of the API.
// The test must not run in parallel with others.
func AddParam(t testing.TB, name site.Param) {
	t.Helper()
	site.Params()[name] = MadeUp[name]
	t.Cleanup(func() { delete(site.Params(), name) })
	for _, r := range (site.Config{}).Routes() {
		if before := r.Params; r.UnderAPI() {
			r.Params = append(slices.Clone(before), name)
			slices.Sort(r.Params)
			t.Cleanup(func() { r.Params = before })
		}
	}
}

// Adding a parameter to the tables of site is enough to have it parsed, described and in
// every configuration. Only the code that uses it is elsewhere.
func TestNewParameter(t *testing.T) {
	const details, board = "/api/v1/lists/1/details", "/api/v1/leaderboard/followers"
	type want struct {
		forward string
		problem *site.Problem
	}
	requests := map[site.Param]map[string]want{
		"about": {
			details + "?about=+FOX": {forward: details + "?about=fox"}, details + "?about=+": {},
			details + "?about=" + strings.Repeat("x", 21): {problem: site.BadTerm}, board + "?limit=5&about=x": {forward: board + "?about=x&limit=5"},
		},
		"order": {
			details + "?order=a%2fb": {forward: details + "?order=a%2Fb"}, details + "?order=rank": {},
			details + "?order=size": {problem: badOrder}, board + "?order=name": {forward: board + "?order=name"},
		},
		"since": {
			details + "?since=9999&cache=fresh": {forward: details + "?cache=fresh&since=5000"}, details + "?since=007": {},
			details + "?since=2": {problem: site.BadLimit}, board + "?since=03": {forward: board + "?since=3"},
		},
		"whole": {
			details + "?whole=true": {forward: details + "?whole=true"}, details + "?whole=false": {},
			details + "?whole=1": {problem: site.BadIncludeTags}, board + "?limit=5&whole=false": {},
		},
	}
	rendered := map[Kind][2]string{ // a file, and its text for a parameter
		Nginx: {"followpress.js", `"NAME":{"legal"`}, Worker: {"worker.js", `"NAME":{"legal"`},
		CloudFront: {"cloudfront.yaml", "\n              - NAME\n"},
		Caddy:      {"Caddyfile", "import followpress_fallback"}, // where every query but a limit goes
	}
	config, err := site.Config{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for name, rule := range MadeUp {
		t.Run(string(name), func(t *testing.T) {
			AddParam(t, name)
			for request, want := range requests[name] {
				path, query, _ := strings.Cut(request, "?")
				if got, forward := AtEdge(config, "GET", path, query); forward != want.forward || got.Problem != want.problem {
					t.Errorf("%s: got forward %q, problem %v, want %q, %v", request, forward, got.Problem, want.forward, want.problem)
				}
			}
			api, err := openapi.Describe(config)
			if err != nil {
				t.Fatal(err)
			}
			if got := bytes.Count(api, []byte(`"description":"`+rule.About)); got != 6 {
				t.Errorf("description of the API: got %d routes with the parameter, want 6", got)
			}
			for _, kind := range Kinds() {
				files, err := Render(kind, Options{Config: config, Bucket: "http://bucket", Fallback: "http://fallback"})
				if err != nil {
					t.Fatal(err)
				}
				text := strings.ReplaceAll(rendered[kind][1], "NAME", string(name))
				if !slices.ContainsFunc(files, func(f File) bool { return f.Name == rendered[kind][0] && bytes.Contains(f.Body, []byte(text)) }) {
					t.Errorf("%s: got no %q in %s", kind, text, rendered[kind][0])
				}
			}
			random := rand.New(rand.NewPCG(1, 2))
			for _, r := range []*resolver{newResolver(t, config, true, false), newResolver(t, config, false, true)} {
				for range 500 {
					method, path, query := randomRequest(random, config)
					value := pick(random, "", "2", "7", "0008", "9999", "name", "a/b", "rank", "true", "false", "+FOX", strings.Repeat("y", 21))
					r.check(t, method, path, query+"&"+string(name)+"="+value)
				}
			}
		})
	}
}
