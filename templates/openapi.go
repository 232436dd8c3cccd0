package templates

import (
	"fmt"
	"regexp"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

var pathVariable = regexp.MustCompile(`\{(\w+)\}`)

// variables describes the variables in the patterns of routes.
var variables = map[string]parameter{
	"board":    {"which leaderboard", map[string]any{"type": "string", "enum": site.Boards()}},
	"token_id": {"identifier of a list, a canonical decimal", map[string]any{"type": "string", "pattern": "^(0|[1-9][0-9]{0,77})$"}},
	"user":     {"an address in any letter case, or a name", map[string]any{"type": "string"}},
}

type parameter struct {
	about  string
	schema map[string]any
}

// queryParameter describes a query parameter.
func queryParameter(rule site.ParamRule) parameter {
	schema := map[string]any{"type": "string"}
	switch rule.Kind {
	case site.ParamNumber:
		schema = map[string]any{"type": "integer", "minimum": rule.Least, "default": rule.Default}
	case site.ParamBool:
		schema = map[string]any{"type": "boolean", "default": rule.Neutral == "true"}
	case site.ParamChoice:
		if rule.Problem != nil { // else any other value is legal too
			schema["enum"] = append([]string{rule.Neutral}, rule.Values...)
		}
	}
	return parameter{rule.About, schema}
}

// OpenAPI returns the description of a site's API, an OpenAPI 3.1 document in JSON.
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
			all = append(all, variables[name[1]].describe(name[1], "path"))
		}
	}
	for _, p := range r.Params {
		all = append(all, queryParameter(site.Params()[p]).describe(string(p), "query"))
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

func (p parameter) describe(name, in string) map[string]any {
	return map[string]any{"name": name, "in": in, "required": in == "path", "description": p.about, "schema": p.schema}
}
