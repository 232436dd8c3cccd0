package edge

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/evanw/esbuild/pkg/api"

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
	code, err := minify(source.String())
	if err != nil {
		return "", err
	}
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

// minify makes the function fit into the limit, with room for more routes and parameters.
// The first line, an import, stays as it is: a script with it would be a module, whose
// handler may be renamed.
func minify(source string) (string, error) {
	imports, script, _ := strings.Cut(source, "\n")
	result := api.Transform(script, api.TransformOptions{
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, Target: api.ES2015, Charset: api.CharsetUTF8,
	})
	if len(result.Errors) > 0 {
		return "", fmt.Errorf("minify: %s", result.Errors[0].Text)
	}
	return imports + "\n" + string(result.Code), nil
}

func indent(spaces int, text string) string {
	prefix := strings.Repeat(" ", spaces)
	return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix) + "\n"
}
