package site

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Keys of a site with Config.Pages outside its folders. Package page has all keys.
const (
	pageFolder  = "u"
	badgeFolder = "_badge"
	cardFolder  = "_card"
	pageIndex   = "index.html"
	embedKey    = "embed.js"
	robotsKey   = "robots.txt"
	sitemapKey  = "sitemap.xml"
)

// pageEntries returns the first segments of the keys that Pages adds, nil without Pages.
func (c Config) pageEntries() []string {
	if !c.Pages {
		return nil
	}
	return []string{badgeFolder, cardFolder, embedKey, robotsKey, sitemapKey, pageFolder}
}

// pageSegments turns the segments of /u/{page} and /u/{page}/ into those of the page's key.
func (c Config) pageSegments(segments []string) []string {
	n := len(segments)
	if n == 3 && segments[2] == "" {
		n = 2
	}
	if n == 2 && segments[0] == pageFolder && isPageName(segments[1]) {
		return []string{pageFolder, segments[1], pageIndex}
	}
	return segments
}

const maxPublicURL = 512

// plainURL matches URLs that need no escaping in any context.
var plainURL = regexp.MustCompile(`^https?://([0-9A-Za-z.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?(/[0-9A-Za-z._~-]+)*$`)

func (c Config) validatePages() error {
	switch {
	case !c.Pages && (c.PublicURL != "" || c.PagesMin != 0):
		return errors.New("public URL and fewest followers of a page: only with pages")
	case !c.Pages:
		return nil
	case !c.EFP():
		return fmt.Errorf("pages: only with the api %s, which knows who follows an account", APIEFP)
	case c.PagesMin < 0:
		return fmt.Errorf("pages of accounts without a name from %d followers: use 1 or more, or 0 for none", c.PagesMin)
	case !plainURL.MatchString(c.PublicURL) || len(c.PublicURL) > maxPublicURL || slices.ContainsFunc(strings.Split(c.PublicURL, "/"), isDots):
		return fmt.Errorf("public URL %q: pages need the address of the site, like https://HOST or https://HOST/PATH, without a query, of at most %d bytes", c.PublicURL, maxPublicURL)
	}
	first, _, _ := strings.Cut(c.BasePath, "/")
	if slices.Contains(c.pageEntries(), first) {
		return fmt.Errorf("base path %q: %s is where a site keeps its pages", c.BasePath, first)
	}
	return nil
}

func isDots(segment string) bool { return segment == "." || segment == ".." }

const maxTitle, maxAbout, maxLink = 60, 200, 1_024 // bytes

var (
	isColour   = regexp.MustCompile("^#[0-9a-f]{6}$").MatchString
	shortened3 = regexp.MustCompile("^#([0-9a-f])([0-9a-f])([0-9a-f])$")
)

// normalizeBrand normalizes the branding fields.
func (c *Config) normalizeBrand() {
	c.Title, c.About = strings.TrimSpace(c.Title), strings.TrimSpace(c.About)
	if !c.Explorer && !c.Pages {
		c.Title, c.About, c.Logo, c.Colour, c.Home = "", "", "", "", ""
	}
	c.Colour = shortened3.ReplaceAllString(strings.ToLower(c.Colour), "#$1$1$2$2$3$3")
}

func (c *Config) validateBrand() error {
	switch texts := c.Title + " " + c.About; {
	case len(c.Title) > maxTitle, len(c.About) > maxAbout, !utf8.ValidString(texts), strings.ContainsFunc(texts, func(r rune) bool { return unicode.In(r, unicode.C) }):
		return fmt.Errorf("title %q, at most %d bytes, and about %q, at most %d bytes: UTF-8 without line breaks and other controls", c.Title, maxTitle, c.About, maxAbout)
	case c.Colour != "" && !isColour(c.Colour):
		return fmt.Errorf("colour %q: use a form like #0b5cad or #05a", c.Colour)
	case c.Logo != "" && !isLink(c.Logo, "https"):
		return fmt.Errorf("logo %q: it must be like https://HOST/PATH, of at most %d bytes, in ASCII without spaces and quotes", c.Logo, maxLink)
	case c.Home != "" && !isLink(c.Home, "https", "http"):
		return fmt.Errorf("home %q: it must be like https://HOST/PATH, of at most %d bytes, in ASCII without spaces and quotes", c.Home, maxLink)
	}
	return nil
}

