package templates

import (
	"fmt"
	"maps"
	"regexp"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

var pathVariable = regexp.MustCompile(`\{(\w+)\}`)

// variables describes the variables in the patterns of routes.
var variables = map[string]map[string]any{
	"board": {"description": "which leaderboard", "schema": map[string]any{"type": "string", "enum": site.Config{}.Boards()}},
	"token_id": {"description": "identifier of a list, a canonical decimal",
		"schema": map[string]any{"type": "string", "pattern": "^(0|[1-9][0-9]{0,77})$"}},
	"user": {"description": "an address in any letter case, or a name", "schema": map[string]any{"type": "string"}},
}

// queryParameter describes a query parameter.
func queryParameter(rule site.ParamRule) map[string]any {
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
	return map[string]any{"description": rule.About, "schema": schema}
}

// OpenAPI returns the description of a site's API, an OpenAPI 3.1 document in JSON.
func OpenAPI(root *site.Root) ([]byte, error) {
	paths := map[string]any{}
	for _, r := range root.Config.Routes() {
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
			all = append(all, parameter(name[1], "path", variables[name[1]]))
		}
	}
	for _, p := range r.Params {
		all = append(all, parameter(string(p), "query", queryParameter(site.Params()[p])))
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

func parameter(name, in string, description map[string]any) map[string]any {
	p := map[string]any{"name": name, "in": in, "required": in == "path"}
	maps.Copy(p, description)
	return p
}
