package pages

import (
	"fmt"
	"html/template"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
	"github.com/followpress/followpress/templates"
)

// A pageView is the data of the page template. Untrusted text is a string, which the template
// escapes.
type pageView struct {
	Bar                template.HTML // from another template
	Title, Name, About string        // About is a line for previews
	Picture            string        // URL of the avatar, "" if it may not be named
	Linked             linkedPage
	Address, Bio, Link string // "" for none
	Face, Asked        string // URL of the avatar: shown, and shown on request; "" for none
}

// A linkedPage describes a page to search engines (schema.org/ProfilePage).
type linkedPage struct {
	Context string       `json:"@context"`
	Type    string       `json:"@type"`
	Main    linkedPerson `json:"mainEntity"`
}

type linkedPerson struct {
	Type        string      `json:"@type"`
	Name        string      `json:"name"`
	Identifier  string      `json:"identifier"`
	Description string      `json:"description,omitempty"`
	Image       string      `json:"image,omitempty"`
	Statistic   linkedCount `json:"interactionStatistic"`
}

type linkedCount struct {
	Type  string `json:"@type"`
	Kind  string `json:"interactionType"`
	Count uint32 `json:"userInteractionCount"`
}

var (
	pageTemplates = template.Must(template.New("").Parse(templates.Page))
	aboutAccount  = pageTemplates.Lookup("page")
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
