package profile

import (
	"fmt"
	"regexp"
	"strings"
)

var webURL = regexp.MustCompile(`^(?i:https?)://[^/?#]`)

// redirectURL returns a URL from a profile as a Location header value, with bytes that URLs must
// not contain (RFC 3986) percent-encoded. ok is false if text is not an http or https URL.
func redirectURL(text string) (location string, ok bool) {
	if !webURL.MatchString(text) {
		return "", false
	}
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String(), true
}
