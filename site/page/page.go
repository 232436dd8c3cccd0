// Package page names the objects of a site with site.Config.Pages: pages of accounts, badges, sitemaps and the
// element for other sites.
//
// The API may change in any release.
package page

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/followpress/followpress/site"
)

// Keys of objects that exist once.
const (
	// SitemapKey is the index of all sitemaps.
	SitemapKey site.Key = "sitemap.xml"
	// RobotsKey is the key of the file that names SitemapKey to robots.
	RobotsKey site.Key = "robots.txt"
	// StyleKey is the style sheet of all pages. No page name has an underscore.
	StyleKey site.Key = folder + "/_page.css"
	// TopKey links to the most followed accounts.
	TopKey site.Key = folder + "/_top.html"
	// EmbedKey is the element <follow-card> for other sites.
	EmbedKey site.Key = "embed.js"

	folder      = "u"
	badgeFolder = "_badge"
	cardFolder  = "_card"
	index       = "index.html"
)

// form is a regular expression for page names.
var form = site.Config{}.Expression("page")

var isName = regexp.MustCompile("^" + form + "$").MatchString

// Name returns the name of an account's page: its own name if that consists of lower-case letters, digits, dots and
// hyphens, else its address. So no URL of a page contains a name that needs escaping or looks like another one.
func Name(name string, address site.Address) string {
	if isName(name) {
		return name
	}
	return address.String()
}

// Key returns the key of the page with a name from Name.
func Key(name string) site.Key { return site.Key(folder + "/" + name + "/" + index) }

// BadgeKey returns the key of an account's badge, given the name of its page.
func BadgeKey(name string) site.Key { return site.Key(badgeFolder + "/" + name + ".svg") }

// DarkBadgeKey returns the key of the badge for dark pages.
func DarkBadgeKey(name string) site.Key { return site.Key(badgeFolder + "/dark/" + name + ".svg") }

// CardKey returns the key of the picture for previews of a page.
func CardKey(name string) site.Key { return site.Key(cardFolder + "/" + name + ".png") }

// SitemapPartKey returns the key of the sitemap of a bucket of pages.
func SitemapPartKey(bucket string) site.Key { return site.Key(folder + "/_sitemap-" + bucket + ".xml") }

// Of returns the page name in a key of Key, BadgeKey, DarkBadgeKey or CardKey. Other keys may panic.
func Of(key site.Key) string {
	path, isPage := strings.CutSuffix(string(key), "/"+index)
	if !isPage {
		path = path[:len(path)-len(".svg")] // .png has the same length
	}
	return path[strings.LastIndexByte(path, '/')+1:]
}

// Paths returns the additional URL paths of a page on servers and edges: /u/{page} and /u/{page}/. Buckets know
// neither.
func Paths(name string) []string {
	path := "/" + folder + "/" + name
	return []string{path, path + "/"}
}

// Path returns a regular expression for Paths without the first slash. Its group is the page name.
func Path() string { return folder + "/(" + form + ")/?" }

// Root returns the path of Config.PublicURL without a trailing slash. Links between pages begin with it.
func Root(c site.Config) string { return publicURL(c).Path }

// Title returns the title of the site, or the host of Config.PublicURL.
func Title(c site.Config) string { return cmp.Or(c.Title, publicURL(c).Host) }

func publicURL(c site.Config) *url.URL {
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return &url.URL{} // rejected by site.Config.WithDefaults
	}
	return u
}

// Colour returns the colour of the site, or the default blue.
func Colour(c site.Config) string { return cmp.Or(c.Colour, "#0b5cad") }

// LogoHost returns the origin of the logo for a content security policy, or "".
func LogoHost(c site.Config) string {
	u, err := url.Parse(c.Logo)
	if err != nil || c.Logo == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// maxPicture exceeds the maximum URL length, in bytes, of services that show previews.
const maxPicture = 2_048

// Picture returns the URL under which a page may show a picture: its own, or that of the proxy in Config.Pictures. It
// returns "" if Config.Pictures does not allow it, or if it is not an https URL.
func Picture(c site.Config, picture string) string {
	u, err := url.Parse(picture)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || len(picture) > maxPicture || !utf8.ValidString(picture) {
		return ""
	}
	hosts, all := c.PictureHosts()
	switch {
	case all:
		return u.String()
	case strings.Contains(c.Pictures, "://"):
		return strings.Replace(c.Pictures, "{url}", strings.ReplaceAll(url.QueryEscape(u.String()), "+", "%20"), 1)
	}
	for _, allowed := range hosts {
		allowed = strings.TrimPrefix(allowed, "https://")
		host := strings.ToLower(u.Host)
		if suffix, isWild := strings.CutPrefix(allowed, "*"); allowed == host || isWild && strings.HasSuffix(host, suffix) {
			return u.String()
		}
	}
	return ""
}
