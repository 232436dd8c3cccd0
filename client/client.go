// Package client embeds the JavaScript library that reads a site without a server. The generator puts its
// modules into every site of the whole read API. docs/client.md describes the library.
//
// Other modules may import this package: from version 1.0.0 on its API follows semantic versioning.
package client

import (
	"crypto/sha512"
	"embed"
	"encoding/base64"
	"path"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/followpress/followpress/site"
)

//go:embed followpress.js followpress.d.ts shim.js shim.d.ts qr.js history.js relations.js proof.js lib
var sources embed.FS

// A File is a module of the library or its types.
type File struct {
	Name string // without a folder; site.ClientKey returns its key
	Body []byte
}

// Integrity returns the file's hash for Subresource Integrity: sha384- and base64.
func (f File) Integrity() string {
	digest := sha512.Sum384(f.Body)
	return "sha384-" + base64.StdEncoding.EncodeToString(digest[:])
}

// Files returns the library as sites hold it, with minified modules. Callers must not change the files.
func Files() []File { return files() }

var files = sync.OnceValue(func() []File {
	var all []File
	for _, name := range site.ClientFiles() {
		body, err := sources.ReadFile(name)
		if err != nil {
			panic("client: " + err.Error()) // it is embedded
		}
		if strings.HasSuffix(name, ".js") {
			body = minify(name)
		}
		all = append(all, File{name, body})
	}
	return all
})

// minify bundles a module with the libraries below lib that it imports. Other modules stay imports.
func minify(name string) []byte {
	const embedded = "embedded"
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{name}, Bundle: true, Outdir: "/",
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LogLevel: api.LogLevelSilent,
		Format: api.FormatESModule, Target: api.ES2022, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsEndOfFile,
		Plugins: []api.Plugin{{Name: embedded, Setup: func(b api.PluginBuild) {
			b.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
				if a.Kind != api.ResolveEntryPoint && !strings.HasPrefix(a.Path, "./lib/") {
					return api.OnResolveResult{Path: a.Path, External: true}, nil
				}
				return api.OnResolveResult{Path: path.Clean(a.Path), Namespace: embedded}, nil
			})
			b.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: embedded}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
				body, err := sources.ReadFile(a.Path)
				text := licence(a.Path) + string(body)
				return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, err
			})
		}}},
	})
	if len(result.Errors) > 0 {
		panic("client: " + name + ": " + result.Errors[0].Text) // the sources are fixed
	}
	return result.OutputFiles[0].Contents
}

// licence returns the license of a file below lib, as a comment that minifying keeps.
func licence(name string) string {
	if !strings.HasPrefix(name, "lib/") {
		return ""
	}
	text, err := sources.ReadFile(path.Join("lib", strings.Split(name, "/")[1], "LICENSE"))
	if err != nil {
		panic("client: " + err.Error())
	}
	return "/*! " + strings.TrimSpace(string(text)) + "\n*/\n"
}
