package note

import (
	"fmt"
	"regexp"

	"github.com/followpress/followpress/site"
)

// hostName matches DNS host names (RFC 1123, 2.1): ASCII letters, digits and hyphens, separated by dots. So no two
// names look alike, and none contains a separator of notes or keys.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)

// maxName is the maximum length of a host name.
const maxName = 253

// CheckName returns an error unless a key may have the name.
func CheckName(name string) error {
	if len(name) > maxName || !hostName.MatchString(name) {
		return fmt.Errorf("the name of a key is %s: use a host name, such as follow.example: letters a to z, digits, hyphens and dots", site.Quoted(name))
	}
	return nil
}

// named matches the start of a key, with any text as its name.
var named = regexp.MustCompile(`(?s)^(.*?)\+[0-9a-f]{8}\+`)

// checkNameOf is CheckName for the name at the start of a key. It accepts a text without one.
func checkNameOf(key string) error {
	if parts := named.FindStringSubmatch(key); parts != nil {
		return CheckName(parts[1])
	}
	return nil
}
