package note

import "github.com/followpress/followpress/site"

// NextPrefix begins the keys under which a signed publish announces the next site: its note, its root, and what it will
// put of the manifest, each under its own key behind the prefix. It removes them last.
const NextPrefix = site.NextPrefix
