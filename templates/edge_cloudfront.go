package templates

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
)

// maxCloudFrontFunction is how long the code of a CloudFront function may be.
const maxCloudFrontFunction = 10 * 1024

// CloudFrontFunction is the code of the viewer-request function.
func (v *edgeView) CloudFrontFunction() (string, error) {
	small := *v
	small.Small = true
	small.Table = tableOfCloudFront(v.Table)
	var source bytes.Buffer
	if err := edgeTemplates.ExecuteTemplate(&source, "cloudfront.js", small); err != nil {
		return "", err
	}
	code := squeeze(source.String())
	if len(code) > maxCloudFrontFunction {
		return "", fmt.Errorf("the function has %d bytes, CloudFront takes %d: use a shorter base path", len(code), maxCloudFrontFunction)
	}
	return code, nil
}

// tableOfCloudFront leaves out what the function has no use for: it gives answers of its own
// only to requests that are not understood.
func tableOfCloudFront(table site.Edge) site.Edge {
	table.Empty = site.EdgeBody{}
	table.Routes = slices.Clone(table.Routes)
	for i := range table.Routes {
		r := &table.Routes[i]
		r.Caching = ""
		if r.Subject != site.EdgeUser {
			r.Absent = "" // the origins say so
		}
	}
	problems := maps.Clone(table.Problems)
	for _, p := range []*site.Problem{site.NoSuchList, site.TooManyRefreshes, site.InternalError, site.Unavailable} {
		delete(problems, p.Name)
	}
	table.Problems = problems
	return table
}

var comment = regexp.MustCompile(`(?m)^//.*\n| // [^'\n]*$`)

// squeeze leaves out comments, indentation and empty lines, for which the limit has no room.
func squeeze(source string) string {
	var kept []string
	for line := range strings.SplitSeq(source, "\n") {
		line = strings.TrimSpace(line)
		if line = comment.ReplaceAllString(line+"\n", ""); strings.TrimSpace(line) != "" {
			kept = append(kept, strings.TrimSpace(line))
		}
	}
	return strings.Join(kept, "\n") + "\n"
}

func indent(spaces int, text string) string {
	prefix := strings.Repeat(" ", spaces)
	return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix) + "\n"
}
