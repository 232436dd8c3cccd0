package snapshot

import (
	"errors"
	"net/url"
)

// A serviceURL is the URL of a service, or "".
type serviceURL string

// UnmarshalText rejects URLs no service can have, before hours of work. Its error omits the URL, which may
// contain a key.
func (s *serviceURL) UnmarshalText(text []byte) error {
	u, err := url.Parse(string(text))
	if len(text) > 0 && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "") {
		return errors.New("the URL must be like https://HOST or https://HOST/PATH")
	}
	*s = serviceURL(text)
	return nil
}
