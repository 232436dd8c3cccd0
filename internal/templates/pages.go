package templates

import (
	_ "embed" // of the texts
	"fmt"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
)

// Page is the template of the page of an account, "page", and of what all pages of a site have in common: "head", "bar" and
// "foot". It is for html/template.
//
//go:embed page.html
var Page string

//go:embed page.css
var pageStyle string

//go:embed embed.js
var embed string

// PageStyle is the style sheet of the pages of a site.
func PageStyle(config site.Config) []byte {
	return []byte(strings.ReplaceAll(pageStyle, "COLOUR", page.Colour(config)))
}

// Embed is the script with the element <follow-card>.
func Embed(config site.Config) ([]byte, error) {
	about, err := json.Marshal(map[string]any{
		"api": config.BasePath, "title": page.Title(config), "colour": page.Colour(config), "explorer": config.Explorer,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", page.EmbedKey, err)
	}
	return []byte(strings.NewReplacer("SITE", string(about), "PAGE", config.Expression("page")).Replace(embed)), nil
}

// Robots tells robots that the answers of the API are not for them, and where the sitemaps are.
func Robots(config site.Config) []byte {
	root := page.Root(config)
	return fmt.Appendf(nil, "User-agent: *\nDisallow: %[1]s/%[2]s/\nDisallow: %[1]s/_search/\nDisallow: %[1]s/_variants/\n\nSitemap: %[3]s/%[4]s\n",
		root, config.BasePath, config.PublicURL, page.SitemapKey)
}
