package site_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

// Equal settings have one form, so that they give equal bytes.
func TestPictures(t *testing.T) {
	for _, tc := range []struct {
		given, want, hosts string
		all                bool
	}{
		{"", "", "[]", true},
		{"ask", "", "[]", true},
		{" off ", "off", "[]", false},
		{"img.example", "img.example", "[https://img.example]", false},
		{"b.example, A.example\n*.c.example b.example:8443 a.example", "*.c.example a.example b.example b.example:8443",
			"[https://*.c.example https://a.example https://b.example https://b.example:8443]", false},
		{"xn--80ak6aa92e.com,localhost", "localhost xn--80ak6aa92e.com", "[https://localhost https://xn--80ak6aa92e.com]", false},
		{"https://proxy.example/{url}", "https://proxy.example/{url}", "[https://proxy.example]", false},
		{"https://proxy.example:8443/w?u={url}&w=1", "https://proxy.example:8443/w?u={url}&w=1", "[https://proxy.example:8443]", false},
	} {
		c, err := site.Config{Explorer: true, Pictures: tc.given}.WithDefaults()
		hosts, all := c.PictureHosts()
		if err != nil || c.Pictures != tc.want || fmt.Sprint(hosts) != tc.hosts || all != tc.all {
			t.Errorf("%q: got %q, %v, %t (%v), want %q, %s, %t", tc.given, c.Pictures, hosts, all, err, tc.want, tc.hosts, tc.all)
		}
		if again, err := c.WithDefaults(); err != nil || again != c {
			t.Errorf("%q again: got %+v, %v, want no change", tc.given, again, err)
		}
	}
	if c, err := (site.Config{Pictures: "off"}).WithDefaults(); err != nil || c.Pictures != "" {
		t.Errorf("without the explorer: got %q (%v), want nothing", c.Pictures, err)
	}
}

// Only host names get into the policy of a page.
func TestPicturesRefuses(t *testing.T) {
	for _, given := range []string{
		"off img.example", "ask img.example", "*", "*.", "https:", "img.example; script-src *", "'self'", "'unsafe-inline'", "data:", "img.example/path", "\"><script>",
		"a..b", "-a.example", "a.example:0", "a.example:", "аррӏе.com", "*.*.example", "user@a.example", "a.example;", strings.Repeat("a", 64) + ".example", strings.Repeat("a.example ", 500),
		"http://proxy.example/{url}", "https://proxy.example/", "https://proxy.example/{url}{url}", "https://{url}/", "https://{url}.example/x", "https:///{url}", "https://a@b.example/{url}",
		"https://proxy.example/{url}#x", "https://proxy.example/ {url}", "https://proxy.example/{url}'", "https://proxy.example;x/{url}", "https://*.proxy.example/{url}", "https://proxy.example{url}",
		"https://proxy.example/{url}\nx", "javascript://proxy.example/{url}", "https://a.example/{url} b.example", "https://PROXY.example;/{url}",
	} {
		_, err := site.Config{Explorer: true, Pictures: given}.WithDefaults()
		if given == strings.Repeat("a.example ", 500) {
			if err != nil {
				t.Errorf("the same host often: %v", err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "pictures") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want an error that names pictures", given, err)
		}
	}
}
