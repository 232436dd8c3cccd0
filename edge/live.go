package edge

import (
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
)

// exposeLive lets pages of any origin read the headers of live answers too.
func exposeLive(every []Header) []Header {
	every = slices.Clone(every)
	for i, h := range every {
		if h.Name == "access-control-expose-headers" {
			every[i].Value = exposed(h.Value)
		}
	}
	return every
}

// exposed adds the headers of live answers to a list of headers, unless it has them.
func exposed(list string) string {
	names := strings.Split(list, ", ")
	for _, name := range site.LiveHeaders() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// LiveHeaders are the names of the headers of live answers in lower case, none without live.
func (v *view) LiveHeaders() []string {
	if v.Live == nil {
		return nil
	}
	return strings.Split(strings.ToLower(strings.Join(site.LiveHeaders(), " ")), " ")
}
