package page

import (
	"cmp"
	"html/template"
	"net/http"
	"regexp"
	"strings"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates"
)

// ForPeople matches the paths at which browsers get Missing instead of a problem in JSON.
const ForPeople = "^/(?:" + folder + "|_explore)/"

var forPeople = regexp.MustCompile(ForPeople).MatchString

// WantsMissing reports whether a 404 for a path, escaped and with its first slash, is Missing: the client accepts text/html.
func WantsMissing(path string, header http.Header) bool {
	return forPeople(path) && strings.Contains(strings.Join(header["Accept"], ","), "text/html")
}

var (
	missing = template.Must(template.New("").Parse(templates.Missing))
	// A Caddyfile quotes the page with backticks, and expands names in braces.
	unquoted = strings.NewReplacer("`", "&#96;", "{", "&#123;", "}", "&#125;")
)

// Missing returns the HTML of a 404, whose search opens the explorer, or "" for a site without the explorer. Caches must not
// keep the page: JSON clients ask for the same URL.
func Missing(c site.Config) string {
	if !c.Explorer {
		return ""
	}
	var b strings.Builder
	title := template.HTML(unquoted.Replace(template.HTMLEscapeString(cmp.Or(Title(c), "followpress"))))
	if err := missing.Execute(&b, map[string]any{"Title": title, "Explorer": Root(c) + site.ExplorerPageKey.URLPath()}); err != nil {
		panic("page: " + err.Error()) // the template is fixed
	}
	return b.String()
}
