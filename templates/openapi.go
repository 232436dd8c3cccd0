package templates

import (
	"fmt"
	"regexp"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

var pathVariable = regexp.MustCompile(`\{(\w+)\}`)

// parameters describes the variables and query parameters of the routes.
var parameters = map[string]struct {
	about  string
	schema map[string]any
}{
	"board":                       {"which leaderboard", map[string]any{"type": "string", "enum": site.Boards()}},
	"token_id":                    {"identifier of a list, a canonical decimal", map[string]any{"type": "string", "pattern": "^(0|[1-9][0-9]{0,77})$"}},
	"user":                        {"an address in any letter case, or a name", map[string]any{"type": "string"}},
	string(site.ParamLimit):       {"number of entries", map[string]any{"type": "integer", "minimum": 1, "default": site.DefaultLimit}},
	string(site.ParamOffset):      {"index of the first entry", map[string]any{"type": "integer", "minimum": 0, "default": 0}},
	string(site.ParamTerm):        {"part of an address or a name, letter case ignored", map[string]any{"type": "string"}},
	string(site.ParamIncludeTags): {"false leaves the tags out", map[string]any{"type": "boolean", "default": true}},
	string(site.ParamCache):       {"fresh asks for the newest data", map[string]any{"type": "string"}},
}

// OpenAPI is the description of a site's API (OpenAPI 3.1), as JSON.
func OpenAPI(root *site.Root) ([]byte, error) {
	paths := map[string]any{}
	for _, r := range site.Routes() {
		if r.UnderAPI() {
			paths[r.Path(root.Config)] = map[string]any{"get": operation(r)}
		}
	}
	body, err := json.MarshalIndentWithOption(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "Follow graph", "version": root.AsOf,
			"description": "Leaderboards, list records, list details, event badges and following search, read only.",
		},
		"paths": paths,
		"components": map[string]any{"schemas": map[string]any{"Problem": map[string]any{
			"type": "object", "description": "RFC 9457; response repeats detail",
			"required": []string{"type", "title", "status", "detail", "response"},
		}}},
	}, "", "  ", json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	return body, nil
}

func operation(r *site.Route) map[string]any {
	var all []any
	for _, name := range pathVariable.FindAllStringSubmatch(r.Pattern, -1) {
		if name[1] != "base" {
			all = append(all, parameter(name[1], "path"))
		}
	}
	for _, p := range r.Params {
		all = append(all, parameter(string(p), "query"))
	}
	problem := map[string]any{"description": "an error", "content": map[string]any{
		site.RouteError.Route().ContentType: map[string]any{"schema": map[string]any{"$ref": "#/components/schemas/Problem"}},
	}}
	return map[string]any{
		"summary": r.Summary, "parameters": all,
		"responses": map[string]any{
			"200": map[string]any{"description": r.Summary, "content": map[string]any{r.ContentType: map[string]any{}}},
			"4XX": problem, "5XX": problem,
		},
	}
}

func parameter(name, in string) map[string]any {
	p := parameters[name]
	return map[string]any{"name": name, "in": in, "required": in == "path", "description": p.about, "schema": p.schema}
}
