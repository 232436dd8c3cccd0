package openapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/templates/openapi"
)

// apis are configurations of both APIs.
func apis(t testing.TB) map[string]site.Config {
	t.Helper()
	all := map[string]site.Config{}
	for name, config := range map[string]site.Config{
		"spec": {}, "efp with operations": {API: site.APIEFP, HistoryWindow: site.Window(site.DefaultHistoryWindow)}, "efp": {API: site.APIEFP}, "efp, other choices": {API: site.APIEFP, BasePath: "v2/x", BadgesField: "b<&>", LeaderboardMax: 20},
	} {
		config, err := config.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		all[name] = config
	}
	return all
}

func init() {
	openapi3filter.RegisterBodyDecoder(site.RouteBy(routes.UserQR).ContentType, openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/atom+xml", openapi3filter.FileBodyDecoder)
}

// A description is the description of an API, as a library reads it.
type description struct {
	config site.Config
	text   []byte
	doc    *openapi3.T
}

func describe(t testing.TB, config site.Config) description {
	t.Helper()
	text, err := openapi.Describe(config)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatalf("the library refuses the description: %v", err)
	}
	return description{config, text, doc}
}

// check compares an answer with its schema. A nil error means that it has the form that is described.
func (d description) check(r *site.Route, status int, contentType string, body []byte) error {
	path := d.doc.Paths.Value(r.Path(d.config))
	if path == nil {
		return errors.New("the path is not described")
	}
	method, operation := http.MethodGet, path.Get
	if r.Post {
		method, operation = http.MethodPost, path.Post
	}
	request := httptest.NewRequest(method, "/", nil)
	return openapi3filter.ValidateResponse(request.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: request, Route: &routers.Route{Spec: d.doc, Path: r.Path(d.config), PathItem: path, Method: method, Operation: operation},
		},
		Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
}

// routeOf returns the route of a path, nil for none.
func (d description) routeOf(path, query string) *site.Route {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if r := d.config.Resolve(method, path, query); r.Route != nil {
			return r.Route
		}
	}
	return nil
}

// TestOpenAPI: the description is valid, names every endpoint uniquely, and does not depend on the
// data.
func TestOpenAPI(t *testing.T) {
	for name, config := range apis(t) {
		t.Run(name, func(t *testing.T) {
			d := describe(t, config)
			if d.doc.OpenAPI != "3.1.0" {
				t.Errorf("version: got %s, want 3.1.0", d.doc.OpenAPI)
			}
			if again := describe(t, config); !bytes.Equal(again.text, d.text) {
				t.Error("the description of an unchanged configuration changes")
			}
			ids, endpoints := map[string]bool{}, 0
			for _, r := range config.Routes() {
				if !r.UnderAPI() {
					continue
				}
				endpoints++
				path := d.doc.Paths.Value(r.Path(config))
				if path == nil {
					t.Errorf("%s: not described", r.Pattern)
					continue
				}
				operation := path.Get
				if r.Post {
					operation = path.Post
				}
				if len(path.Operations()) != 1 || operation == nil || ids[operation.OperationID] || operation.Summary == "" {
					t.Errorf("%s: got %v, want one operation with a summary and an id of its own", r.Pattern, path.Operations())
					continue
				}
				ids[operation.OperationID] = true
				refreshes := slices.Contains(r.Params, site.ParamCache)
				if ok := operation.Responses.Value("200"); ok != nil && (ok.Value.Headers["X-Refresh"] != nil) != refreshes ||
					refreshes && !slices.Contains(ok.Value.Headers["X-Refresh"].Value.Schema.Value.Enum, any("limited")) {
					t.Errorf("%s: got the headers %v, want X-Refresh where cache=fresh refreshes (%v)", r.Pattern, ok.Value.Headers, refreshes)
				}
				for _, p := range r.Params {
					if got := operation.Parameters.GetByInAndName("query", string(p)); got == nil || got.Description == "" || got.Schema == nil {
						t.Errorf("%s: the parameter %s is not described", r.Pattern, p)
					}
				}
				if got, want := len(operation.Parameters), len(r.Params)+strings.Count(r.Pattern, "{")-1; got != want {
					t.Errorf("%s: got %d parameters, want %d", r.Pattern, got, want)
				}
				byDefault, most := config.Limits(r)
				if limit := operation.Parameters.GetByInAndName("query", "limit"); limit != nil &&
					(fmt.Sprint(limit.Schema.Value.Default) != fmt.Sprint(byDefault) || !strings.Contains(limit.Description, fmt.Sprint("at most ", most))) {
					t.Errorf("%s: got the limit %v, %q, want %d and at most %d", r.Pattern, limit.Schema.Value.Default, limit.Description, byDefault, most)
				}
			}
			if config.Data {
				endpoints += 2
			}
			if d.doc.Paths.Len() != endpoints {
				t.Errorf("got %d paths, want the %d endpoints", d.doc.Paths.Len(), endpoints)
			}
			for name := range d.doc.Components.Schemas {
				if !bytes.Contains(d.text, []byte(`"#/components/schemas/`+name+`"`)) {
					t.Errorf("the schema %s is not used", name)
				}
			}
		})
	}
}

