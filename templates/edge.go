package templates

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

//go:embed edge
var edgeFiles embed.FS

// An EdgeKind is a program or a service that can stand before a bucket.
type EdgeKind string

// The kinds of edges.
const (
	Nginx      EdgeKind = "nginx"
	Varnish    EdgeKind = "varnish"
	Caddy      EdgeKind = "caddy"
	CloudFront EdgeKind = "cloudfront"
	Worker     EdgeKind = "worker"
)

// edgeOutputs are the files of each kind: the template and the name of what it makes.
var edgeOutputs = map[EdgeKind][][2]string{
	Nginx:      {{"nginx.conf", "followpress.conf"}, {"nginx.js", "followpress.js"}},
	Varnish:    {{"varnish.vcl", "followpress.vcl"}},
	Caddy:      {{"caddyfile", "Caddyfile"}},
	CloudFront: {{"function.js", "function.js"}, {"cloudfront.yaml", "cloudfront.yaml"}},
	Worker:     {{"worker.js", "worker.js"}, {"wrangler.toml", "wrangler.toml"}},
}

// EdgeOptions say what an edge stands before. The zero value of the last fields
// means their default.
type EdgeOptions struct {
	Config   site.Config
	Bucket   string // URL below which the keys are
	Fallback string // URL of the fallback; "" means that there is none

	Listen    string // where a server listens: port, or host:port; "8080"
	CacheDir  string // of nginx; /var/cache/nginx/followpress
	CacheSize string // of nginx, as it has sizes; 10g

	// PurgeFrom are the addresses, or networks such as 10.0.0.0/8, from which nginx and
	// Varnish may be purged; nil means this machine alone.
	PurgeFrom []string
}

// An EdgeFile is a file of a configuration.
type EdgeFile struct {
	Name string
	Body []byte
}

// Edge renders the configuration of an edge.
func Edge(kind EdgeKind, o EdgeOptions) ([]EdgeFile, error) {
	outputs, ok := edgeOutputs[kind]
	if !ok {
		return nil, fmt.Errorf("edge %q: there is none of this kind", kind)
	}
	view, err := newEdgeView(o)
	if err != nil {
		return nil, err
	}
	if kind == Varnish && (view.Bucket.TLS || view.Fallback != nil && view.Fallback.TLS) {
		return nil, errors.New("varnish speaks no TLS to its backends: give http:// URLs, of a TLS proxy beside it if need be (docs/deploy/varnish.md)")
	}
	var files []EdgeFile
	for _, names := range outputs {
		var body bytes.Buffer
		if err := edgeTemplates.ExecuteTemplate(&body, names[0], view); err != nil {
			return nil, fmt.Errorf("render %s: %w", names[0], err)
		}
		files = append(files, EdgeFile{Name: names[1], Body: body.Bytes()})
	}
	return files, nil
}

var edgeTemplates = template.Must(template.New("").Funcs(template.FuncMap{
	"json": encodeJSON,
	"list": func(all ...string) []string { return all }, "indent": indent,
	"quote": func(text string) string { return "`" + text + "`" }, "address": addressPath, "caddyVariant": caddyVariant,
	"anyQuery": func(path string) string { return strings.TrimSuffix(path, "$") + `(?:\?.*)?$` },
	// Of Varnish, in edge_varnish.go.
	"slash": withSlash, "before": aroundVariable, "variant": upToLimit, "join": alternatives, "grace": staleSeconds,
	"param": varnishParamProblem, "problemStatus": problemStatus,
}).ParseFS(edgeFiles, "edge/*"))

func encodeJSON(v any) (string, error) {
	body, err := json.MarshalWithOption(v, json.DisableHTMLEscape())
	return string(body), err
}

// edgeView is what the templates see.
type edgeView struct {
	Table            site.Edge
	Bucket, Fallback *origin // Fallback may be nil
	HasFallback      bool
	Small            bool // the script must be: no more than CloudFront needs
	BasePath         string
	MaxNameBytes     int
	NoStore, NoCache string
	Allow            string   // methods
	RetryAfter       string   // seconds
	AbsentSeconds    int      // how long a cache may believe that there is no object
	ContentTypes     []string // of all answers
	Direct           []directPath
	R2Prefix         string // of the keys, with its slash

	Listen, CacheDir, CacheSize string
	Purgers                     []netip.Prefix
}

// absentSeconds is the max-age of the problems that say that there is no object.
var absentSeconds = maxAge(site.NoSuchList.CacheControl)

func maxAge(cacheControl string) int {
	var seconds int
	if _, err := fmt.Sscanf(cacheControl, "public, max-age=%d", &seconds); err != nil {
		panic("templates: max-age of " + cacheControl) // it is fixed
	}
	return seconds
}

