package site

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

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
