package render

import (
	"slices"

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

// texts are objects of which each is a unit.
type texts []text

func (ts texts) kind() UnitKind { return UnitKind{len(ts), nil, ts.render} }

func (ts texts) render(unit int, _ *Scratch, emit Emitter) {
	emitText(emit, ts[unit].body, ts[unit].key)
}

func (ts texts) find(key site.Key) foundUnit {
	return among(len(ts), slices.IndexFunc(ts, func(t text) bool { return t.key == key }), ts.render)
}

// problemTexts returns the answers to invalid requests.
func problemTexts(config site.Config) (all texts) {
	for _, p := range config.Problems() {
		all = append(all, text{p.Key(), p.Body()})
	}
	return all
}

// apiTexts returns the description of the API and the client library.
func apiTexts(config site.Config) (texts, error) {
	api, err := openapi.Describe(config)
	if err != nil {
		return nil, err
	}
	all := texts{{site.OpenAPIKey, api}}
	for _, f := range client.Files() {
		all = append(all, text{site.ClientKey(f.Name), f.Body})
	}
	return all, nil
}

func explorerTexts(config site.Config) texts {
	all := texts{{site.IndexKey, []byte(templates.Index)}}
	for _, f := range explorer.Files(config) {
		all = append(all, text{site.ExplorerKey(f.Name), f.Body})
	}
	return all
}
