package edge

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/tags"
)

// A view holds the data of the templates of every kind.
type view struct {
	Table            Table
	Bucket, Fallback *origin // Fallback may be nil
	Live             *origin // nil if there is none; then Fallback is not nil
	HasFallback      bool
	EFP              bool   // the site has the whole read API
	History          bool   // the site has operations
	Data             bool   // the site has tables, which are served in ranges too
	Alone            bool   // EFP without a fallback
	Compact          bool   // Small and EFP: the table omits every column that is not needed
	Base             string // path of the API
	BaseExpression   string // matches it with its last slash
	LegalList        string // matches a token id
	StoredPaths      string // matches the paths of stored objects
	Missing          string // HTML of a 404 for browsers; "" without the explorer
	PagePath         string // matches the other paths of pages of accounts, without the first slash; "" without pages
	Titles           map[int]string
	AbsentCaching    string // Cache-Control of the problems about missing objects
	LegalNumber      string // matches a legal number
	UserFolderAt     int    // where the folder of users begins in a path, and where it ends
	UserAt           int    // where the user begins in a path of EFP without its first slash
	MaxBody          int    // bytes of a POST
	Small            bool   // leave out of the script what CloudFront does not need
	MaxNameBytes     int
	NoStore, NoCache string
	Fresh            site.Param // asks for a refresh
	Allow            string     // methods
	AllowPost        string     // methods of a route that takes a body
	UnknownAddress   string     // stands for the address in objects for unknown addresses
	RetryAfter       string     // seconds
	AbsentSeconds    int        // time to cache that an object does not exist
	ContentTypes     []string   // compressed by nginx, except pages, which it compresses anyway
	R2Prefix         string     // prefix of the keys, with its slash

	CloudFrontTags, CloudflareTags bool   // whether the site's objects have tags for the service
	CacheTag, TagHeader            string // metadata with the tags, and the header for them
	AbsentTag                      string // tag of missing objects

	Listen              place
	CacheDir, CacheSize string
	Purgers             []netip.Prefix
}

// absentSeconds is the max-age of the problems about missing objects.
var absentSeconds = maxAge(site.NoSuchList.CacheControl)

func maxAge(cacheControl string) int {
	var seconds int
	if _, err := fmt.Sscanf(cacheControl, "public, max-age=%d", &seconds); err != nil {
		panic("edge: max-age of " + cacheControl) // it is fixed
	}
	return seconds
}

func newView(o Options) (*view, error) {
	v := &view{
		Table:          TableOf(o.Config),
		MaxNameBytes:   site.MaxNameBytes,
		Fresh:          site.ParamCache,
		NoStore:        site.NoStore,
		NoCache:        site.RouteBy(routes.Root).CacheControl,
		AbsentSeconds:  absentSeconds,
		EFP:            o.Config.EFP(),
		History:        o.Config.HistoryWindow > 0,
		Data:           o.Config.Data,
		Alone:          o.Config.EFP() && o.Fallback == "",
		Base:           o.Config.BasePath,
		BaseExpression: regexp.QuoteMeta(o.Config.BasePath) + "/",
		StoredPaths:    storedPaths(o.Config),
		Missing:        page.Missing(o.Config),
		AbsentCaching:  site.NoSuchList.CacheControl,
		UserFolderAt:   len(o.Config.BasePath + "/"),
		UserAt:         len(o.Config.BasePath + "/users/"),
		MaxBody:        site.MaxBatchBytes,
		Allow:          site.MethodNotAllowed.Allow(),
		AllowPost:      site.PostOnly.Allow(),
		UnknownAddress: site.UnknownAddress,
		RetryAfter:     strconv.Itoa(int(site.RetryAfter.Seconds())),
		CloudFrontTags: tags.For(o.Config, "cloudfront"), CloudflareTags: tags.For(o.Config, "cloudflare"),
		CacheTag: tags.CacheTag, TagHeader: tags.Header + tags.CacheTag, AbsentTag: tags.Absent,
		CacheSize: cmp.Or(o.CacheSize, "10g"),
		CacheDir:  cmp.Or(strings.TrimRight(o.CacheDir, "/"), "/var/cache/nginx/followpress"),
	}
	if o.Config.Pages {
		v.PagePath = page.Path()
	}
	for _, check := range []struct {
		flag, value, want string
		good              *regexp.Regexp
	}{
		{"cache-dir", v.CacheDir, "a folder without spaces and quotes", plainPath},
		{"cache-size", v.CacheSize, "a size such as 10g", plainSize},
	} {
		if !check.good.MatchString(check.value) {
			return nil, fmt.Errorf("--%s: %q: want %s", check.flag, check.value, check.want)
		}
	}
	v.ContentTypes = compressible(o.Config)
	var err error
	if v.Listen, err = parseListen(cmp.Or(o.Listen, "8080")); err != nil {
		return nil, err
	}
	if v.Purgers, err = parseNetworks(o.PurgeFrom); err != nil {
		return nil, err
	}
	if v.Bucket, err = parseOrigin("bucket", o.Bucket); err != nil {
		return nil, err
	}
	if v.Bucket.Prefix != "" {
		v.R2Prefix = strings.TrimPrefix(v.Bucket.Prefix, "/") + "/"
	}
	if o.Fallback != "" {
		v.HasFallback = true
		if v.Fallback, err = parseOrigin("fallback", o.Fallback); err != nil {
			return nil, err
		}
	}
	if o.Live != "" {
		if o.Fallback == "" {
			return nil, errors.New("--live-url: needs --fallback-url, for answers without an object while live is away; without a fallback, repeat the URL of live")
		}
		if v.Live, err = parseOrigin("live", o.Live); err != nil {
			return nil, err
		}
		v.Live.Connect, v.Live.Read = "500ms", "1s"
	}
	return v, nil
}

