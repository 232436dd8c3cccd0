package edge

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/followpress/followpress/site"
)

// CloudFront is AWS CloudFront with a CloudFront Function.
const CloudFront Kind = "cloudfront"

func init() {
	definitions[CloudFront] = definition{
		outputs: [][2]string{{"function.js", "function.js"}, {"cloudfront.yaml", "cloudfront.yaml"}},
		funcs:   template.FuncMap{"indent": indent},
		view: func(v *view) (any, error) {
			code, err := cloudFrontFunction(*v)
			return cloudFrontView{v, code}, err
		},
	}
}

type cloudFrontView struct {
	*view
	Function string // code of the viewer-request function
}

// maxCloudFrontFunction is the largest size that CloudFront allows for a function, in bytes.
const maxCloudFrontFunction = 10 * 1024

func cloudFrontFunction(v view) (string, error) {
	v.Small, v.Table = true, tableOfCloudFront(v.Table)
	templates, err := definition{parts: []string{"cloudfront.js", "resolve.js"}}.templates()
	if err != nil {
		return "", err
	}
	var source bytes.Buffer
	if err := templates.ExecuteTemplate(&source, "cloudfront.js", v); err != nil {
		return "", err
	}
	code := squeeze(source.String())
	if len(code) > maxCloudFrontFunction {
		return "", fmt.Errorf("the function has %d bytes, CloudFront takes %d: use a shorter base path, or fewer parameters of routes", len(code), maxCloudFrontFunction)
	}
	return code, nil
}

// tableOfCloudFront leaves out what the function does not need: it answers bad requests
// itself, and nothing else.
func tableOfCloudFront(table site.Edge) site.Edge {
	table.Empty = site.EdgeBody{}
	table.Routes = slices.Clone(table.Routes)
	for i := range table.Routes {
		r := &table.Routes[i]
		r.Caching = ""
		if r.Subject != site.EdgeUser {
			r.Absent = "" // the origin answers
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

// squeeze removes comments, indentation and empty lines: they do not fit into the limit.
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
