package report

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/site"
)

// TestPlain: texts are shown as in the shared cases, which the explorer also follows.
func TestPlain(t *testing.T) {
	t.Parallel()
	var cases []struct{ In, Prose, Name string }
	if err := json.Unmarshal(fixtures.Texts(), &cases); err != nil || len(cases) < 40 {
		t.Fatalf("got %d cases: %v", len(cases), err)
	}
	for _, c := range cases {
		if got := plain(c.In); string(got) != c.Name || got.String() != c.Name || Text(c.In).String() != c.Name {
			t.Errorf("%q: got %q, want %q", c.In, got, c.Name)
		}
	}
}

// TestTemplatesGetTexts: all texts that templates receive are Texts; other strings are our own constants.
func TestTemplatesGetTexts(t *testing.T) {
	t.Parallel()
	own := []reflect.Type{
		reflect.TypeFor[Text](), reflect.TypeFor[id](), reflect.TypeFor[class](), reflect.TypeFor[anchor](), reflect.TypeFor[site.Board](),
	}
	seen := map[reflect.Type]bool{}
	texts := 0
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		switch of.Kind() {
		case reflect.String:
			if texts++; !slices.Contains(own, of) {
				t.Errorf("%s is a %s, want a Text", path, of)
			}
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(path, of.Elem())
		case reflect.Map, reflect.Interface:
			t.Errorf("%s is a %s, whose texts this test cannot check", path, of)
		case reflect.Struct:
			if seen[of] {
				return
			}
			seen[of] = true
			for f := range of.Fields() {
				if of == reflect.TypeFor[namedStage]() && f.Name == "Stage" {
					continue // its name is the other field
				}
				walk(path+"."+f.Name, f.Type)
			}
		}
	}
	walk("report", reflect.TypeFor[view]())
	walk("run", reflect.TypeFor[runView]())
	walk("change", reflect.TypeFor[fromTo]())
	if texts < 30 {
		t.Errorf("found %d texts", texts)
	}
}
