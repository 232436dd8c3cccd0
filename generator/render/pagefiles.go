package render

import (
	"fmt"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
	"github.com/followpress/followpress/templates"
)

// pageStyle returns the style sheet of the pages of a site.
func pageStyle(config site.Config) []byte {
	return []byte(strings.ReplaceAll(templates.PageStyle, "COLOUR", page.Colour(config)))
}

// embedScript returns the script with the element <follow-card>.
func embedScript(config site.Config) ([]byte, error) {
	about, err := json.Marshal(map[string]any{
		"api": config.BasePath, "title": page.Title(config), "colour": page.Colour(config), "explorer": config.Explorer,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", page.EmbedKey, err)
	}
	return []byte(strings.NewReplacer("SITE", string(about), "PAGE", config.Expression("page")).Replace(templates.Embed)), nil
}

// robots excludes the answers of the API for robots, and names the sitemaps.
func robots(config site.Config) []byte {
	root := page.Root(config)
	return fmt.Appendf(nil, "User-agent: *\nDisallow: %[1]s/%[2]s/\nDisallow: %[1]s/_search/\nDisallow: %[1]s/_variants/\n\nSitemap: %[3]s/%[4]s\n",
		root, config.BasePath, config.PublicURL, page.SitemapKey)
}
