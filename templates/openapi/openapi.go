// Package openapi describes the API of a site, an OpenAPI document made from the tables of site: the operations here,
// the schemas of their answers in schema.go.
//
// The API may change in any release.
package openapi

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// apiVersion is the version of the two descriptions. It changes with the forms of answers, not with
// the data: an unchanged site keeps its description.
const apiVersion = "1.0.0"

var (
	pathVariable = regexp.MustCompile(`\{(\w+)\}`)
	reference    = regexp.MustCompile(`"` + refPrefix + `(\w+)"`)
)

// Describe returns the description of the API of a site with this configuration, an OpenAPI 3.1 document
// in JSON. It depends on nothing else. The error names a route that is not described.
func Describe(config site.Config) ([]byte, error) {
	paths, answers := map[string]map[string]any{}, answers(config)
	sections := map[string]bool{}
	for _, r := range config.Routes() {
		isData := r.ID == routes.DataFile || r.ID == routes.DataPackage
		if !r.UnderAPI() && !isData {
			continue
		}
		answer, ok := answers[r.ID]
		if !ok {
			return nil, fmt.Errorf("describe the API: templates/openapi/schema.go has no schema for %s", r.Pattern)
		}
		o, err := operation(config, r, answer)
		if err != nil {
			return nil, err
		}
		paths[r.Path(config)] = map[string]any{method(r): o}
		sections[Section(r)] = true
	}
	schemas, err := needed(paths, components(config))
	if err != nil {
		return nil, err
	}
	title, about := "Follow graph", "Leaderboards, list records, list details, event badges and following search, read only."
	if config.EFP() {
		title, about = "Follow graph, the whole read API", "Accounts, their lists, whom they follow and who follows them, tags, badges, leaderboards and recommendations, read only."
	}
	about += " Paths that answer GET also answer HEAD, and every path answers OPTIONS." +
		" Unknown parameters are ignored. The first value of a repeated parameter counts, unless its description differs."
	var tags []map[string]string
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		tags = append(tags, map[string]string{"name": name, "description": sectionTexts[name]})
	}
	body, err := json.MarshalWithOption(struct {
		OpenAPI    string              `json:"openapi"`
		Info       map[string]any      `json:"info"`
		Servers    []map[string]string `json:"servers"`
		Security   []any               `json:"security"`
		Tags       []map[string]string `json:"tags"`
		Paths      any                 `json:"paths"`
		Components map[string]any      `json:"components"`
	}{
		OpenAPI: "3.1.0",
		Info: map[string]any{
			"title": title, "version": apiVersion, "description": about,
			"contact": map[string]string{"name": "followpress", "url": "https://github.com/followpress/followpress"},
			"license": map[string]string{"name": "MIT", "identifier": "MIT"},
		},
		Servers:    []map[string]string{{"url": "/", "description": "the host of this document"}},
		Security:   []any{}, // no credentials
		Tags:       tags,
		Paths:      paths,
		Components: map[string]any{"schemas": schemas},
	}, json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	return body, nil
}

// needed returns those of all schemas that paths refer to, themselves or by way of others.
func needed(paths any, all map[string]schema) (map[string]json.RawMessage, error) {
	found := map[string]json.RawMessage{}
	for next := []any{paths}; len(next) > 0; next = next[1:] {
		text, err := json.MarshalWithOption(next[0], json.DisableHTMLEscape())
		if err != nil {
			return nil, fmt.Errorf("describe the API: %w", err)
		}
		for _, match := range reference.FindAllSubmatch(text, -1) {
			name := string(match[1])
			if _, ok := found[name]; ok {
				continue
			}
			s, ok := all[name]
			if !ok {
				return nil, fmt.Errorf("describe the API: no schema %s", name)
			}
			if found[name], err = json.MarshalWithOption(s, json.DisableHTMLEscape()); err != nil {
				return nil, fmt.Errorf("describe the API: schema %s: %w", name, err)
			}
			next = append(next, s)
		}
	}
	return found, nil
}

func method(r *site.Route) string {
	if r.Post {
		return "post"
	}
	return "get"
}

func operation(c site.Config, r *site.Route, answer schema) (map[string]any, error) {
	var parameters []any
	for _, name := range variables(r) {
		p, ok := pathParameter(c, name)
		if !ok {
			return nil, fmt.Errorf("describe the API: no description of the variable {%s} of %s", name, r.Pattern)
		}
		parameters = append(parameters, p)
	}
	for _, p := range r.Params {
		parameters = append(parameters, queryParameter(c, r, p))
	}
	o := map[string]any{
		"operationId": operationID(r), "summary": r.Summary, "description": answeredBy(r), "tags": []string{Section(r)},
		"responses": responses(r, answer),
	}
	if r.Ranges {
		parameters = append(parameters, map[string]any{"name": "Range", "in": "header", "description": "a part of the file, such as bytes=0-1023 or bytes=-8", "schema": text()})
	}
	if len(parameters) > 0 {
		o["parameters"] = parameters
	}
	if r.Post {
		o["requestBody"] = map[string]any{
			"description": fmt.Sprintf("addresses in any letter case, names, or nulls; at most %d bytes", site.MaxBatchBytes), "required": true,
			"content": content(r.ContentType, schema{"type": "array", "items": text().orNull(), "minItems": 1, "maxItems": site.MaxBatch}),
		}
	}
	return o, nil
}

