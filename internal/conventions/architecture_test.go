package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/followpress/followpress/"

// mayImport lists the packages of followpress that each package may import, except in tests.
// ARCHITECTURE.md gives the reasons. A package that is missing here fails the test.
var mayImport = map[string][]string{
	"site":                        {"internal/rawjson", "site/rules", "site/routes"},
	"site/scan":                   {"internal/rawjson", "site", "site/rules"},
	"site/ranks":                  {"site", "site/rules"},
	"site/refresh":                {"site", "site/rules"},
	"site/note":                   {"site"},
	"site/op":                     {"site", "site/rules"}, // pure too; every package that imports site may import it
	"site/routes":                 {},
	"site/page":                   {"site", "templates"},
	"site/shards":                 {"internal/rawjson", "site"},
	"site/settings":               {"site"},
	"site/tags":                   {"site", "site/routes"},
	"site/rules":                  {}, // pure; every package that imports site may import it
	"internal/awskeys":            {},
	"internal/inorder":            {},
	"internal/rawjson":            {},
	"internal/panics":             {},
	"internal/plain":              {},
	"internal/secret":             {"internal/plain"},
	"internal/publicdir":          {},
	"internal/regular":            {},
	"internal/staging":            {"internal/publicdir"},
	"site/data":                   {"site"},
	"site/kept":                   {"site"},
	"snapshot":                    {"site", "internal/staging", "snapshot/internal/folder", "snapshot/internal/lines", "snapshot/memory", "snapshot/internal/rowjson", "snapshot/internal/table"},
	"snapshot/internal/folder":    {"internal/regular", "snapshot/internal/table"},
	"snapshot/memory":             {"site", "snapshot/internal/lines", "snapshot/internal/rowjson", "snapshot/internal/table"},
	"snapshot/internal/table":     {"internal/inorder", "site", "snapshot/internal/lines", "snapshot/internal/parquet", "snapshot/internal/rowjson"},
	"snapshot/internal/lines":     {"snapshot/internal/rowjson"},
	"snapshot/internal/parquet":   {"internal/rawjson", "site", "site/rules", "snapshot/internal/rowjson"},
	"snapshot/internal/rowjson":   {"internal/rawjson", "site", "site/op", "site/rules"},
	"source":                      {"site", "snapshot"},
	"snapshot/pieces":             {"site", "site/kept", "snapshot"},
	"source/audit":                {"internal/sample", "site", "site/op", "site/shards", "snapshot", "source", "source/chain/provider", "storage", "storage/checked"}, // independent: neither source/chain nor source/replay
	"source/badge":                {"internal/secret", "site", "snapshot", "source", "source/internal/ask", "source/internal/collect", "source/internal/store"},
	"source/chain":                {"site", "source", "source/chain/provider", "source/replay"},
	"source/chain/provider":       {"internal/plain", "internal/rawjson", "internal/retry", "internal/secret"},
	"source/follow":               {"site", "site/rules", "snapshot", "snapshot/memory", "source", "source/badge", "source/chain", "source/chain/provider", "source/profile", "source/replay"},
	"source/postgres":             {"internal/secret", "site", "snapshot", "source", "source/replay"},
	"source/internal/ask":         {"source"},
	"source/internal/collect":     {"site", "source/internal/ask", "source/internal/store"},
	"source/internal/store":       {},
	"source/profile":              {"site", "site/refresh", "snapshot", "source", "source/internal/ask", "source/internal/collect", "source/internal/store"},
	"source/replay":               {"site", "snapshot", "snapshot/memory", "source"},
	"internal/release":            {},
	"internal/retry":              {},
	"internal/sample":             {},
	"internal/siteflags":          {"site"},
	"internal/tarentry":           {},
	"storage":                     {"internal/retry", "site", "storage/internal/files", "storage/internal/folder", "storage/internal/location", "storage/internal/object", "storage/internal/s3", "storage/internal/tarfile", "storage/internal/web", "storage/parts"},
	"storage/internal/files":      {"site", "storage/internal/object", "storage/internal/s3"},
	"storage/internal/folder":     {"internal/publicdir", "internal/regular", "site", "storage/internal/object"},
	"storage/internal/location":   {"site"},
	"storage/internal/lru":        {},
	"storage/internal/object":     {"site"},
	"storage/internal/s3":         {"internal/awskeys", "internal/plain", "internal/retry", "site", "storage/internal/object"},
	"storage/internal/storetest":  {"internal/testenv/servers", "internal/testenv/tempdir", "site", "storage/internal/location", "storage/internal/object", "storage/internal/s3"}, // for tests
	"storage/internal/tarfile":    {"internal/regular", "internal/tarentry", "site", "site/shards", "storage/internal/object"},
	"storage/internal/web":        {"site", "storage/internal/object"},
	"storage/parts":               {"internal/publicdir", "internal/regular", "internal/retry", "internal/tarentry", "site", "site/shards", "storage/internal/location", "storage/internal/lru", "storage/internal/object", "storage/internal/s3"},
	"storage/refreshed":           {"internal/inorder", "site", "storage", "storage/internal/folder", "storage/internal/object", "storage/internal/s3"},
	"storage/checked":             {"internal/panics", "site", "site/note", "site/refresh", "site/shards", "storage", "storage/internal/lru", "storage/internal/object"},
	"generator":                   {"site", "site/ranks", "site/routes", "explorer", "generator/render", "generator/summary", "generator/internal/graph", "generator/internal/load", "generator/internal/output", "generator/internal/rank", "generator/internal/units", "generator/internal/whole", "snapshot", "internal/staging"},
	"generator/internal/dataset":  {"site"},
	"generator/internal/graph":    {"internal/inorder", "internal/rawjson", "site", "site/ranks", "generator/render", "snapshot"},
	"generator/internal/load":     {"site", "site/op", "site/refresh", "site/rules", "generator/render", "generator/summary", "generator/internal/graph", "internal/inorder", "snapshot"},
	"generator/internal/output":   {"site", "site/kept", "site/shards", "generator/summary", "generator/internal/units", "generator/internal/whole", "internal/inorder", "internal/publicdir", "internal/regular", "internal/tarentry"},
	"generator/internal/pages":    {"internal/plain", "site", "site/page", "site/routes", "generator/render", "generator/internal/graph", "generator/internal/units", "templates"},
	"generator/internal/rank":     {"site", "site/ranks", "site/rules", "generator/render", "generator/internal/graph", "internal/inorder"},
	"generator/internal/tables":   {"site", "site/data", "site/routes", "generator/render", "generator/internal/dataset", "generator/internal/graph", "generator/internal/units", "snapshot"},
	"generator/internal/units":    {"internal/inorder", "site", "generator/render", "generator/internal/graph"},
	"generator/internal/whole":    {"internal/inorder", "internal/rawjson", "site", "site/ranks", "site/routes", "generator/render", "generator/internal/graph", "generator/internal/pages", "generator/internal/tables", "generator/internal/units", "snapshot"},
	"generator/summary":           {"site", "snapshot"},
	"generator/render":            {"internal/rawjson", "site", "site/ranks", "site/scan", "client", "explorer", "snapshot", "templates", "templates/openapi"},
	"publisher":                   {"site", "site/kept", "site/note", "site/shards", "site/tags", "storage", "publisher/internal/guard", "publisher/internal/inputs", "publisher/internal/lock", "publisher/internal/origin", "publisher/internal/plan", "publisher/internal/report", "publisher/internal/requests", "publisher/internal/sign", "publisher/internal/spool", "publisher/internal/survey", "publisher/internal/transfer"},
	"publisher/internal/guard":    {"site", "publisher/internal/lock", "publisher/internal/requests", "publisher/internal/survey"},
	"publisher/internal/inputs":   {"site", "site/kept", "site/routes", "storage", "publisher/internal/origin", "publisher/internal/requests"},
	"publisher/internal/lock":     {"site", "storage", "publisher/internal/requests"},
	"publisher/internal/origin":   {"site", "site/shards", "site/tags", "storage"},
	"publisher/internal/plan":     {"internal/inorder", "site", "site/note", "site/routes", "site/shards", "storage", "publisher/internal/lock", "publisher/internal/origin", "publisher/internal/requests", "publisher/internal/spool", "publisher/internal/survey"},
	"publisher/internal/report":   {"internal/sample", "site", "storage", "publisher/internal/inputs", "publisher/internal/plan", "publisher/internal/sign", "publisher/internal/survey"},
	"publisher/internal/requests": {"internal/inorder", "internal/retry", "site", "storage"},
	"publisher/internal/sign":     {"site", "site/note", "site/routes", "storage", "publisher/internal/lock", "publisher/internal/origin", "publisher/internal/plan", "publisher/internal/requests", "publisher/internal/transfer"},
	"publisher/internal/spool":    {"site", "storage"},
	"publisher/internal/survey":   {"site", "site/kept", "site/note", "site/refresh", "site/shards", "storage", "publisher/internal/origin", "publisher/internal/requests", "publisher/internal/spool"},
	"publisher/internal/transfer": {"site", "storage", "publisher/internal/origin", "publisher/internal/plan", "publisher/internal/requests"},
	"purger":                      {"internal/plain", "internal/retry", "internal/secret", "site", "site/page", "site/routes", "site/tags"},
	"report":                      {"internal/inorder", "internal/plain", "site", "site/page", "site/shards", "site/refresh", "site/routes", "site/scan", "storage", "templates"},
	"server":                      {"site", "site/page", "site/routes", "site/settings", "site/tags", "storage", "storage/checked", "server/internal/answer", "server/internal/body", "server/internal/cache", "server/internal/current", "server/internal/fetch", "server/internal/fresh", "server/internal/gate", "server/internal/listen", "server/internal/metrics", "server/internal/observe", "server/internal/reply"},
	"server/internal/answer":      {"site", "site/routes", "server/internal/cache", "server/internal/answer/compute", "server/internal/answer/history", "server/internal/answer/lookup", "server/internal/answer/pages", "server/internal/answer/profile", "server/internal/answer/ranked", "server/internal/answer/search", "server/internal/answer/state"},
	"server/internal/body":        {"site", "server/internal/gate", "server/internal/listen"},
	"server/internal/cache":       {"site", "site/scan", "storage", "server/internal/fetch", "server/internal/gate"},
	"server/internal/current":     {"site", "site/settings", "storage", "server/internal/answer", "server/internal/cache", "server/internal/fetch", "server/internal/gate"},
	"server/internal/listen":      {"site", "server/internal/reply"},
	"server/internal/metrics":     {"site"},
	"server/internal/observe":     {"site", "server/internal/gate", "server/internal/metrics", "server/internal/reply"},
	"server/internal/reply":       {"site", "site/routes", "server/internal/cache", "server/internal/fetch"},
	"server/internal/fetch":       {"site", "storage", "storage/checked"},
	"server/internal/fresh":       {"internal/panics", "internal/rawjson", "internal/secret", "site", "site/note", "site/refresh", "site/routes", "site/tags", "site/rules", "storage", "server/internal/cache", "server/internal/fetch", "server/internal/gate"},
	"server/internal/gate":        {},
	"live":                        {"generator", "generator/summary", "server", "site", "site/kept", "source", "storage"},
	"templates":                   {},
	"templates/openapi":           {"internal/rawjson", "site", "site/routes", "site/rules"},
	"edge":                        {"site", "site/page", "site/routes", "site/settings", "site/tags", "templates"},
	"client":                      {"site"},
	"client/examples":             {},
	"explorer":                    {"client", "site", "site/page"},
	"explorer/confusables":        {},
	"fixtures":                    {},
	"internal/testenv/badway":     {},
	"internal/testenv/databases":  {"fixtures/history", "internal/testenv/process", "internal/testenv/servers"},
	"internal/testenv/fakes3":     {},
	"fixtures/graph":              {},
	"fixtures/history":            {}, // the tested code is compared with it
	"internal/testenv/meanrpc":    {"fixtures/history"},
	"internal/twin/answers":       {},
	"internal/twin/memsite":       {"site", "site/shards", "site/routes", "storage", "storage/parts"}, // makes roots and manifests, and answers like a store
	"internal/testenv/mutations":  {},
	"internal/twin/naive":         {}, // the tested code is compared with it
	"internal/testenv/nodes":      {"fixtures/history", "internal/testenv/process", "internal/testenv/servers"},
	"fixtures/odd":                {"site", "site/refresh", "snapshot"},
	"internal/testenv/process":    {},
	"internal/testenv/rounds":     {"source"},
	"internal/testenv/servers":    {"internal/testenv/process"},
	"internal/testenv/tempdir":    {},
	"internal/testenv/testkey":    {"site", "site/note", "internal/twin/memsite"},
	"fixtures/synth":              {"fixtures/graph", "snapshot"},
	"internal/testenv/upstreams":  {},
	"fixtures/worst":              {},
	"bench":                       {"bench/altered", "bench/measure", "bench/rig"},
	"bench/api":                   {"site", "site/routes", "bench/measure", "bench/rig", "internal/testenv/servers"},
	"bench/fallback":              {"bench/measure", "bench/rig", "internal/testenv/servers"},
	"bench/altered":               {},
	"bench/measure":               {"fixtures/graph"},
	"bench/bare":                  {"server", "site", "site/routes"}, // the settings and headers of Serve
	"bench/edge":                  {"site", "site/routes", "bench/measure", "bench/rig"},
	"bench/rig":                   {"bench/measure", "internal/testenv/servers"},
	"bench/live":                  {"bench/measure", "bench/rig", "fixtures/history", "internal/testenv/meanrpc"},
	"bench/sources":               {"bench/measure", "bench/rig", "fixtures/history", "internal/testenv/meanrpc"},
	"bench/publish":               {"site", "bench/altered", "bench/measure", "bench/rig", "internal/testenv/servers"},
	"cmd/internal/audit":          {"internal/secret", "site/note", "snapshot", "source/audit", "source/chain/provider", "storage", "storage/checked", "storage/parts", "cmd/internal/command", "cmd/internal/snapshot"},
	"cmd/internal/command":        {"internal/plain", "internal/release", "internal/siteflags", "site", "site/note", "storage", "storage/parts"},
	"cmd/internal/edge":           {"site", "storage", "edge", "cmd/internal/command"},
	"cmd/internal/generate":       {"internal/release", "internal/siteflags", "site", "site/note", "site/ranks", "generator", "generator/summary", "snapshot", "storage", "storage/checked", "storage/refreshed", "cmd/internal/command"},
	"cmd/internal/key":            {"site/note"},
	"cmd/internal/live":           {"internal/retry", "templates", "templates/openapi", "live", "publisher", "server", "site", "site/note", "site/rules", "snapshot", "source", "source/chain", "source/chain/provider", "source/follow", "storage", "cmd/internal/command", "cmd/internal/generate", "cmd/internal/publish", "cmd/internal/serve", "cmd/internal/snapshot"},
	"cmd/internal/preview":        {"site", "site/data", "site/note", "site/page", "site/routes", "site/scan", "generator", "server", "storage", "templates", "templates/openapi", "client/examples", "fixtures", "cmd/internal/command", "cmd/internal/generate", "cmd/internal/serve"},
	"cmd/internal/publish":        {"internal/awskeys", "internal/plain", "internal/sample", "internal/secret", "site", "site/note", "site/settings", "site/shards", "site/tags", "storage/checked", "generator", "generator/summary", "publisher", "purger", "snapshot/pieces", "storage", "storage/parts", "cmd/internal/command", "cmd/internal/generate", "cmd/internal/key"},
	"cmd/internal/report":         {"report", "generator", "site", "snapshot", "storage", "storage/parts", "cmd/internal/command"},
	"cmd/internal/reproduce":      {"internal/release", "internal/retry", "internal/secret", "site", "site/note", "site/ranks", "site/shards", "generator", "snapshot", "snapshot/pieces", "source", "source/chain", "source/chain/provider", "storage", "storage/checked", "cmd/internal/command", "cmd/internal/snapshot"},
	"cmd/internal/snapshot":       {"internal/secret", "site", "snapshot", "source", "source/badge", "source/chain", "source/chain/provider", "source/postgres", "source/profile", "source/replay", "storage", "cmd/internal/command", "cmd/internal/generate"},
	"cmd/internal/serve":          {"internal/secret", "server", "site", "site/note", "storage", "storage/checked", "storage/parts", "templates/openapi", "cmd/internal/command", "cmd/internal/key"},
	"cmd/followpress": {"client", "cmd/internal/audit", "cmd/internal/command", "cmd/internal/edge", "cmd/internal/generate", "cmd/internal/preview",
		"cmd/internal/key", "cmd/internal/live", "cmd/internal/publish", "cmd/internal/report", "cmd/internal/reproduce", "cmd/internal/serve", "cmd/internal/snapshot"},
	"cmd/preview":  {"cmd/internal/command", "cmd/internal/preview"},
	"cmd/fallback": {"cmd/internal/command", "cmd/internal/serve"}, // small: no code to make or publish a site

	// Packages that compute answers: routes first, then the shared parts.
	"server/internal/answer/compute": {"internal/panics", "site", "server/internal/cache", "server/internal/fetch", "server/internal/gate"},
	"server/internal/answer/history": {"internal/rawjson", "site", "site/op", "site/scan", "storage", "server/internal/fetch", "server/internal/answer/compute", "server/internal/answer/lookup"},
	"server/internal/answer/lookup":  {"site", "site/rules", "site/scan", "storage", "server/internal/fetch", "server/internal/answer/compute"},
	"server/internal/answer/pages":   {"internal/rawjson", "site", "site/rules", "site/scan", "server/internal/answer/compute", "server/internal/answer/lookup", "server/internal/answer/table"},
	"server/internal/answer/profile": {"internal/rawjson", "site", "site/scan", "storage", "server/internal/answer/compute", "server/internal/answer/lookup"},
	"server/internal/answer/ranked":  {"site", "site/scan", "server/internal/fetch", "server/internal/answer/compute", "server/internal/answer/lookup", "server/internal/answer/table"},
	"server/internal/answer/search":  {"site", "site/scan", "storage", "server/internal/cache", "server/internal/fetch", "server/internal/answer/compute", "server/internal/answer/lookup"},
	"server/internal/answer/state":   {"internal/rawjson", "site", "site/rules", "site/scan", "storage", "server/internal/answer/compute", "server/internal/answer/lookup"},
	"server/internal/answer/table":   {"site", "site/rules", "site/scan", "server/internal/fetch", "server/internal/answer/compute", "server/internal/answer/lookup"},

	// A module of its own, which no other package imports.
	"browsers/bench":            {"site", "storage", "bench/measure", "bench/rig", "browsers/internal/browser", "internal/testenv/servers"},
	"browsers/internal/browser": {},
	"browsers/internal/firefox": {"browsers/internal/browser", "internal/testenv/process"},
	"browsers/shown":            {"browsers/internal/browser"},
	"beam/internal/dofn":        {},
	"beam/internal/wire":        {"site", "snapshot"},
	"beam/internal/input":       {"site", "site/refresh", "generator/summary", "generator/render", "snapshot", "storage", "storage/refreshed", "beam/internal/dofn", "beam/internal/wire"},
	"beam/internal/ranking":     {"site", "beam/internal/dofn", "beam/internal/wire"},
	"beam/internal/pipeline":    {"internal/rawjson", "site", "site/shards", "site/refresh", "generator/render", "snapshot", "storage", "storage/parts", "beam/internal/input", "beam/internal/ranking", "beam/internal/dofn", "beam/internal/wire"},
	"beam/internal/launch":      {"internal/release", "internal/siteflags", "site", "generator/summary", "storage", "storage/parts", "beam/internal/input", "beam/internal/pipeline"},
	"beam/internal/worker":      {},
	"beam/cmd/followpress-beam": {"beam/internal/launch", "beam/internal/worker"},
	"beam/internal/difftest":    {"internal/release", "site", "snapshot", "generator", "generator/summary", "storage", "storage/refreshed", "internal/twin/memsite", "internal/twin/naive", "fixtures/odd"}, // for tests, as the next two
	"beam/internal/loopback":    {"internal/testenv/process"},
	"beam/internal/flink":       {"beam/internal/loopback", "internal/testenv/process", "internal/testenv/servers"},
}