// compressible returns the content types of a site's texts except text/html, which nginx always compresses.
func compressible(c site.Config) (types []string) {
	for _, r := range c.Routes() {
		media, _, _ := strings.Cut(r.ContentType, ";")
		if media != "text/html" && media != "image/png" && !r.Ranges && !slices.Contains(types, media) {
			types = append(types, media)
		}
	}
	return types
}

// Signed returns the name of a request header. With the value "only", an edge skips live, whose answers are unsigned.
func (v *view) Signed() string { return "X-Signed" }

// LiveHeaders returns the headers of live answers in lower case; none without live.
func (v *view) LiveHeaders() []string {
	if v.Live == nil {
		return nil
	}
	return []string{"x-as-of", "x-heads", "x-finalized"}
}

// ForPeople matches the paths at which browsers get Missing.
func (view) ForPeople() string { return page.ForPeople }

// Selecting returns the parameters that select the entries of an answer.
func (v *view) Selecting(r Row) []site.Param {
	return slices.DeleteFunc(slices.Clone(r.Params), func(p site.Param) bool { return !v.Table.Params[p].Selects })
}

// parseNetworks reads addresses and networks; nil means only this machine.
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
			return nil, fmt.Errorf("--purge-from=%q: want an address or a network such as 10.0.0.0/8", text)
		}
		all = append(all, network.Masked())
	}
	return all, nil
}

// An origin is a server that an edge asks: the bucket or the fallback.
type origin struct {
	Name      string // name of the upstream or backend in a configuration
	ShortName string // bucket or fallback
	Origin    string // scheme and upstream
	URL       string
	Scheme    string
	Host      string // value of the Host header
	Hostname  string
	Port      string
	HostPort  string
	Prefix    string // start of all paths, without a slash at its end
	TLS       bool
	Connect   string // the longest time until there is a connection, in nginx's notation
	Read      string // between two reads of an answer, and before the first
	Instead   string // location of nginx that answers if the origin has failed
	Ranges    bool   // nginx serves ranges of the origin's whole answer, and sends the 416 itself
}

// Passed returns the headers of an origin's answer that an edge passes on. It drops all others, and adds its own.
func (v *view) Passed() []string {
	return []string{
		"allow", "cache-control", "content-length", "content-type", "date", "etag", "retry-after", "x-as-of", "x-finalized", "x-heads", "x-refresh",
	}
}

// plainURL matches URLs without characters that have a meaning in a configuration file.
var plainURL = regexp.MustCompile(`^https?://[A-Za-z0-9._:\[\]/~-]+$`)

// Values of flags without characters that have a meaning in a configuration file.
var (
	plainPath = regexp.MustCompile(`^[^\x00-\x20\x7f;{}"'\\$#]+$`)
	plainSize = regexp.MustCompile(`^[0-9]+[kKmMgG]?$`)
)

func parseOrigin(what, text string) (*origin, error) {
	u, err := url.Parse(text)
	if err != nil || !plainURL.MatchString(text) || u.Hostname() == "" {
		return nil, fmt.Errorf("--%s-url=%q: want http:// or https://, a host, and at most a path of letters, digits and -._~", what, text)
	}
	name := "followpress_" + what
	o := &origin{
		Name: name, ShortName: what, Origin: u.Scheme + "://" + name, URL: strings.TrimRight(text, "/"), Scheme: u.Scheme,
		Host: u.Host, Hostname: u.Hostname(), Port: u.Port(), Prefix: strings.TrimRight(u.Path, "/"), TLS: u.Scheme == "https",
		Connect: "3s", Read: "15s", Instead: "unavailable",
	}
	if o.Port == "" {
		o.Port = map[bool]string{false: "80", true: "443"}[o.TLS]
	}
	o.HostPort = net.JoinHostPort(o.Hostname, o.Port)
	return o, nil
}

// TooLarge returns the answer to a body larger than MaxBody.
func (v *view) TooLarge() string { return string(site.BodyTooLarge.Body()) }