func isLink(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.User == nil && pictureHost.MatchString(u.Host) && !strings.HasPrefix(u.Host, "*") &&
		len(text) <= maxLink && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'<>\\^`|;,", r) })
}

// picturesOff is the value of Config.Pictures that disables pictures.
const picturesOff = "off"

// picturesAsk makes the explorer ask the reader; stored as "".
const picturesAsk = "ask"

// pictureURL is the placeholder for a picture's percent-encoded URL in the URL of a proxy.
const pictureURL = "{url}"

const maxPicturesBytes = 4_096

// pictureHost matches an ASCII host name, optionally with a wildcard "*." and a port. It allows no character with a
// meaning in HTML or in a content security policy.
var pictureHost = regexp.MustCompile(`^(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(:[1-9][0-9]{0,4})?$`)

// normalPictures returns the normal form of Config.Pictures, so that equal settings give equal bytes.
func normalPictures(pictures string) string {
	pictures = strings.TrimSpace(pictures)
	if pictures == picturesAsk || strings.Contains(pictures, "://") {
		return strings.TrimPrefix(pictures, picturesAsk)
	}
	hosts := strings.FieldsFunc(strings.ToLower(pictures), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
	slices.Sort(hosts)
	return strings.Join(slices.Compact(hosts), " ")
}

// PictureHosts returns the sources of pictures for a content security policy; nil for none. all reports whether any
// host is allowed after the reader agrees.
func (c Config) PictureHosts() (hosts []string, all bool) {
	switch {
	case c.Pictures == "":
		return nil, true
	case c.Pictures == picturesOff:
		return nil, false
	case strings.Contains(c.Pictures, "://"):
		u, err := url.Parse(c.Pictures)
		if err != nil {
			return nil, false // rejected by validatePictures
		}
		return []string{"https://" + u.Host}, false
	}
	for host := range strings.FieldsSeq(c.Pictures) {
		hosts = append(hosts, "https://"+host)
	}
	return hosts, false
}

func (c Config) validatePictures() error {
	if len(c.Pictures) > maxPicturesBytes {
		return fmt.Errorf("pictures: at most %d bytes", maxPicturesBytes)
	}
	if strings.Contains(c.Pictures, "://") {
		if !validPictureProxy(c.Pictures) {
			return fmt.Errorf("pictures %q: a proxy is like https://HOST/PATH/%s, with %[2]s once, after the host", c.Pictures, pictureURL)
		}
		return nil
	}
	for host := range strings.FieldsSeq(c.Pictures) {
		switch {
		case host == picturesOff && c.Pictures != picturesOff, host == picturesAsk:
			return fmt.Errorf("pictures %q: %s cannot be combined with hosts", c.Pictures, host)
		case !pictureHost.MatchString(host):
			return fmt.Errorf("pictures: %q is not a host; use names like img.example or *.img.example, in ASCII (xn--…)", host)
		}
	}
	return nil
}

// validPictureProxy reports whether the template is an HTTPS URL in which each picture's URL can be filled in after
// the host.
func validPictureProxy(template string) bool {
	u, err := url.Parse(strings.Replace(template, pictureURL, "x", 1))
	if err != nil || u.Scheme != "https" || u.User != nil || u.Fragment != "" || !pictureHost.MatchString(u.Host) || strings.HasPrefix(u.Host, "*") {
		return false
	}
	rest, ok := strings.CutPrefix(template, "https://"+u.Host+"/")
	isPlain := !strings.ContainsFunc(rest, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'<>\\^`|#", r) })
	return ok && isPlain && strings.Count(rest, pictureURL) == 1
}
