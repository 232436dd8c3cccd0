// Package settings identifies the settings of a site that edges are configured with, so that an edge with a stale
// configuration is recognized.
//
// The API may change in any release.
package settings

import (
	"fmt"
	"strings"

	"github.com/followpress/followpress/site"
)

// Header names the header of answers that holds the Digest of the settings that the edge or server answers by.
const Header = "Followpress-Edge"

// Digest returns 16 hexadecimal digits. They change with each setting that configurations of edges depend on, and with
// the routes of this version.
func Digest(c site.Config) string {
	var text strings.Builder
	fmt.Fprintln(&text, c.BasePath, c.LeaderboardMax, c.Names, c.Tags, c.PublicURL, c.Title)
	for _, r := range c.Routes() {
		fmt.Fprintln(&text, r.Pattern, r.Params, r.ContentType, r.CacheControl, r.Ranges)
	}
	return site.Sum([]byte(text.String())).String()[:16]
}
