package site_test

import (
	"slices"
	"testing"

	"github.com/followpress/followpress/site"
)

// Every rule of the table can be satisfied, and every parameter of a route has one.
func TestParams(t *testing.T) {
	used := map[site.Param]bool{}
	for _, r := range site.AllFeatures().Routes() {
		if !slices.IsSorted(r.Params) {
			t.Errorf("parameters of %s: got %v, want them sorted by name", r.Pattern, r.Params)
		}
		for _, p := range r.Params {
			used[p] = true
		}
	}
	equal(t, "parameters of the routes", len(used), len(site.Params()))
	for name, rule := range site.Params() {
		if !used[name] || rule.About == "" {
			t.Errorf("%s: got %+v, want a route that has it and a description", name, rule)
		}
		words := rule.Kind == site.ParamBool || rule.Kind == site.ParamChoice || rule.Kind == site.ParamWords
		if words != (len(rule.Values) > 0) || words && slices.Contains(rule.Values, rule.Neutral) || words && rule.Least+rule.Default+rule.Most != 0 {
			t.Errorf("%s: got %+v, want Values for ParamBool and ParamChoice alone, without Neutral", name, rule)
		}
		if rule.Kind == site.ParamNumber && (rule.Problem == nil) != (rule.Default < rule.Least) || rule.Kind == site.ParamText && (rule.Problem == nil || rule.Most == 0) {
			t.Errorf("%s: got %+v, want a problem, unless it has no default, and bounds", name, rule)
		}
	}
}
