package note

import (
	"fmt"
	"regexp"

	"github.com/followpress/followpress/site"
)

// hostName is one that DNS could have (RFC 1123, 2.1): letters, digits and hyphens of ASCII, with dots between. So no two
// names look alike, and none has what a note or a key is split by.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)

// maxName is the most characters of a host name.
const maxName = 253

// CheckName reports an error unless a key may have the name.
func CheckName(name string) error {
	if len(name) > maxName || !hostName.MatchString(name) {
		return fmt.Errorf("the name of a key is %s: use a host name, such as follow.example: letters a to z, digits, hyphens and dots", site.Quoted(name))
	}
	return nil
}

// named is a key that begins with a name, whatever that consists of.
var named = regexp.MustCompile(`(?s)^(.*?)\+[0-9a-f]{8}\+`)

// checkNameOf is CheckName for the name that a key begins with, if something is to be found that may be one.
func checkNameOf(key string) error {
	if parts := named.FindStringSubmatch(key); parts != nil {
		return CheckName(parts[1])
	}
	return nil
}