// variables lists the variables of a path, without the base path.
func variables(r *site.Route) (names []string) {
	for _, match := range pathVariable.FindAllStringSubmatch(r.Pattern, -1) {
		if match[1] != "base" {
			names = append(names, match[1])
		}
	}
	return names
}

// operationID returns a name for functions: getUsersUserAccount.
func operationID(r *site.Route) string {
	id := method(r)
	for word := range strings.FieldsFuncSeq(strings.TrimPrefix(r.Pattern, "{base}"), func(c rune) bool { return strings.ContainsRune("/{}-_", c) }) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	if !r.UnderAPI() {
		id = strings.ReplaceAll(id, ".", "")
	}
	return id
}

// answeredBy describes whether a bucket alone answers the route.
func answeredBy(r *site.Route) string {
	switch {
	case r.Computed:
		return "A server, or the client library in a browser, computes the answer."
	case len(r.Params) > 0:
		return "Without parameters, the answer is a stored file. Otherwise a server, or the client library in a browser, computes the answer."
	}
	return "The answer is a stored file."
}

// sectionTexts describes the sections of endpoints.
var sectionTexts = map[string]string{
	"data":        "tables of the graph, for download",
	"graph":       "the whole graph",
	"leaderboard": "accounts by rank",
	"lists":       "one list",
	"users":       "one account",
}

// Section returns the group of endpoints that a route belongs to, a key of sectionTexts.
func Section(r *site.Route) string {
	if !r.UnderAPI() {
		return "data"
	}
	folder, _, more := strings.Cut(strings.TrimPrefix(r.Pattern, "{base}/"), "/")
	if !more || folder == "exportState" {
		return map[bool]string{true: "lists", false: "graph"}[more]
	}
	return folder
}

func content(contentType string, s schema) map[string]any {
	return map[string]any{contentType: map[string]any{"schema": s}}
}

func pathParameter(c site.Config, name string) (parameter map[string]any, ok bool) {
	const user = "an address in any letter case, or a name"
	described, ok := map[string]schema{
		"board":    {"description": "which leaderboard", "schema": schema{"type": "string", "enum": c.Boards()}},
		"token_id": {"description": "identifier of a list, a canonical decimal", "schema": tokenID()},
		"user":     {"description": user, "schema": text()},
		"other":    {"description": "the other account: " + user, "schema": text()},
		"data":     {"description": "a table, or a part of a large table", "schema": schema{"type": "string", "pattern": "^" + c.Expression("data") + "$"}},
	}[name]
	parameter = map[string]any{"name": name, "in": "path", "required": true}
	maps.Copy(parameter, described)
	return parameter, ok
}

// mostDigits is the largest number that the API reads.
const mostDigits = 999_999_999_999_999_999

// queryParameter describes a query parameter of a route. A schema has every value that is not answered
// with a problem.
func queryParameter(c site.Config, r *site.Route, p site.Param) map[string]any {
	rule := site.Params()[p]
	if r.ID == routes.Relationships && (p == site.ParamTag || p == site.ParamDirection) {
		return relationshipParameter(p)
	}
	described := map[string]any{"name": p, "in": "query"}
	about, s := rule.About, text()
	switch rule.Kind {
	case site.ParamNumber:
		if rule.Default < rule.Least {
			s["examples"] = []string{"1767225600"} // any other value is legal too
			about += "; any other value has no effect"
			break
		}
		byDefault := rule.Default
		if p == site.ParamLimit {
			var most int
			byDefault, most = c.Limits(r)
			about += ", at most " + strconv.Itoa(most) + "; a larger number means the maximum"
		}
		s = schema{"type": "integer", "minimum": rule.Least, "maximum": mostDigits, "default": byDefault}
	case site.ParamBool:
		s = schema{"type": "boolean", "default": rule.Neutral == "true"}
	case site.ParamChoice:
		s, about = choice(r, p)
	case site.ParamList:
		described["style"], described["explode"] = "form", false
		s, about = array(text()), about+", separated by commas; empty means all"
	case site.ParamWords:
		described["style"], described["explode"] = "form", true
		s = array(schema{"type": "string", "examples": rule.Values})
		about += "; repeated or separated by commas; other values have no effect"
	case site.ParamExact:
		about += "; empty means all"
	case site.ParamUser:
		s["minLength"] = 1
	case site.ParamText:
		s["maxLength"] = rule.Most // in code points: no more of them than bytes
		about += ", at most " + strconv.Itoa(rule.Most) + " bytes"
	}
	described["description"], described["schema"] = about, s
	return described
}