// mustNotImport lists imports that would break a promise of a package.
var mustNotImport = map[string][]string{
	"site":             {"os", "io/fs", "net", "github.com/spf13/afero"}, // pure functions
	"snapshot":         {"net", "net/http"},
	"generator":        {"net", "net/http", "github.com/minio/minio-go/v7"},
	"generator/render": {"os", "io/fs", "net", "net/http", "github.com/spf13/afero"}, // no input or output, as the next five

	"generator/internal/graph":  {"os", "io/fs", "github.com/spf13/afero"},
	"generator/internal/pages":  {"os", "io/fs", "github.com/spf13/afero"},
	"generator/internal/tables": {"os", "io/fs", "github.com/spf13/afero"},
	"generator/internal/units":  {"os", "io/fs", "github.com/spf13/afero"},
	"generator/internal/whole":  {"os", "io/fs", "github.com/spf13/afero"},

	"server":            {"flag", "github.com/alecthomas/kong"},
	"publisher":         {"flag", "github.com/alecthomas/kong", "net/http", "github.com/minio/minio-go/v7"},       // S3 belongs to storage
	"report":            {"flag", "os", "net/http", "github.com/alecthomas/kong", "github.com/minio/minio-go/v7"}, // S3 belongs to storage
	"purger":            {"flag", "os", "github.com/alecthomas/kong", "github.com/minio/minio-go/v7"},
	"internal/retry":    {"net", "net/http", "github.com/minio/minio-go/v7"},  // independent of the kind of request
	"templates/openapi": {"os", "net/http", "html/template", "text/template"}, // the last two would make the fallback larger
	"explorer":          {"os", "net/http", "flag", "github.com/alecthomas/kong"},
	"client":            {"os", "net/http", "flag", "github.com/alecthomas/kong"},
	"live":              {"os", "flag", "github.com/alecthomas/kong", "github.com/minio/minio-go/v7"}, // no nodes, no flags
	"edge":              {"os", "net/http", "flag", "github.com/alecthomas/kong"},
	"source/audit":      {module + "site/rules"}, // independent of source/replay

	"beam/internal/wire":     {"os", "io/fs", "net", "github.com/spf13/afero"},                                         // pure
	"beam/internal/ranking":  {"os", "io/fs", "net", "github.com/spf13/afero"},                                         // pure
	"beam/internal/input":    {"os", "flag", "github.com/alecthomas/kong", "net/http", "github.com/minio/minio-go/v7"}, // S3 belongs to storage
	"beam/internal/pipeline": {"os", "flag", "github.com/alecthomas/kong", "net/http", "github.com/minio/minio-go/v7"}, // S3 belongs to storage
}

// mustNotReach lists packages that a package must not import even indirectly, because it checks
// their results independently.
var mustNotReach = map[string][]string{
	"source/audit": {"generator", "source/chain", "source/follow", "source/replay"},
}

// onlyIn names the only folder whose imports may begin with a path.
var onlyIn = map[string]string{
	"github.com/apache/beam/":                             "beam/",
	"github.com/chromedp/":                                "browsers/",
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/": "beam/cmd/", // stages do not depend on the engine
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx":  "beam/cmd/", // contains the engines
}

// faces are packages whose exported names are for callers, with their maximum of exported names,
// not counting methods, and of lines. Lower the bounds, never raise them.
var faces = map[string]struct{ names, lines int }{
	"generator": {10, 670}, "publisher": {31, 1_000}, "server": {16, 985}, "site": {198, 3_421}, "snapshot": {40, 811},
	"source": {30, 550}, "storage": {39, 370},
}

// TestFaces: exported names are promises; packages below do the work.
func TestFaces(t *testing.T) {
	for pkg, most := range faces {
		names, lines, err := face(pkg)
		if err != nil || names > most.names || lines > most.lines {
			t.Errorf("package %s: got %d exported names and %d lines, %v, want at most %+v: what one package uses belongs there", pkg, names, lines, err, most)
		}
	}
}

