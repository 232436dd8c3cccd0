package edge_test

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/settings"
)

func renderAll(t testing.TB, kind edge.Kind, o edge.Options) map[string]string {
	t.Helper()
	files, err := edge.Render(kind, o)
	if err != nil {
		t.Fatalf("render %s: %v", kind, err)
	}
	all := map[string]string{}
	for _, f := range files {
		all[f.Name] = string(f.Body)
	}
	return all
}

// Operators and their scripts know the files by name.
func TestFiles(t *testing.T) {
	want := map[edge.Kind][]string{
		edge.Nginx: {"followpress.conf", "followpress.js"}, edge.Caddy: {"Caddyfile"},
		edge.CloudFront: {"cloudfront.yaml", "function.js"}, edge.Worker: {"worker.js", "wrangler.toml"},
	}
	if got := edge.Kinds(); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Errorf("kinds: got %v, want those of %v", got, want)
	}
	for kind, names := range want {
		files := renderAll(t, kind, edge.Options{Config: siteConfig(t), Bucket: "http://bucket"})
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, names) {
			t.Errorf("files of %s: got %v, want %v", kind, got, names)
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	for _, c := range []struct {
		kind edge.Kind
		o    edge.Options
		want string
	}{
		{"apache", edge.Options{Bucket: "http://bucket"}, "unknown kind"},
		{edge.Nginx, edge.Options{}, "--bucket-url="},
		{edge.Nginx, edge.Options{Bucket: "ftp://bucket"}, "--bucket-url="},
		{edge.Nginx, edge.Options{Bucket: "http://bucket;}"}, "--bucket-url="},
		{edge.Nginx, edge.Options{Bucket: "http://bucket", Fallback: "fallback"}, "--fallback-url="},
		{edge.Nginx, edge.Options{Bucket: "http://bucket", Fallback: "http://fallback", Live: "http://live/?x"}, "--live-url"},
		{edge.Nginx, edge.Options{Bucket: "http://bucket", Live: "http://live"}, "--live-url: needs --fallback-url"},
		{edge.CloudFront, edge.Options{Bucket: "http://bucket", Config: site.Config{BasePath: strings.Repeat("x", 500)}}, "shorter base path, or fewer parameters"},
		{edge.Nginx, edge.Options{Bucket: "http://bucket", Listen: "a;b"}, "--listen"},
		{edge.Caddy, edge.Options{Bucket: "http://bucket", Listen: "8080 {"}, "--listen"},
		{edge.Nginx, edge.Options{Bucket: "http://bucket", CacheDir: "/cache; include x"}, "--cache-dir"},
		{edge.Nginx, edge.Options{Bucket: "http://bucket", CacheDir: "/cache\n"}, "--cache-dir"},
		{edge.Nginx, edge.Options{Bucket: "http://bucket", CacheSize: "10 g"}, "--cache-size"},
	} {
		if c.o.Config.BasePath == "" {
			c.o.Config = siteConfig(t)
		}
		if _, err := edge.Render(c.kind, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("render %s with %+v: got %v, want an error with %q", c.kind, c.o, err, c.want)
		}
	}
}

// Only addresses and networks get into a configuration.
func TestPurgeFromIsChecked(t *testing.T) {
	for _, from := range []string{"", "example.org", "10.0.0.0/33", "10.0.0.1; allow all", "fe80::1%eth0", "127.0.0.1/"} {
		_, err := edge.Render(edge.Nginx, edge.Options{Config: siteConfig(t), Bucket: "http://bucket", PurgeFrom: []string{from}})
		if err == nil || !strings.Contains(err.Error(), "--purge-from=") {
			t.Errorf("purge from %q: got %v, want an error", from, err)
		}
	}
	o := edge.Options{Config: siteConfig(t), Bucket: "http://bucket", PurgeFrom: []string{"10.1.2.3/8"}, CacheDir: "/cache/"}
	conf := renderAll(t, edge.Nginx, o)["followpress.conf"]
	if !strings.Contains(conf, "    10.0.0.0/8 1;\n") || !strings.Contains(conf, "root /cache-state;") || strings.Contains(conf, "127.0.0.1 1") {
		t.Errorf("followpress.conf: got %s, want 10.0.0.0/8 alone and the cache under /cache", conf)
	}
}

// Only where the site's objects have tags for a service, its files say so.
func TestTagsInFiles(t *testing.T) {
	for _, c := range []struct {
		kind       edge.Kind
		file, says string
		services   string // the file has the text if the site has tags for these
	}{
		{edge.CloudFront, "cloudfront.yaml", "        CacheTagConfig:\n          HeaderName: x-amz-meta-cache-tag\n", "cloudfront"},
		{edge.Worker, "worker.js", "headers.set('cache-tag', tags)", "cloudflare"},
	} {
		for _, tags := range []string{"", "cloudfront", "cloudflare", "fastly"} {
			config := siteConfig(t)
			config.Tags = tags
			if got := strings.Contains(renderAll(t, c.kind, edge.Options{Config: config, Bucket: "http://bucket"})[c.file], c.says); got != (tags == c.services) {
				t.Errorf("%s with tags for %q: says %q: got %v, want %v", c.file, tags, c.says, got, !got)
			}
		}
	}
}

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