// TestOpenAPITables: the description of a site with tables has their files, of which parts can be read, and no other has.
func TestOpenAPITables(t *testing.T) {
	for name, config := range apis(t) {
		for _, has := range []bool{false, true} {
			config.Data = has
			doc := describe(t, config).doc
			files, about := doc.Paths.Value("/_data/{data}.parquet"), doc.Paths.Value("/_data/datapackage.json")
			if (files != nil) != has || (about != nil) != has {
				t.Errorf("%s, data %v: got %v and %v, want both or none", name, has, files, about)
			}
			if !has {
				continue
			}
			of := files.Get
			if of.OperationID != "getDataDataparquet" || of.Parameters.GetByInAndName("path", "data") == nil || of.Parameters.GetByInAndName("header", "Range") == nil ||
				of.Responses.Value("206") == nil || of.Responses.Value("416") == nil || about.Get.Responses.Value("206") != nil {
				t.Errorf("%s: got %+v, want a Range parameter for tables only", name, of)
			}
		}
	}
}

// TestOpenAPIHasTheForms: whatever the suites answer has the form that is described.
func TestOpenAPIHasTheForms(t *testing.T) {
	for name, suite := range map[string]struct {
		config site.Config
		cases  func() ([]fixtures.Case, error)
	}{"spec": {site.Config{}, fixtures.Cases}, "efp": {site.Config{API: site.APIEFP}, fixtures.CasesEFP}} {
		t.Run(name, func(t *testing.T) {
			config, err := suite.config.WithDefaults()
			if err != nil {
				t.Fatal(err)
			}
			d := describe(t, config)
			cases, err := suite.cases()
			if err != nil {
				t.Fatal(err)
			}
			seen := map[routes.ID]bool{}
			for _, c := range cases {
				if c.Method == http.MethodHead || c.Method == http.MethodOptions {
					continue // answered without a body
				}
				path, query, _ := strings.Cut(c.Path, "?")
				route := d.routeOf(path, query)
				if route == nil || !route.UnderAPI() {
					continue
				}
				contentType, body := route.ContentType, []byte(c.Body)
				if c.Status == http.StatusOK || c.Status == http.StatusFound {
					seen[route.ID] = true
				} else {
					contentType, body = "application/problem+json", problem(t, config, c.Status).Body()
				}
				if err := d.check(route, c.Status, contentType, body); err != nil {
					t.Errorf("%s %s: %v", c.Method, c.Path, err)
				}
			}
			for _, r := range config.Routes() {
				if r.UnderAPI() && !seen[r.ID] {
					t.Errorf("%s: no conformance case has an answer of this schema", r.Pattern)
				}
			}
		})
	}
}

// problem returns a problem with this status.
func problem(t *testing.T, config site.Config, status int) *site.Problem {
	t.Helper()
	for _, p := range config.Problems() {
		if p.Status == status {
			return p
		}
	}
	t.Fatalf("no problem has the status %d", status)
	return nil
}

// TestOpenAPIHasTheFormsOfRandomAnswers does the same with random graphs, and expects answers to be refused that are
// wrong in one place.
func TestOpenAPIHasTheFormsOfRandomAnswers(t *testing.T) {
	config, err := site.Config{API: site.APIEFP, HistoryWindow: site.Window(site.DefaultHistoryWindow)}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	d := describe(t, config)
	answers := map[int]int{}
	for seed := range uint64(servers.Rounds(2, 3)) {
		graph, err := naive.Load(naive.Random(seed), naive.Config{HistoryWindow: site.DefaultHistoryWindow})
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(seed, 1))
		for _, r := range naive.Requests(random, graph, 300) {
			route := d.routeOf(r.Path, r.RawQuery)
			if route == nil || r.Method == http.MethodHead {
				continue
			}
			status, contentType, body := graph.Answer(r.Method, r.Path, r.RawQuery, r.Body)
			if err := d.check(route, status, contentType, body); err != nil {
				t.Errorf("seed %d, %s: %v", seed, r, err)
				continue
			}
			answers[status]++
			if !json.Valid(body) {
				continue // a picture, or a feed
			}
			wrong, what := spoil(t, random, body)
			if d.check(route, status, contentType, wrong) == nil {
				t.Errorf("seed %d, %s: %s: got no error, want one: %.500s", seed, r, what, wrong)
			}
		}
	}
	if answers[200] < 300 || answers[400] == 0 || answers[404] == 0 || answers[405] == 0 {
		t.Errorf("got answers by status %v, want many", answers)
	}
}

