package generator_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/client"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates/openapi"
)

// A twin is a site of the API efp with the reference answers.
type twin struct {
	t       testing.TB
	config  site.Config
	objects objects
	graph   *naive.Graph
	model   *model
	people  map[string]person
	holders map[string][]naiveRow
}

// newTwin makes a site of a snapshot whose tables are plain or packed by gzip.
func newTwin(t testing.TB, fsys fs.FS, config site.Config) *twin {
	t.Helper()
	s := readSnapshot(t, fsys)
	config.API = site.APIEFP
	config, err := config.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	g, err := naive.Load(fsys, naive.Config{
		BasePath: config.BasePath, BadgesField: config.BadgesField, LeaderboardMax: config.LeaderboardMax, ProfileURL: config.ProfileURL,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &twin{t, config, inMemory(t, s, generator.Options{Config: config}), g, newModel(t, s), map[string]person{}, map[string][]naiveRow{}}
}

// readSnapshot reads the files of a snapshot, unpacked.
func readSnapshot(t testing.TB, fsys fs.FS) snapshot {
	t.Helper()
	s := snapshot{}
	names, err := fs.Glob(fsys, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := fsys.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		content := io.Reader(file)
		if strings.HasSuffix(name, ".gz") {
			if content, err = gzip.NewReader(file); err != nil {
				t.Fatal(err)
			}
		}
		body, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		s[strings.TrimSuffix(name, ".gz")] = string(body)
	}
	return s
}

// answer returns the reference answer, which must be a 200.
func (w *twin) answer(path, query string) string {
	w.t.Helper()
	var segments []string
	for segment := range strings.SplitSeq(w.config.BasePath+"/"+path, "/") {
		segments = append(segments, url.PathEscape(segment))
	}
	status, _, body := w.graph.Answer("GET", "/"+strings.Join(segments, "/"), query, nil)
	if status != 200 {
		w.t.Fatalf("%s?%s: got %d from the reference, want 200", path, query, status)
	}
	return string(body)
}

// addresses returns all addresses of the graph, including accounts with badges only.
func (w *twin) addresses() []string {
	all := maps.Clone(w.model.accounts)
	for owner := range w.model.badges {
		for _, e := range w.model.events {
			if _, ok := w.model.badges[owner][e.ID]; ok {
				all[owner] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// wantFiles returns the paths, below the base path, of all answers that are files.
func (w *twin) wantFiles() []string {
	paths := []string{"leaderboard/ranked", "leaderboard/count", "stats", "discover"}
	for _, board := range w.config.Boards() {
		paths = append(paths, "leaderboard/"+string(board))
	}
	user := func(user string) {
		for _, object := range []string{"account", "details", "stats", "lists", "badges", "following", "followers", "tags", "taggedAs"} {
			paths = append(paths, "users/"+user+"/"+object)
		}
	}
	for _, address := range w.addresses() {
		user(address)
		if w.model.primary[address] != "" {
			paths = append(paths, "users/"+address+"/searchFollowing")
		}
	}
	if w.config.Names != site.NamesLookup {
		for name := range w.model.names {
			user(name)
			paths = append(paths, "users/"+name+"/searchFollowing")
		}
	}
	for _, l := range w.model.lists {
		for _, object := range []string{"records", "details", "badges", "searchFollowing", "account", "stats", "following", "followers", "tags", "taggedAs"} {
			paths = append(paths, "lists/"+l.token+"/"+object)
		}
	}
	slices.Sort(paths)
	return paths
}

// checkFiles compares every object that is an answer with the reference.
func (w *twin) checkFiles() {
	w.t.Helper()
	var got []string
	for key, body := range w.objects {
		if path, ok := strings.CutPrefix(string(key), w.config.BasePath+"/"); ok {
			got = append(got, path)
			if want := w.answer(path, ""); body != want {
				w.t.Errorf("%s:\n got %.700s\nwant %.700s", key, body, want)
			}
		}
	}
	slices.Sort(got)
	if want := w.wantFiles(); !slices.Equal(got, want) {
		w.t.Errorf("answers that are objects: got %q\nwant %q", got, want)
	}
	for _, board := range w.config.Boards() {
		for limit := 1; limit <= w.config.LeaderboardMax; limit++ {
			key := site.LeaderboardLimitKey(board, limit)
			if want := w.answer("leaderboard/"+string(board), fmt.Sprintf("limit=%d", limit)); w.objects[key] != want {
				w.t.Errorf("%s:\n got %.700s\nwant %.700s", key, w.objects[key], want)
			}
		}
	}
	want, err := openapi.Describe(w.config)
	if err != nil || w.objects[site.OpenAPIKey] != string(want) {
		w.t.Errorf("%s: got %.100s, want the description of the API (%v)", site.OpenAPIKey, w.objects[site.OpenAPIKey], err)
	}
	for _, f := range client.Files() {
		if w.objects[site.ClientKey(f.Name)] != string(f.Body) {
			w.t.Errorf("%s: got another text than that of the library", site.ClientKey(f.Name))
		}
	}
	const stranger = "0x123456789012345678901234567890123456789f"
	for _, object := range site.UserObjects() {
		key := site.UnknownKey(object)
		body := strings.ReplaceAll(w.objects[key], site.Address{}.String(), stranger)
		if want := w.answer("users/"+stranger+"/"+string(object), ""); body != want {
			w.t.Errorf("%s:\n got %.700s\nwant %.700s", key, body, want)
		}
	}
}

// TestFilesEqualTwin compares all files of many sites with the reference answers.
func TestFilesEqualTwin(t *testing.T) {
	t.Parallel()
	configs := []site.Config{
		{LeaderboardMax: 10, Names: site.NamesLookup},
		{LeaderboardMax: 60, BadgesField: `po"aps<é>`, BasePath: "graph/v2.0", ProfileURL: "https://people.example/{address}"},
		{LeaderboardMax: 12},
	}
	for seed := range uint64(servers.Rounds(2, 18)) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			w := newTwin(t, naive.Random(seed), configs[seed%3])
			if err := check(w.objects); err != nil {
				t.Error(err)
			}
			w.checkFiles()
			w.checkShards()
		})
	}
}

// TestLongTablesEqualTwin uses an account held by more than 1,000 primary lists, which holds as
// many: shards and heads.
func TestLongTablesEqualTwin(t *testing.T) {
	t.Parallel()
	w := newTwin(t, afero.NewIOFS(hub(1030).fs()), site.Config{LeaderboardMax: 100}) // the reference sorts for each page
	w.checkFiles()
	w.checkShards()
	for _, key := range []site.Key{site.ListHeadKey("77"), site.FollowerHeadKey(alice)} {
		if _, ok := w.objects[key]; !ok {
			t.Errorf("%s: got no object, want one", key)
		}
	}
}

// TestRoundedFollowersEqualTwin uses a few accounts held by hundreds.
func TestRoundedFollowersEqualTwin(t *testing.T) {
	t.Parallel()
	w := newTwin(t, naive.Random(3), site.Config{LeaderboardMax: 10})
	w.checkShards()
	rounded := 0
	for _, l := range w.model.lists {
		for _, r := range w.heldRows(l) {
			if r.row[2] != w.person(r.address).followers {
				rounded++
			}
		}
	}
	if rounded < 100 {
		t.Errorf("got %d rows with a rounded number, want many", rounded)
	}
}

// hub returns a graph of n accounts, in which alice and everybody else hold each other, and some
// hold others.
func hub(n int) snapshot {
	r := rand.New(rand.NewPCG(12, 0))
	tags := []string{"", "", "", `"block"`, `"mute"`, `"top8"`, `"block","mute"`}
	address := func(i int) string { return fmt.Sprintf("0x%040x", 1+i*7919%n) }
	var lists, accounts, records []string
	hold := func(token, address string) {
		added := ""
		if r.IntN(3) > 0 {
			added = fmt.Sprintf(`,"added":"2024-10-14T19:45:%02d.%03dZ"`, r.IntN(60), r.IntN(2)*617)
		}
		records = append(records, fmt.Sprintf(`{"token_id":"%s","version":1,"record_type":"address","data":"%s","tags":[%s]%s}`,
			token, address, tags[r.IntN(len(tags))], added))
	}
	lists = append(lists, `{"token_id":"77","owner":"`+alice+`"}`)
	accounts = append(accounts, `{"address":"`+alice+`","primary_list":"77","ens":{"name":"alice.eth"}}`)
	for i := range n {
		token := strconv.Itoa(100 + i*271%n)
		lists = append(lists, `{"token_id":"`+token+`","owner":"`+address(i)+`"}`)
		accounts = append(accounts, fmt.Sprintf(`{"address":"%s","primary_list":"%s","ens":{"name":"n%d","header":"h"}}`, address(i), token, i))
		for range r.IntN(4) {
			hold(token, address(i*i%(1+r.IntN(n))))
		}
		hold(token, alice)
		hold("77", address(i))
	}
	return emptySnapshot().adding("lists", lists...).adding("accounts", accounts...).adding("records", records...)
}

// TestConformanceEFP compares the objects with the suite's answers.
func TestConformanceEFP(t *testing.T) {
	suite, err := fs.Sub(fixtures.ConformanceEFP(), "snapshot")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := fixtures.CasesEFP()
	if err != nil {
		t.Fatal(err)
	}
	w := newTwin(t, suite, site.Config{})
	if err := check(w.objects); err != nil {
		t.Error(err)
	}
	compared := 0
	for _, c := range cases {
		body, ok := w.find(c.Path)
		if !ok || c.Method != "GET" || c.Status != 200 {
			continue
		}
		compared++
		if body != c.Body {
			t.Errorf("%s:\n got %.700s\nwant %.700s", c.Path, body, c.Body)
		}
	}
	if compared < 230 {
		t.Errorf("cases that are objects: got %d, want more", compared)
	}
	w.checkFiles()
	w.checkShards()
}

// find returns the object that answers a request without parameters.
func (w *twin) find(path string) (body string, ok bool) {
	path, err := url.PathUnescape(path)
	if err != nil {
		return "", false
	}
	key, _ := strings.CutPrefix(path, "/")
	if body, ok = w.objects[site.Key(key)]; ok {
		return body, true
	}
	segments := strings.Split(key, "/")
	address, err := site.ParseAddress(segments[min(3, len(segments)-1)])
	if err != nil || len(segments) != 5 {
		return "", false
	}
	if body, ok = w.objects[w.config.UserObjectKey(address.String(), site.ListObject(segments[4]))]; ok {
		return body, true
	}
	body, ok = w.objects[site.UnknownKey(site.ListObject(segments[4]))]
	return strings.ReplaceAll(body, site.Address{}.String(), address.String()), ok && !w.model.accounts[address.String()]
}
