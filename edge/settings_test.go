package edge_test

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/settings"
)

// A change of any setting of a site changes the digest exactly when it changes the files of an edge.
func TestSettings(t *testing.T) {
	base, err := site.AllFeatures().WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	files := func(c site.Config) (all string) {
		for _, kind := range edge.Kinds() {
			all += fmt.Sprint(renderAll(t, kind, edge.Options{Config: c, Bucket: "http://bucket", Fallback: "http://fallback"}))
		}
		return strings.ReplaceAll(all, settings.Digest(c), "")
	}
	for _, kind := range edge.Kinds() {
		all := renderAll(t, kind, edge.Options{Config: base, Bucket: "http://bucket", Fallback: "http://fallback"})
		for _, name := range map[edge.Kind][]string{edge.Nginx: {"followpress.conf", "followpress.js"}, edge.Caddy: {"Caddyfile"}, edge.CloudFront: {"cloudfront.yaml"}, edge.Worker: {"worker.js"}}[kind] {
			if !strings.Contains(all[name], settings.Digest(base)) {
				t.Errorf("%s: got no digest of the settings, want it for every answer", name)
			}
		}
	}
	was := files(base)
	texts := map[string]string{"Names": site.NamesLookup, "Tags": "cloudflare"}
	for i, field := range reflect.VisibleFields(reflect.TypeFor[site.Config]()) {
		for _, number := range []int64{0, 77} {
			changed := base
			switch v := reflect.ValueOf(&changed).Elem().Field(i); v.Kind() {
			case reflect.Bool:
				v.SetBool(!v.Bool())
			case reflect.String:
				v.SetString(cmp.Or(texts[field.Name], "other"))
			default:
				v.SetInt(number)
			}
			if field.Name == "API" { // the other features need this one
				changed = siteConfig(t)
			}
			want := files(changed) != was
			if got := settings.Digest(changed) != settings.Digest(base); got != want {
				t.Errorf("%s = %v: the digest changes: got %v, want %v", field.Name, reflect.ValueOf(changed).Field(i), got, want)
			}
		}
	}
}
