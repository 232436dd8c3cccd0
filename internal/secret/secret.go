// Package secret keeps credentials out of messages. Its types do not print their content, and a
// Hider replaces credentials in messages of servers. A credential is read by Hider.Use, so no use
// of it can forget to hide it.
package secret

import (
	"net/url"
	"strings"
)

// hidden stands for a credential in messages.
const hidden = "[hidden]"

// A Text is a credential. Packages fmt and log/slog, and encoders, print "[hidden]" for one that is not empty.
type Text string

// String is "[hidden]", or "" for none.
func (t Text) String() string {
	if t == "" {
		return ""
	}
	return hidden
}

// GoString is String.
func (t Text) GoString() string { return t.String() }

// MarshalText is String.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// A URL is a place that may have credentials. It is printed without its user, query and fragment.
type URL string

// String returns the URL without what may be secret. A text that is not a URL, such as the path of
// a file, is returned as it is.
func (u URL) String() string {
	scheme, rest, ok := strings.Cut(string(u), "://")
	if !ok {
		return string(u)
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, path := rest[:end], rest[end:]
	if parsed, err := url.Parse(string(u)); err != nil || parsed.User != nil { // what cannot be parsed may have an @ anywhere
		all := rest
		if err == nil {
			all = host
		}
		if at := strings.LastIndexByte(all, '@'); at >= 0 {
			rest = rest[at+1:]
			end = strings.IndexAny(rest+"/", "/?#")
			host, path = rest[:end], rest[end:]
		}
	}
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	return scheme + "://" + host + path
}

// GoString is String.
func (u URL) GoString() string { return u.String() }

// MarshalText is String.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }
