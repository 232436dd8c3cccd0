// Package explorer holds the page that shows a site to people: search, profiles, leaderboards and a
// picture of the graph, made in the browser from the site's own objects. The generator puts its files
// into every site. docs/explorer.md describes it.
//
// # The path of a view
//
//  1. bundle.go bundles TypeScript and the libraries in lib/. explorer.go renders the page, which names the files
//     of the first view.
//  2. In the browser src/router.ts reads the place from the address, and explorer.tsx loads its view. Only data/
//     knows the API: it asks the client library, and reads a few objects itself (top, network; history.ts and
//     ops.ts for operations). Views are made of the components in ui/; graph/ lays out and paints a
//     neighborhood. texts/ has all texts.
//  3. Profile data are texts. ui/links.ts alone decides which of them become URLs.
//  4. On a live site, data/live.ts follows the rounds: it replaces the client's site and redraws the screen.
//     useLoad keeps the old content until then.
//  5. With public keys, data/site.ts reads through the client library's checks. data/proof.ts reports their results
//     and the keys that this browser keeps; ui/seal.tsx and views/proof.tsx show them.
//  6. data/mine.ts remembers the reader's account and the accounts visited. relations.ts reads the states between
//     that account and others, visits.ts and news.ts find news for it. ui/slots.tsx has the places for ui/mine.tsx.
//  7. data/newer.ts notices a newer site; views then start over.
//  8. sw.ts and worker.ts keep objects for visits without a network.
//
// # The explorer is bundled when it is asked for
//
// A bundle that is committed would have to be made again with each change, and reviewed. esbuild is a Go library and
// takes some tenths of a second, while the snapshot is read. So the sources are the only form of the explorer, and a
// build needs nothing but Go.
//
// The API may change in any release.
package explorer

import (
	"bytes"
	"embed"
	"html/template"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"
	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
)

//go:embed src lib
var sources embed.FS

// A File is a file of the explorer.
type File struct {
	Name string // without a folder
	Body []byte
}

// Files with fixed names. All other names contain a hash of the content.
const (
	Page   = "index.html"
	Worker = "sw.js"
)

// Files returns the files of the explorer of a site, sorted by name. Callers must not change them.
// Only the page depends on the configuration: hosts of pictures, public keys, title, home, other
// parts of the site, and the content without scripts.
func Files(config site.Config) []File { return bundled().filesFor(config) }

// Spoken returns the files of an explorer with another TypeScript module instead of
// src/texts/own.ts for its texts. Tests use it for longer texts, as in other languages.
func Spoken(config site.Config, own string) []File {
	return build(api.Plugin{Name: "own", Setup: func(b api.PluginBuild) {
		b.OnLoad(api.OnLoadOptions{Filter: `^src/texts/own\.ts$`, Namespace: embedded}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
			return api.OnLoadResult{Contents: &own, Loader: api.LoaderTS}, nil
		})
	}}).filesFor(config)
}

// Bundle does the one-time work of Files, so that it can begin before the configuration is known.
func Bundle() { bundled() }

// A firstLoad names the files that the page loads first.
type firstLoad struct {
	Script, Style string
	Imported      []string // modules that the script imports, so that all load at once
}

// A built explorer lacks only its page.
type built struct {
	files  []File
	loaded firstLoad
}

// filesFor returns the files of the explorer for a site: the built files, and the page with the settings of the site.
func (b built) filesFor(config site.Config) []File {
	files := append([]File{{Page, pageOf(b.loaded, config)}}, b.files...)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files
}

var bundled = sync.OnceValue(func() built { return build() })

func build(plugins ...api.Plugin) built {
	app := bundle(api.BuildOptions{
		EntryPoints: []string{"src/explorer.tsx", "src/explorer.css"},
		EntryNames:  "[name]-[hash]", ChunkNames: "[name]-[hash]",
		Format: api.FormatESModule, Splitting: true, Metafile: true, Plugins: plugins,
	})
	var all []File
	var names []string
	for _, f := range app.OutputFiles {
		names = append(names, path.Base(f.Path))
		all = append(all, File{path.Base(f.Path), f.Contents})
	}
	slices.Sort(names)
	// Another list of names changes the worker, so that browsers notice the new version.
	list, err := json.Marshal(append([]string{Page}, names...))
	if err != nil {
		panic("explorer: " + err.Error()) // texts always encode
	}
	worker := bundle(api.BuildOptions{
		EntryPoints: []string{"src/sw.ts"}, EntryNames: "[name]",
		Format: api.FormatIIFE, Define: map[string]string{"FILES": string(list)},
	})
	return built{append(all, File{Worker, worker.OutputFiles[0].Contents}), firstOf(app.Metafile)}
}

// firstOf returns the files that the page loads first.
func firstOf(metafile string) (loaded firstLoad) {
	var meta struct {
		Outputs map[string]struct {
			EntryPoint string
			Imports    []struct{ Path, Kind string }
		}
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		panic("explorer: " + err.Error()) // esbuild wrote it
	}
	for name, output := range meta.Outputs {
		switch strings.TrimPrefix(output.EntryPoint, embedded+":") {
		case "src/explorer.css":
			loaded.Style = path.Base(name)
		case "src/explorer.tsx":
			loaded.Script = path.Base(name)
			for _, i := range output.Imports {
				if i.Kind == "import-statement" {
					loaded.Imported = append(loaded.Imported, path.Base(i.Path))
				}
			}
		}
	}
	return loaded
}

// pageOf renders the page. Its policy names the hosts of pictures twice: the page fetches pictures
// to check their bytes, and shows only its own drawings of them.
func pageOf(loaded firstLoad, config site.Config) []byte {
	source, err := sources.ReadFile("src/index.html")
	if err != nil {
		panic("explorer: " + err.Error()) // it is embedded
	}
	hosts, all := config.PictureHosts()
	connect := hosts
	if all {
		connect = []string{"https:"}
	}
	var b bytes.Buffer
	if err := template.Must(template.New(Page).Parse(string(source))).Execute(&b, map[string]any{
		"Loaded": loaded, "Pictures": config.Pictures, "Keys": config.ExplorerKeys, "Images": hosts, "Connect": connect,
		"Title": config.Title, "About": config.About, "Logo": config.Logo, "LogoHost": page.LogoHost(config), "Colour": config.Colour, "Home": config.Home,
		"Pages": config.Pages, "Reports": config.Reports,
	}); err != nil {
		panic("explorer: " + err.Error())
	}
	return b.Bytes()
}