// TestOpenAPIIsStrict: values of the right type may have the wrong form.
func TestOpenAPIIsStrict(t *testing.T) {
	d := describe(t, apis(t)["efp"])
	const record = `{"version":1,"record_type":"address","data":"0x2424242424242424242424242424242424242424","address":"0x2424242424242424242424242424242424242424","tags":["a"]}`
	for _, c := range []struct {
		route         routes.ID
		answer        string
		before, after string // what makes it wrong
	}{
		{routes.UserFollowing, `{"following":[` + record + `]}`, `"address":"0x24`, `"address":"0X24`},
		{routes.UserFollowing, `{"following":[` + record + `]}`, `"version":1`, `"version":2`},
		{routes.ListSearch, `{"following":[]}`, `[]`, `[` + record + `]`}, // without a name
		{routes.UserLists, `{"primary_list":null,"lists":["7"]}`, `"7"`, `"07"`},
		{routes.UserLists, `{"primary_list":null,"lists":["7"]}`, `"7"`, `null`},
		{routes.ListStats, `{"followers_count":1,"following_count":2}`, `2`, `-2`},
		{routes.RankedCount, `{"leaderboardCount":"12"}`, `"12"`, `12`},
		{routes.Ranked, `{"last_updated":"2026-01-01T00:00:00.000Z","results":[]}`, `.000`, ``},
		{routes.UserENS, `{"ens":{"name":null,"address":"0x2424242424242424242424242424242424242424","avatar":null,"records":null,"updated_at":null}}`, `"avatar":null`, `"avatar":""`},
		{routes.UserENS, `{"ens":{"name":"a.eth","address":"0x2424242424242424242424242424242424242424","avatar":"","records":{"url":"x"},"updated_at":"2026-01-01T00:00:00.000Z"}}`, `"url":"x"`, `"url":7`},
		{routes.Leaderboard, `[{"rank":1,"address":"0x2424242424242424242424242424242424242424","mutes_count":"1"}]`, `mutes_count`, `mute_count`},
		{routes.ButtonStateBatch, `[{"token_id":"1","address":"x","state":null,"error":"no"}]`, `,"error":"no"`, ``},
		{routes.ListFollowingAddresses, `[]`, `[]`, `{}`},
	} {
		if err := d.check(site.RouteBy(c.route), 200, "application/json", []byte(c.answer)); err != nil {
			t.Errorf("%s: %v", c.answer, err)
		}
		wrong := strings.Replace(c.answer, c.before, c.after, 1)
		if d.check(site.RouteBy(c.route), 200, "application/json", []byte(wrong)) == nil {
			t.Errorf("%s: got no error, want one", wrong)
		}
	}
}

// spoil makes an answer wrong in one place: a member is missing, unknown, or of another type.
func spoil(t *testing.T, random *rand.Rand, body []byte) (wrong []byte, what string) {
	t.Helper()
	var answer any
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	objects := objectsOf(answer)
	if len(objects) == 0 {
		return []byte(`{"unknown":1}`), "another answer"
	}
	o := objects[random.IntN(len(objects))]
	name := slices.Sorted(maps.Keys(o))[random.IntN(len(o))]
	mayMiss := slices.Contains([]string{"tags", "ens"}, name) // in some objects
	switch kind := random.IntN(3); {
	case kind == 0:
		o["unknown"], what = 1, "an unknown member"
	case kind == 1 || mayMiss:
		o[name], what = []any{0.5}, name+" of another type"
	default:
		delete(o, name)
		what = "no " + name
	}
	wrong, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return wrong, what
}

// objectsOf lists the objects in a value, except objects with members chosen by anybody.
func objectsOf(value any) (all []map[string]any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			all = append(all, objectsOf(item)...)
		}
	case map[string]any:
		all = append(all, value)
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if _, isObject := value[name].(map[string]any); !isObject || !slices.Contains([]string{"records", "chains", "errors"}, name) {
				all = append(all, objectsOf(value[name])...)
			}
		}
	}
	return all
}
