package profile

import (
	"fmt"
	"regexp"
	"strings"
)

var webURL = regexp.MustCompile(`^(?i:https?)://[^/?#]`)

// redirectURL returns a text of a profile as the value of a Location header: every byte that no URL has (RFC 3986) is
// percent-encoded. ok is false if the text is no http or https URL.
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
