package render

import (
	"github.com/followpress/followpress/client"
	"github.com/followpress/followpress/explorer"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates"
	"github.com/followpress/followpress/templates/openapi"
)

// A Text is an object that depends on the configuration only.
type Text struct {
	Key  site.Key
	Body []byte
}

// ProblemTexts returns the answers to invalid requests.
func ProblemTexts(config site.Config) (all []Text) {
	for _, p := range config.Problems() {
		all = append(all, Text{p.Key(), p.Body()})
	}
	return all
}

// APITexts returns the description of the API and the client library.
func APITexts(config site.Config) ([]Text, error) {
	api, err := openapi.Describe(config)
	if err != nil {
		return nil, err
	}
	all := []Text{{site.OpenAPIKey, api}}
	for _, f := range client.Files() {
		all = append(all, Text{site.ClientKey(f.Name), f.Body})
	}
	return all, nil
}

// ExplorerTexts returns the explorer and the index that leads to it.
func ExplorerTexts(config site.Config) []Text {
	all := []Text{{site.IndexKey, []byte(templates.Index)}}
	for _, f := range explorer.Files(config) {
		all = append(all, Text{site.ExplorerKey(f.Name), f.Body})
	}
	return all
}
