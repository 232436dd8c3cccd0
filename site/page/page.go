// Package page names what a site has with site.Config.Pages: pages of accounts, badges, sitemaps and the element for other
// sites.
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

// Keys of what there is once.
const (
	// SitemapKey names the sitemaps.
	SitemapKey site.Key = "sitemap.xml"
	// RobotsKey tells robots where SitemapKey is.
	RobotsKey site.Key = "robots.txt"
	// StyleKey is the style sheet of the pages. No page has a name with an underscore.
	StyleKey site.Key = folder + "/_page.css"
	// EmbedKey is the element <follow-card> for other sites.
	EmbedKey site.Key = "embed.js"

	folder      = "u"
	badgeFolder = "_badge"
	cardFolder  = "_card"
	index       = "index.html"
)

// form is the form of a name of a page.
var form = site.Config{}.Expression("page")

var isName = regexp.MustCompile("^" + form + "$").MatchString

// Name is the name of an account's page: its own name, if that consists of small letters, digits, full stops and hyphens
// alone, else its address. So a name that needs an encoding or looks like another one is in no address of a page.
func Name(name string, address site.Address) string {
	if isName(name) {
		return name
	}
	return address.String()
}

// Key is the key of a page with a name as Name makes it.
func Key(name string) site.Key { return site.Key(folder + "/" + name + "/" + index) }

// BadgeKey is the key of an account's badge, by the name of its page.
func BadgeKey(name string) site.Key { return site.Key(badgeFolder + "/" + name + ".svg") }

// DarkBadgeKey is the key of the badge for dark pages.
func DarkBadgeKey(name string) site.Key { return site.Key(badgeFolder + "/dark/" + name + ".svg") }

// CardKey is the key of the picture that previews of a page show.
func CardKey(name string) site.Key { return site.Key(cardFolder + "/" + name + ".png") }

// SitemapPartKey is the key of the sitemap of a bucket of pages.
func SitemapPartKey(bucket string) site.Key { return site.Key(folder + "/_sitemap-" + bucket + ".xml") }

// Of returns the name of the page of a key that Key, BadgeKey, DarkBadgeKey or CardKey made, whose route is known.
func Of(key site.Key) string {
	path, isPage := strings.CutSuffix(string(key), "/"+index)
	if !isPage {
		path = path[:len(path)-len(".svg")] // or .png
	}
	return path[strings.LastIndexByte(path, '/')+1:]
}

// Paths are the URL paths beside that of its key at which servers and edges answer with a page: /u/{page} and /u/{page}/.
// Buckets know neither.
func Paths(name string) []string {
	path := "/" + folder + "/" + name
	return []string{path, path + "/"}
}

// Path is an expression for these paths without their first slash, whose group is the name of the page.
func Path() string { return folder + "/(" + form + ")/?" }

// Root is the path of Config.PublicURL, without a slash at its end. Links between pages begin with it.
func Root(c site.Config) string { return publicURL(c).Path }

// Title is what pages call the site: its title, or the host of Config.PublicURL.
func Title(c site.Config) string { return cmp.Or(c.Title, publicURL(c).Host) }

func publicURL(c site.Config) *url.URL {
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return &url.URL{} // site.Config.WithDefaults refuses it
	}
	return u
}

// Colour is the colour of a site, or a blue.
func Colour(c site.Config) string { return cmp.Or(c.Colour, "#0b5cad") }

// LogoHost is the host of the logo as a content security policy names it, "" for none.
func LogoHost(c site.Config) string {
	u, err := url.Parse(c.Logo)
	if err != nil || c.Logo == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// maxPicture is more than services accept that show previews, in bytes.
const maxPicture = 2_048

// Picture is where a page may say that a picture is: its URL, or that of the proxy of Config.Pictures; "" for what that does
// not allow, and for all but https.
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