// choice describes a site.ParamChoice of a route.
func choice(r *site.Route, p site.Param) (s schema, about string) {
	rule := site.Params()[p]
	words, about, s := rule.Values, rule.About, text()
	switch p {
	case site.ParamSort:
		words = sorts(r)
	case site.ParamDirection:
		words = []string{rule.AnyCaseOf}
	}
	if rule.Problem != nil {
		s["enum"] = append([]string{rule.Neutral}, words...)
		return s, about
	}
	if rule.Neutral != "" {
		words = append([]string{rule.Neutral}, words...)
	}
	s["examples"] = words // any other value is legal too
	if p == site.ParamSort || rule.Neutral != "" {
		about += ": " + words[0] + " by default, " + strings.Join(words[1:], ", ")
	}
	if rule.AnyCase || rule.AnyCaseOf != "" {
		about += ", in any letter case"
	}
	return s, about + "; any other value has no effect"
}

// relationshipParameter describes a parameter that relationships require.
func relationshipParameter(p site.Param) map[string]any {
	s, about := text(), "only entries with exactly this tag"
	s["minLength"] = 1
	if p == site.ParamDirection {
		s = text()
		s["enum"] = []string{"in", "incoming", "out", "outgoing"}
		about = "in or incoming: accounts whose primary lists hold the user; out or outgoing: accounts on the user's list"
	}
	return map[string]any{"name": p, "in": "query", "required": true, "description": about, "schema": s}
}

// sorts lists the orders of a route, the default first.
func sorts(r *site.Route) []string {
	if r.ID == routes.Ranked || r.ID == routes.RankedAll {
		return append([]string{"mutuals"}, append(site.RankedSorts(), "blocked")...)
	}
	return []string{"latest", "earliest", "followers"}
}

// responses describes the answers of a route by status.
func responses(r *site.Route, answer schema) map[string]any {
	ok := map[string]any{"description": r.Summary, "content": content(r.ContentType, answer)}
	all := map[string]any{"200": ok}
	if slices.Contains(r.Params, site.ParamCache) {
		ok["headers"] = refreshHeaders()
	}
	if r.Redirect {
		all = map[string]any{
			"302": map[string]any{"description": r.Summary, "headers": map[string]any{
				"Location": map[string]any{"description": "the URL of the picture", "schema": schema{"type": "string", "format": "uri"}},
			}},
			// Linters require a success or a default.
			"default": problemResponse("any other error"),
		}
	} else if !r.Post {
		all["304"] = map[string]any{"description": "the answer has not changed: If-None-Match names its ETag"}
	}
	if r.Ranges {
		all["206"] = map[string]any{"description": "the requested part; If-Range, if sent, names the current file", "content": ok["content"], "headers": map[string]any{
			"Content-Range": map[string]any{"description": "the bytes of the part, and the size of the file", "schema": text()},
		}}
		all["416"] = map[string]any{"description": "the requested part is outside of the file"}
	}
	details := map[int][]string{}
	for _, p := range problems(r) {
		if !slices.Contains(details[p.Status], p.Detail) {
			details[p.Status] = append(details[p.Status], p.Detail)
		}
	}
	for status, texts := range details {
		all[strconv.Itoa(status)] = problemResponse(strings.Join(texts, " "))
	}
	return all
}

func problemResponse(about string) map[string]any {
	return map[string]any{"description": about, "content": content(site.RouteBy(routes.Error).ContentType, ref("Problem"))}
}

// refreshHeaders describes the headers of an answer to cache=fresh that is the stored one.
func refreshHeaders() map[string]any {
	why := text()
	why["enum"] = []string{"failed", "limited", "unavailable"}
	return map[string]any{
		"X-Refresh": map[string]any{"schema": why, "description": "why cache=fresh got the stored answer: " +
			"the source failed, the limit of refreshes was reached (strict servers answer 429), or there is no source"},
		"Retry-After": map[string]any{"schema": schema{"type": "integer", "minimum": 1}, "description": "with limited: seconds until the next refresh"},
	}
}

// problems lists the problems that may answer a request to a route.
func problems(r *site.Route) []*site.Problem {
	all := []*site.Problem{site.InternalError, site.Unavailable}
	for _, name := range variables(r) {
		all = append(all, map[string][]*site.Problem{
			"board": {site.NoSuchRoute}, "token_id": {site.BadTokenID, site.NoSuchList}, "user": {site.NoSuchName}, "other": {site.NoSuchName}, "data": {site.NoSuchRoute},
		}[name]...)
	}
	for _, p := range r.Params {
		if problem := site.Params()[p].Problem; problem != nil {
			all = append(all, problem)
		}
		switch p {
		case site.ParamLeader:
			all = append(all, site.NoSuchName)
		case site.ParamCache:
			all = append(all, site.TooManyRefreshes)
		}
	}
	switch r.ID {
	case routes.Relationships:
		all = append(all, site.BadRelationships)
	case routes.UserAvatar:
		all = append(all, site.NoAvatar)
	}
	if r.Post {
		return append(all, site.PostOnly, site.BadBatch, site.BodyTooLarge)
	}
	return append(all, site.MethodNotAllowed)
}