func newEdgeView(o EdgeOptions) (*edgeView, error) {
	v := &edgeView{
		Table: o.Config.Edge(), BasePath: o.Config.BasePath,
		MaxNameBytes: site.MaxNameBytes, NoStore: site.NoStore, Allow: site.AllowedMethods, RetryAfter: strconv.Itoa(int(site.RetryAfter.Seconds())), NoCache: site.RouteRoot.Route().CacheControl, AbsentSeconds: absentSeconds,
		Listen: cmp.Or(o.Listen, "8080"), CacheDir: cmp.Or(strings.TrimRight(o.CacheDir, "/"), "/var/cache/nginx/followpress"), CacheSize: cmp.Or(o.CacheSize, "10g"),
	}
	for _, r := range v.Table.Routes {
		if !slices.Contains(v.ContentTypes, r.Route.ContentType) {
			v.ContentTypes = append(v.ContentTypes, r.Route.ContentType)
		}
		if r.Subject != site.EdgeUser {
			v.Direct = append(v.Direct, directPath{directExpression(r), r.Caching})
		}
	}
	var err error
	if v.Purgers, err = parseNetworks(o.PurgeFrom); err != nil {
		return nil, err
	}
	if v.Bucket, err = parseOrigin("followpress_bucket", "bucket", o.Bucket); err != nil {
		return nil, err
	}
	if v.Bucket.Prefix != "" {
		v.R2Prefix = strings.TrimPrefix(v.Bucket.Prefix, "/") + "/"
	}
	if o.Fallback != "" {
		v.HasFallback = true
		if v.Fallback, err = parseOrigin("followpress_fallback", "fallback", o.Fallback); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// parseNetworks reads addresses and networks; none means the machine itself.
func parseNetworks(texts []string) ([]netip.Prefix, error) {
	if texts == nil {
		texts = []string{"127.0.0.1", "::1"}
	}
	var all []netip.Prefix
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if address, addressErr := netip.ParseAddr(text); addressErr == nil && address.Zone() == "" {
			network, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("purge from %q: want an address or a network such as 10.0.0.0/8", text)
		}
		all = append(all, network.Masked())
	}
	return all, nil
}

// DirectKept matches the paths of objects as they stand that caches keep for as long
// as their Cache-Control says; the most popular ones first.
func (v *edgeView) DirectKept() string {
	var lists, others []string
	for _, d := range v.Direct {
		switch {
		case d.Caching == v.NoCache:
		case strings.Contains(d.Path, "/lists/"):
			lists = append(lists, d.Path)
		default:
			others = append(others, d.Path)
		}
	}
	return strings.Join(append(lists, others...), "|")
}

// ObjectLocations are the locations of nginx that answer with an object, and where
// each finds its path.
func (v *edgeView) ObjectLocations() map[string]string {
	return map[string]string{"direct": "$request_uri", "object": "$followpress_path"}
}

// A directPath matches paths that are those of objects as they stand.
type directPath struct{ Path, Caching string }

func directExpression(r site.EdgeRoute) string {
	path := "/" + strings.TrimSuffix(strings.TrimPrefix(r.Path, "^"), "$")
	if r.Legal != "" {
		path = strings.Replace(path, "([^/]*)", strings.TrimSuffix(strings.TrimPrefix(r.Legal, "^"), "$"), 1)
	}
	return path
}

// An origin is what an edge asks.
type origin struct {
	Name      string // of the upstream
	ShortName string // bucket or fallback
	Origin    string // scheme and upstream
	URL       string
	Scheme    string
	Host      string // as the header has it
	Hostname  string
	Port      string
	HostPort  string
	Prefix    string // of all paths; no slash at its end
	TLS       bool
	Hidden    []string // headers of its answers that are not passed on
}

// Failures are the statuses that say nothing of an object: those of a bucket that are neither an
// answer nor mean that there is none, and those that the fallback has no problem for. They are all
// that are in use, those of Cloudflare (52x, 530) too.
func (o *origin) Failures() string {
	const always = "300 301 302 303 305 307 308 401 402 406 407 408 409 410 411 413 414 415 416 417 418 421 422 423 424 425 426 428 431 451 " +
		"500 501 502 503 504 505 506 507 508 510 511 520 521 522 523 524 525 526 527 530"
	if o.ShortName == "fallback" {
		return "403 " + always
	}
	return "405 429 " + always
}

// hiddenHeaders are what buckets add to their answers, what is one client's alone, and what the
// edge says itself.
var hiddenHeaders = []string{
	"Accept-Ranges", "Access-Control-Allow-Credentials", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers",
	"Content-Security-Policy", "Last-Modified", "Set-Cookie", "Strict-Transport-Security", "Vary", "X-Amz-Bucket-Region", "X-Amz-Expiration", "X-Amz-Id-2",
	"X-Amz-Replication-Status", "X-Amz-Request-Id", "X-Amz-Server-Side-Encryption", "X-Amz-Storage-Class", "X-Amz-Version-Id",
	"X-Content-Type-Options", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Request-Id", "X-Xss-Protection",
}

// plainURL keeps what goes into configuration files to what none of them takes for
// anything else.
var plainURL = regexp.MustCompile(`^https?://[A-Za-z0-9._:\[\]/~-]+$`)

func parseOrigin(name, what, text string) (*origin, error) {
	u, err := url.Parse(text)
	if err != nil || !plainURL.MatchString(text) || u.Hostname() == "" {
		return nil, fmt.Errorf("%s URL %q: want http:// or https://, a host, and a path of letters, digits and -._~ at most", what, text)
	}
	o := &origin{
		Name: name, ShortName: what, Origin: u.Scheme + "://" + name, URL: strings.TrimRight(text, "/"), Scheme: u.Scheme, Host: u.Host, Hostname: u.Hostname(),
		Port: u.Port(), Prefix: strings.TrimRight(u.Path, "/"), TLS: u.Scheme == "https", Hidden: hiddenHeaders,
	}
	if o.Port == "" {
		o.Port = map[bool]string{false: "80", true: "443"}[o.TLS]
	}
	o.HostPort = net.JoinHostPort(o.Hostname, o.Port)
	return o, nil
}
