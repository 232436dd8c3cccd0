// Package edge renders the configurations of caches and CDNs in front of the bucket of a site: nginx, Caddy, CloudFront
// and Cloudflare Workers.
//
// All are rendered from TableOf and decide as site.Config.Resolve does; the tests run the real programs and compare.
//
// # The path of a request at an edge
//
//  1. TableOf turns the tables of routes and parameters of package site into regular expressions and text. group.go joins
//     rows that edges treat alike.
//  2. Each kind has a file here and templates in templates/edge. nginx, CloudFront and the Worker share resolve.js; Caddy
//     decides by matchers.
//  3. The edge answers bad requests itself, and objects from its cache or the bucket. It forwards all other requests to
//     the fallback, in a normal form that is also the cache key.
//
// # Live first
//
// With Options.Live an edge asks live first, by its cache key, and goes on as without live only if live fails. The two have
// separate cache keys, so an object cached for hours never hides live. Answers of live expire after two seconds and are
// never served stale. No program can try an origin, look into the cache, and try two other origins, so each needs its own
// way:
//
//   - nginx: error_page leads from the location of live to the one that the map chose; upstreams count failures.
//   - Caddy: a second site turns failures of a connection into an answer, which handle_response can replace; checks.
//   - Worker: a promise that is null; counters in the isolate.
//   - CloudFront: an origin group, with two origins and no memory of failures.
//
// # A generation for nginx
//
// Open-source nginx can purge single keys at best, and there is no list of them. So every cache key contains a
// generation: the ETag that nginx gives a file, made of its time and size. A purge replaces the file. nginx keeps the file
// open and checks it again after a second, so reading the generation takes no system call and no script; the purge
// answers once every worker has checked. (The target of a link would be known at once, but costs a system call for each
// folder of its path, on every request.) Requests in flight store their answers in the old generation, which is no
// longer read.
//
// # Stability
//
// The package serves the project's own commands. Its API may change in any release; the
// names of kinds and of the rendered files stay.
package edge

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates"
)

// A Kind is a program or a service that can stand in front of a bucket.
type Kind string

// Options describe the origins of an edge and where it listens. The zero value of the last fields means their default.
type Options struct {
	Config   site.Config
	Bucket   string // URL below which the keys are
	Fallback string // URL of the fallback; "" for none
	Live     string // URL of `followpress live`, which is asked first; "" for none

	Listen    string // where nginx and Caddy listen: port, address:port, and Caddy also at name:port or name; "8080"
	CacheDir  string // folder of nginx; /var/cache/nginx/followpress
	CacheSize string // in nginx's notation; 10g

	// PurgeFrom are the addresses, or networks such as 10.0.0.0/8, from which nginx
	// may be purged; nil means only this machine.
	PurgeFrom []string
}

// A File is a file of a configuration.
type File struct {
	Name string
	Body []byte
}

// A definition describes how to render a kind of edge.
type definition struct {
	outputs [][2]string              // template and name of each file
	parts   []string                 // other templates that these use
	funcs   template.FuncMap         // for the templates, in addition to commonFuncs
	view    func(*view) (any, error) // what the templates see; nil means the view itself
}

// definitions are all kinds; the file of each adds it in an init function.
var definitions = map[Kind]definition{}

// Kinds lists the kinds in the order of their names.
func Kinds() []Kind { return slices.Sorted(maps.Keys(definitions)) }

// Render returns the files of an edge. It fails for an unknown kind, a malformed URL or network, and options that the
// kind does not support. It is safe for concurrent use.
func Render(kind Kind, o Options) ([]File, error) {
	d, ok := definitions[kind]
	if !ok {
		return nil, fmt.Errorf("edge %q: unknown kind, want one of %v", kind, Kinds())
	}
	v, err := newView(o)
	if err != nil {
		return nil, err
	}
	var data any = v
	if d.view != nil {
		if data, err = d.view(v); err != nil {
			return nil, err
		}
	}
	parsed, err := d.templates()
	if err != nil {
		return nil, err
	}
	var files []File
	for _, names := range d.outputs {
		var body bytes.Buffer
		if err := parsed.ExecuteTemplate(&body, names[0], data); err != nil {
			return nil, fmt.Errorf("render %s: %w", names[0], err)
		}
		files = append(files, File{Name: names[1], Body: body.Bytes()})
	}
	return files, nil
}

func (d definition) templates() (*template.Template, error) {
	var files []string
	for _, name := range d.parts {
		files = append(files, "edge/"+name)
	}
	for _, o := range d.outputs {
		files = append(files, "edge/"+o[0])
	}
	return template.New("").Funcs(commonFuncs).Funcs(d.funcs).ParseFS(templates.Edge, files...)
}

var commonFuncs = template.FuncMap{
	"json": encodeJSON,
	// variable returns the name of a header in nginx's variables.
	"variable": func(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") },
	"list":     func(all ...string) []string { return all },
	// slash turns the expression of a table's path into that of a URL's path.
	"slash": func(path string) string { return "^/" + strings.TrimPrefix(path, "^") },
}

func encodeJSON(v any) (string, error) {
	body, err := json.MarshalWithOption(v, json.DisableHTMLEscape())
	return string(body), err
}
