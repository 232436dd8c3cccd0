package explorer

import (
	"io/fs"
	"path"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/followpress/followpress/client"
)

// embedded is the namespace of modules that are embedded in this program.
const embedded = "embedded"

// libraries maps imports of libraries and of client modules to files.
var libraries = map[string]string{
	"preact":             "lib/preact/dist/preact.mjs",
	"preact/hooks":       "lib/preact/hooks/dist/hooks.mjs",
	"preact/jsx-runtime": "lib/preact/jsx-runtime/dist/jsxRuntime.mjs",
	"uplot":              "lib/uplot/dist/uPlot.esm.js",
	"uplot.css":          "lib/uplot/dist/uPlot.min.css",
	"d3-color":           "lib/d3-color/dist/d3-color.mjs",
	"d3-dispatch":        "lib/d3-dispatch/dist/d3-dispatch.mjs",
	"d3-drag":            "lib/d3-drag/dist/d3-drag.mjs",
	"d3-ease":            "lib/d3-ease/dist/d3-ease.mjs",
	"d3-force":           "lib/d3-force/dist/d3-force.mjs",
	"d3-interpolate":     "lib/d3-interpolate/dist/d3-interpolate.mjs",
	"d3-quadtree":        "lib/d3-quadtree/dist/d3-quadtree.mjs",
	"d3-selection":       "lib/d3-selection/dist/d3-selection.mjs",
	"d3-timer":           "lib/d3-timer/dist/d3-timer.mjs",
	"d3-transition":      "lib/d3-transition/dist/d3-transition.mjs",
	"d3-zoom":            "lib/d3-zoom/dist/d3-zoom.mjs",

	"@followpress/client": clientModule,
	"@followpress/qr":     "qr.js",
}

// clientModule is the import path of the client library, whose source is in another package.
const clientModule = "followpress.js"

// bundle bundles the embedded sources and the modules that plugins load. The input is constant, so
// an error is a mistake in the sources.
func bundle(options api.BuildOptions) api.BuildResult {
	options.Bundle, options.Outdir, options.LogLevel = true, "/", api.LogLevelSilent
	options.MinifyWhitespace, options.MinifyIdentifiers, options.MinifySyntax = true, true, true
	options.Target, options.Charset, options.LegalComments = api.ES2022, api.CharsetUTF8, api.LegalCommentsEndOfFile
	options.JSX, options.JSXImportSource = api.JSXAutomatic, "preact"
	options.Plugins = append(options.Plugins, api.Plugin{Name: embedded, Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: resolve(a), Namespace: embedded}, nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: embedded}, load)
	}})
	result := api.Build(options)
	if len(result.Errors) > 0 {
		panic("explorer: " + strings.Join(api.FormatMessages(result.Errors, api.FormatMessagesOptions{}), ""))
	}
	return result
}

// resolve returns the file of an import. Imports of the explorer's modules have no extension.
func resolve(a api.OnResolveArgs) string {
	if file, ok := libraries[a.Path]; ok {
		return file
	}
	if a.Kind == api.ResolveEntryPoint {
		return path.Clean(a.Path)
	}
	file := path.Join(path.Dir(a.Importer), a.Path)
	for _, extension := range []string{".ts", ".tsx"} {
		if _, err := fs.Stat(sources, file+extension); err == nil {
			return file + extension
		}
	}
	return file
}

func load(a api.OnLoadArgs) (api.OnLoadResult, error) {
	loader := map[string]api.Loader{".ts": api.LoaderTS, ".tsx": api.LoaderTSX, ".css": api.LoaderCSS}[path.Ext(a.Path)]
	if loader == api.LoaderNone {
		loader = api.LoaderJS
	}
	body, err := source(a.Path)
	if err != nil {
		return api.OnLoadResult{}, err
	}
	licence, err := licence(a.Path)
	text := licence + string(body)
	return api.OnLoadResult{Contents: &text, Loader: loader}, err
}

// licence returns the license of a file's library as a legal comment: every output ends with the
// licenses of its libraries, each once.
func licence(name string) (string, error) {
	library, ok := strings.CutPrefix(name, "lib/")
	if !ok {
		return "", nil
	}
	library, _, _ = strings.Cut(library, "/")
	text, err := sources.ReadFile(path.Join("lib", library, "LICENSE"))
	return "/*! " + library + "\n\n" + strings.TrimSpace(string(text)) + "\n*/\n", err
}

func source(name string) ([]byte, error) {
	for _, f := range client.Files() {
		if f.Name == name {
			return f.Body, nil
		}
	}
	return sources.ReadFile(name)
}
