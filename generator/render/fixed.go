package render

import (
	"github.com/followpress/followpress/client"
	"github.com/followpress/followpress/explorer"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates"
	"github.com/followpress/followpress/templates/openapi"
)

// A text is an object that depends on the configuration only.
type text struct {
	key  site.Key
	body []byte
}

// apiTexts returns the description of the API and the client library.
func apiTexts(config site.Config) ([]text, error) {
	api, err := openapi.Describe(config)
	if err != nil {
		return nil, err
	}
	texts := []text{{site.OpenAPIKey, api}}
	for _, f := range client.Files() {
		texts = append(texts, text{site.ClientKey(f.Name), f.Body})
	}
	return texts, nil
}

func explorerTexts(config site.Config) []text {
	texts := []text{{site.IndexKey, []byte(templates.Index)}}
	for _, f := range explorer.Files(config) {
		texts = append(texts, text{site.ExplorerKey(f.Name), f.Body})
	}
	return texts
}
