package main

import (
	_ "embed"
	"fmt"
	"net/url"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// scenario has the requests of a connected profile page; README.md says how they were recorded.
//
//go:embed scenario.ndjson
var scenario []byte

const (
	pageViews   = 200 // different pages
	rowsPerPage = 20
)

// pages returns the requests of some profile pages, in the form of rig.Load.
func (b *bench) pages() ([][]string, error) {
	var users, viewers []string
	for _, address := range b.addresses {
		list := b.primary[address]
		if list == "" {
			continue
		}
		viewers = append(viewers, address)
		if site.LookupName(b.names[address]) && len(b.follows[list]) >= rowsPerPage {
			users = append(users, address)
		}
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("no account with a name follows %d others", rowsPerPage)
	}
	pages := make([][]string, pageViews)
	for i := range pages {
		user, viewer := users[b.random.IntN(len(users))], viewers[b.random.IntN(len(viewers))]
		fill := []string{
			"{user}", user, "{userName}", url.PathEscape(b.names[user]), "{viewer}", viewer, "{viewerList}", b.primary[viewer],
		}
		follows := b.follows[b.primary[user]]
		for row := range rowsPerPage {
			fill = append(fill, fmt.Sprintf("{row%d}", row+1), follows[row])
		}
		replacer := strings.NewReplacer(fill...)
		for line := range strings.Lines(string(scenario)) {
			var request struct{ Path, Body string }
			if err := json.Unmarshal([]byte(line), &request); err != nil {
				return nil, err
			}
			text := "/api/v1" + replacer.Replace(request.Path)
			if request.Body != "" {
				text += " " + replacer.Replace(request.Body)
			}
			pages[i] = append(pages[i], text)
		}
	}
	return pages, nil
}
