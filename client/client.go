// Package client holds the library that reads a site without a server, for browsers: an ES module
// that gives the answers of the API, and a fetch for programs that ask the service. The generator
// puts both into every site that has the whole read API. docs/client.md describes them.
package client

import (
	"embed"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/followpress/followpress/site"
)

//go:embed followpress.js followpress.d.ts shim.js shim.d.ts
var sources embed.FS

// A File is a file of the library.
type File struct {
	Name string // without a folder; site.ClientKey makes it a key
	Body []byte
}

// Files returns the files of the library as sites have them, the scripts minified. Callers must not
// change them.
func Files() []File { return files() }

var files = sync.OnceValue(func() []File {
	var all []File
	for _, name := range append(site.Scripts(), site.ScriptTypes()...) {
		body, err := sources.ReadFile(name)
		if err != nil {
			panic("client: " + err.Error()) // it is embedded
		}
		if strings.HasSuffix(name, ".js") {
			body = minify(name, body)
		}
		all = append(all, File{name, body})
	}
	return all
})

func minify(name string, source []byte) []byte {
	result := api.Transform(string(source), api.TransformOptions{
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		Format: api.FormatESModule, Target: api.ES2022, Charset: api.CharsetUTF8,
	})
	if len(result.Errors) > 0 {
		panic("client: " + name + ": " + result.Errors[0].Text) // the sources are fixed
	}
	return result.Code
}
