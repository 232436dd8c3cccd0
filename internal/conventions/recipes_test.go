package conventions

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// TestRouteRecipe names, in one line, the first step of the recipe "Add a route" that a route
// lacks.
func TestRouteRecipe(t *testing.T) {
	text := func(file string) string {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	ids := regexp.MustCompile(`(?m)^\t([A-Z]\w+)(?: ID = iota)?$`).FindAllStringSubmatch(text("site/routes/routes.go"), -1)
	all := site.AllFeatures()
	if n := len(all.Routes()); n != len(ids) {
		t.Fatalf("site/table.go: got %d routes, want a row for each of the %d of site/routes/routes.go", n, len(ids))
	}
	const schemas, computes, twin, script = "templates/openapi/schema.go", "server/internal/answer/answer.go", "internal/twin/naive/endpoints.go", "client/followpress.js"
	needs := func(r *site.Route, file, word string) {
		if !regexp.MustCompile(`(?:^|\W)` + regexp.QuoteMeta(word) + `(?:\W|$)`).MatchString(text(file)) {
			t.Fatalf("%s: lacks %s of the route %s", file, word, r.Pattern)
		}
	}
	whole, spec := site.Config{API: site.APIEFP}, site.Config{}
	var endpoints []*site.Route
	for _, r := range all.Routes() {
		if !r.UnderAPI() {
			continue
		}
		endpoints = append(endpoints, r)
		id := "routes." + ids[r.ID][1]
		needs(r, schemas, id)
		if r.Computed {
			needs(r, computes, id)
		}
		if r.ID != routes.Leaderboard { // one row per board
			path := strings.NewReplacer("{base}/", "", "{user}", "{u}", "{token_id}", "{id}", "{other}", "{v}").Replace(r.Pattern)
			needs(r, twin, `"`+path+`"`)
			words := regexp.MustCompile(`[\w.-]+`).FindAllString(strings.TrimSuffix(path, "/{id}"), -1)
			needs(r, script, words[len(words)-1])
		}
		needs(r, "docs/api-efp.md", strings.TrimPrefix(r.Pattern, "{base}"))
	}
	for _, config := range []*site.Config{&whole, &spec} {
		with, err := config.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		*config = with
	}
	seen := keysOfRoutes(t, whole)
	for _, r := range endpoints {
		if slices.Contains(whole.Routes(), r) && !r.Computed && !seen[r] {
			t.Fatalf("generator/render: the site of the demo has no object of %s", r.Pattern)
		}
	}
	for file, suite := range map[string]struct {
		config site.Config
		cases  func() ([]fixtures.Case, error)
	}{"fixtures/conformance/cases.ndjson": {spec, fixtures.Cases}, "fixtures/conformance-efp/cases.ndjson": {whole, fixtures.CasesEFP}} {
		cases, err := suite.cases()
		if err != nil {
			t.Fatal(err)
		}
		tried := map[*site.Route]bool{}
		for _, c := range cases {
			path, query, _ := strings.Cut(c.Path, "?")
			tried[suite.config.Resolve(c.Method, path, query).Route] = true
		}
		for _, r := range endpoints {
			if slices.Contains(suite.config.Routes(), r) && !tried[r] {
				t.Fatalf("%s: lacks a case of %s", file, r.Pattern)
			}
		}
	}
}

// keysOfRoutes generates the demo's site, and returns the routes that have objects.
func keysOfRoutes(t *testing.T, config site.Config) map[*site.Route]bool {
	t.Helper()
	folder := t.TempDir()
	if _, err := generator.ToPath(context.Background(), afero.FromIOFS{FS: fixtures.Demo()}, filepath.Join(folder, "site"), generator.Options{Config: config, NoSync: true}); err != nil {
		t.Fatalf("generator/render: %v; a route without Computed needs a renderer, and a case in internal/whole/find.go unless below users or lists", err)
	}
	seen := map[*site.Route]bool{}
	err := fs.WalkDir(os.DirFS(filepath.Join(folder, "site")), ".", func(path string, _ fs.DirEntry, err error) error {
		if r, ok := config.RouteOf(site.Key(path)); ok {
			seen[r] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}
