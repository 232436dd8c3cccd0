package edge

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
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

// A cloudFrontOrigin is an origin with the longest time between two packets of its answer.
type cloudFrontOrigin struct {
	Origin  *origin
	Seconds int
}

// LiveOrigins returns live as two origins: one for most requests, and one for requests that wait
// for a block, fresh data or events.
func (v cloudFrontView) LiveOrigins() []cloudFrontOrigin {
	if v.Live == nil {
		return nil
	}
	patient := *v.Live
	patient.ShortName = "patient"
	return []cloudFrontOrigin{{v.Live, 1}, {&patient, 30}}
}

// maxCloudFrontFunction is the largest size that CloudFront allows for a function, in bytes.
const maxCloudFrontFunction = 10 * 1024

func cloudFrontFunction(v view) (string, error) {
	source, err := cloudFrontSource(v)
	if err != nil {
		return "", err
	}
	code, err := minify(source)
	if err != nil {
		return "", err
	}
	if len(code) > maxCloudFrontFunction {
		return "", fmt.Errorf("the function has %d bytes, CloudFront takes %d: use a shorter base path, or fewer parameters of routes", len(code), maxCloudFrontFunction)
	}
	return code, nil
}

func cloudFrontSource(v view) (string, error) {
	v.Small, v.Compact = true, v.EFP
	v.Table = tableOfCloudFront(v.Table, v.Alone)
	if v.Compact {
		v.Table = v.compactTable()
	}
	templates, err := definition{parts: []string{"cloudfront.js", "resolve.js"}}.templates()
	if err != nil {
		return "", err
	}
	var source bytes.Buffer
	err = templates.ExecuteTemplate(&source, "cloudfront.js", v)
	return source.String(), err
}

// tableOfCloudFront omits data that the function does not need: it answers only bad requests itself.
func tableOfCloudFront(table Table, alone bool) Table {
	table.Empty = Answer{}
	table.Every = headersOf(site.EveryHeader()) // the headers policy adds settings.Header
	table.Routes = slices.Clone(table.Routes)
	for i := range table.Routes {
		r := &table.Routes[i]
		r.Caching = ""
		if r.Subject != SubjectUser {
			r.Absent = "" // the origin answers
		}
	}
	problems := maps.Clone(table.Problems)
	unused := []*site.Problem{site.NoSuchList, site.NoAvatar, site.TooManyRefreshes, site.InternalError, site.BadBatch}
	if alone {
		unused = append(unused, site.BodyTooLarge)
	} else {
		unused = append(unused, site.Unavailable)
	}
	for _, p := range unused {
		delete(problems, p.Name)
	}
	table.Problems = problems
	return table
}

// compactTable omits what all rows of lists or users share, shortens their paths, and joins the rows of stored objects,
// whose absence the origin reports.
func (v *view) compactTable() Table {
	table := v.Table
	table.Routes = nil
	stored := false
	for _, r := range v.Table.Routes {
		if r.Subject == SubjectList {
			v.LegalList = r.Legal
		}
		r.Legal, r.Problem, r.Absent, r.Caching, r.Unknown, r.Empty.ETag = "", "", "", "", false, ""
		if v.HasFallback {
			r.Empty = Answer{}
		}
		if r.Most == usualMost {
			r.Most = 0
		}
		if v.Alone && r.Computed && r.Empty.Body == "" && !r.Tagged { // no answer is possible, except errors for bad values
			r.Params = slices.DeleteFunc(slices.Clone(r.Params), func(p site.Param) bool { return table.Params[p].Problem == "" })
		}
		if r.Subject == SubjectStored {
			if stored {
				continue
			}
			stored, r.Path = true, v.StoredPaths
		}
		table.Routes = append(table.Routes, r)
	}
	table.Routes = groupAlike(table.Routes)
	table.Routes = v.joinTwins(table.Routes)
	table.Params = maps.Clone(table.Params)
	for name, p := range table.Params {
		if p.Number {
			v.LegalNumber, p.Legal = p.Legal, ""
			table.Params[name] = p
		}
	}
	maps.DeleteFunc(table.Params, func(p site.Param, _ Param) bool {
		return !slices.ContainsFunc(table.Routes, func(r Row) bool { return slices.Contains(r.Params, p) })
	})
	v.Titles = map[int]string{}
	table.Problems = maps.Clone(table.Problems)
	for name, p := range table.Problems {
		v.Titles[p.Status] = p.Title
		p.Title = ""
		if (p.Caching == v.NoStore) != (p.Status > site.NoSuchRoute.Status) {
			panic("edge: the function tells by its status how long a problem may be kept: " + name)
		}
		p.Caching = ""
		table.Problems[name] = p
	}
	return table
}

// usualMost is the largest limit of most routes, which a compact table leaves out.
const usualMost = 1000

// UsualMost is for templates.
func (view) UsualMost() int { return usualMost }

// joinTwins shortens paths: without ^ and $, with ~ for the base path and @ for a variable. It joins pairs of rows that
// differ only in users and lists.
func (v *view) joinTwins(routes []Row) []Row {
	var rows []Row
	at := map[string]int{}
	for _, r := range routes {
		path := strings.TrimSuffix(strings.TrimPrefix(r.Path, "^"), "$")
		path = strings.ReplaceAll(strings.ReplaceAll(path, v.BaseExpression, "~"), "([^/]*)", "@")
		either := strings.NewReplacer("~users/", "~(?:users|lists)/", "~lists/", "~(?:users|lists)/").Replace(path)
		r.Route, r.Direct, r.Subject, r.Path = nil, "", "", either
		key := fmt.Sprintf("%+v", r)
		if i, ok := at[key]; ok {
			rows[i].Path = either
			continue
		}
		at[key], r.Path = len(rows), path
		rows = append(rows, r)
	}
	return rows
}

// storedPaths matches the paths of all stored objects, and of some missing ones.
func storedPaths(c site.Config) string {
	var folders, files []string
	for _, pattern := range c.PublicKeys() {
		folder, isFolder := strings.CutSuffix(pattern, "/*")
		switch {
		case folder == c.BasePath:
		case isFolder:
			folders = append(folders, folder)
		default:
			files = append(files, regexp.QuoteMeta(pattern))
		}
	}
	return "^(?:(?:" + strings.Join(folders, "|") + ")(?:/_?[0-9a-z][0-9A-Za-z=.-]*)+|" + strings.Join(files, "|") + ")$"
}

// minify shrinks the function below the limit, with room for more routes and parameters. It skips the first line, an
// import, which would make the script a module, whose handler may be renamed.
func minify(source string) (string, error) {
	imports, script, _ := strings.Cut(source, "\n")
	result := api.Transform(script, api.TransformOptions{
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, Target: api.ES2015, Charset: api.CharsetUTF8,
		// Only the function reads these. No parameter, header or property of CloudFront has one of these names.
		MangleProps: "^(address|anyCase|computed|default|exact|forward|kind|least|legal|list|matcher|most|number|only|other|params|path|post|" +
			"problem|problems|routes|selects|tagged|text|uncertain|user|variant|words)$", MangleQuoted: api.MangleQuotedTrue,
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