// TestRooms: the top-level folders show the parts of the product.
func TestRooms(t *testing.T) {
	const mostFolders = 21
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	folders := 0
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains([]string{"node_modules", "out", "bin", "dist"}, e.Name()) {
			folders++
		}
	}
	if folders > mostFolders {
		t.Errorf("folders: got %d, want at most %d", folders, mostFolders)
	}
}

// face counts the exported functions, types, constants and variables of a package, and its lines.
func face(dir string) (names, lines int, err error) {
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		return 0, 0, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, 0, err
		}
		lines += strings.Count(string(text), "\n")
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			return 0, 0, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.IsExported() {
					names++
				}
				return false
			case *ast.TypeSpec:
				if n.Name.IsExported() {
					names++
				}
				return false
			case *ast.ValueSpec:
				for _, id := range n.Names {
					if id.IsExported() {
						names++
					}
				}
			}
			return true
		})
	}
	return names, lines, nil
}

func TestArchitecture(t *testing.T) {
	seen := map[string]bool{}
	imports := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"tools", "node_modules", "out", "testdata"}, entry.Name())) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		pkg := path.Dir(filepath.ToSlash(file))
		seen[pkg] = true
		allowed, known := mayImport[pkg]
		if !known {
			t.Errorf("%s: the package is not in the table of mayImport: decide what it may import", file)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			ours, ok := strings.CutPrefix(imported, module)
			if ok {
				imports[pkg] = append(imports[pkg], ours)
			}
			if (ours == "site/rules" || ours == "site/op") && pkg != "site" {
				ours = "site"
			}
			if ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s: %s may import only %v", file, ours, pkg, allowed)
			}
			face, _, _ := strings.Cut(pkg, "/internal/") // the limits of a package apply to its subpackages
			if slices.Contains(mustNotImport[pkg], imported) || slices.Contains(mustNotImport[face], imported) {
				t.Errorf("%s imports %s", file, imported)
			}
			for prefix, home := range onlyIn {
				if strings.HasPrefix(imported, prefix) && !strings.HasPrefix(pkg, home) {
					t.Errorf("%s imports %s: only packages in %s may", file, imported, home)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, others := range mustNotReach {
		for _, reached := range reachedFrom(pkg, imports) {
			if slices.Contains(others, reached) {
				t.Errorf("%s imports %s by way of others", pkg, reached)
			}
		}
	}
	for pkg := range mayImport {
		if !seen[pkg] {
			t.Errorf("%s is in the table but not in the tree", pkg)
		}
	}
}

// reachedFrom returns a package and all packages that it imports directly or indirectly.
func reachedFrom(pkg string, imports map[string][]string) []string {
	reached := []string{pkg}
	for i := 0; i < len(reached); i++ {
		for _, next := range imports[reached[i]] {
			if !slices.Contains(reached, next) {
				reached = append(reached, next)
			}
		}
	}
	return reached
}
