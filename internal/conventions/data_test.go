package conventions

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/testenv/servers"
)

const dataPage = "docs/data.md"

// A block is a fenced block of a page, under its heading.
type block struct{ heading, language, text string }

func (b block) String() string { return b.heading + " (" + b.language + ")" }

// blocks returns the fenced blocks of a page in order.
func blocks(t *testing.T, file string) (all []block) {
	t.Helper()
	title := ""
	for _, part := range regexp.MustCompile("(?ms)^#+ (.*?)$|^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(read(t, file).text, -1) {
		if part[1] != "" {
			title = part[1]
		} else {
			all = append(all, block{title, part[2], part[3]})
		}
	}
	return all
}

// A dataSite is a site with tables, behind a server that counts requests below _data.
type dataSite struct {
	url             string
	requests, bytes atomic.Int64
}

func countAt(t *testing.T, origin string) *dataSite {
	t.Helper()
	to, err := url.Parse(origin)
	if err != nil {
		t.Fatal(err)
	}
	s := &dataSite{}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(r *http.Response) error {
		if strings.HasPrefix(r.Request.URL.Path, "/_data/") {
			s.requests.Add(1)
			r.Body = &counted{r.Body, &s.bytes}
		}
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

type counted struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

// get decodes an answer of the API.
func (s *dataSite) get(t *testing.T, path string, into any) {
	t.Helper()
	r, err := http.Get(s.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }() // the body was read completely
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %s", path, r.Status)
	}
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// others returns the sorted addresses of an answer with a list of accounts, such as whom a user
// follows.
func (s *dataSite) others(t *testing.T, user, route string) []string {
	t.Helper()
	var answer map[string]json.RawMessage
	s.get(t, "/api/v1/users/"+user+"/"+route, &answer)
	delete(answer, "length")
	var all []string
	for _, list := range answer {
		var accounts []struct{ Address string }
		if err := json.Unmarshal(list, &accounts); err != nil {
			t.Fatalf("%s of %s: %v", route, user, err)
		}
		for _, a := range accounts {
			all = append(all, a.Address)
		}
	}
	slices.Sort(all)
	return all
}

// dataTools puts the tools of the page, and followpress, first in PATH. DuckDB finds its HTTP
// extension in its usual place.
func dataTools(t *testing.T) {
	t.Helper()
	servers.Wanted(t)
	tools, err := filepath.Abs(".tools/parquet/data")
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(tools, "lib/python3*/site-packages/duckdb_extension_httpfs/extensions/*/httpfs.duckdb_extension"))
	if err != nil || len(found) != 1 {
		t.Fatalf("got the extensions %q (%v), want one: `make test-tools` installs it", found, err)
	}
	home, bin := t.TempDir(), t.TempDir()
	platform, err := exec.Command(filepath.Join(tools, "bin/duckdb"), "-csv", "-noheader", "-c", "pragma platform").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(home, ".duckdb/extensions", filepath.Base(filepath.Dir(found[0])), strings.TrimSpace(string(platform)))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(found[0], filepath.Join(folder, filepath.Base(found[0]))); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("go", "build", "-o", bin, "./cmd/followpress").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", strings.Join([]string{filepath.Join(tools, "bin"), bin, os.Getenv("PATH")}, string(os.PathListSeparator)))
}

// output returns what a command prints on standard output.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Stdout, command.Stderr = dir, &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, &stdout, &stderr)
	}
	return stdout.String()
}

// views returns the views of the page that a query uses, because unused views would read files.
func views(prelude, query string) string {
	var chosen strings.Builder
	for line := range strings.Lines(prelude) {
		if name := strings.Fields(line)[2]; regexp.MustCompile(`\b` + name + `\b`).MatchString(query) {
			chosen.WriteString(line)
		}
	}
	return chosen.String()
}

// decoded parses the output of duckdb -json.
func decoded(t *testing.T, text string) (rows []map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return rows
}

// column returns a column of rows as texts, sorted.
func column(rows []map[string]any, name string) []string {
	var all []string
	for _, row := range rows {
		all = append(all, fmt.Sprint(row[name]))
	}
	slices.Sort(all)
	return all
}

// Every block of docs/data.md works, over preview and over MinIO behind nginx, and its results over
// HTTP equal the API's answers.
func TestData(t *testing.T) {
	dataTools(t)
	folder := filepath.Join(t.TempDir(), "site")
	output(t, ".", "followpress", "generate", "--snapshot", "fixtures/demo", "--api", "efp", "--data", "--out", folder)
	page, most := blocks(t, dataPage), map[string]int64{} // number of requests, by the anchor of a question
	for _, row := range regexp.MustCompile(`(?m)^\| \[.*?\]\(#(.*?)\) \| (\d+) \|`).FindAllStringSubmatch(read(t, dataPage).text, -1) {
		most[row[1]], _ = strconv.ParseInt(row[2], 10, 64) // digits only
	}
	for name, start := range map[string]func(*testing.T, string) string{"preview": previewOf, "nginx": nginxOf} {
		t.Run(name, func(t *testing.T) {
			s := countAt(t, start(t, folder))
			checks, prelude := s.checks(t), ""
			for _, b := range page {
				text := strings.ReplaceAll(b.text, "https://HOST", s.url)
				if b.language == "sql" && b.heading == "Questions" {
					prelude = text
					continue
				}
				if name == "nginx" && b.language == "sh" && text == b.text { // the block does not read the site
					delete(checks, b.String())
					continue
				}
				check := checks[b.String()]
				if check == nil {
					t.Errorf("%s: %s: got no check", dataPage, b)
					continue
				}
				delete(checks, b.String())
				t.Run(b.heading, func(t *testing.T) {
					s.requests.Store(0)
					s.bytes.Store(0)
					out := s.run(t, b.language, prelude, text)
					t.Logf("%d requests, %d bytes", s.requests.Load(), s.bytes.Load())
					if n := s.requests.Load(); !strings.HasPrefix(b.heading, "From ") && n > most[anchor(b.heading)] {
						t.Errorf("got %d requests, want at most %d as on the page", n, most[anchor(b.heading)])
					}
					check(t, out)
				})
			}
			for _, name := range slices.Sorted(maps.Keys(checks)) {
				t.Errorf("%s: got no block %s", dataPage, name)
			}
		})
	}
}

// run runs a block, and returns what it prints.
func (s *dataSite) run(t *testing.T, language, prelude, text string) string {
	t.Helper()
	switch language {
	case "sql":
		return output(t, ".", "duckdb", "-json", "-c", views(prelude, text)+text)
	case "python":
		return output(t, ".", "python", "-c", text)
	case "html":
		return output(t, "browsers", "go", "run", "./shown", text)
	}
	dir, fixtures := t.TempDir(), absolute(t, "fixtures")
	if err := os.Symlink(fixtures, filepath.Join(dir, "fixtures")); err != nil {
		t.Fatal(err)
	}
	return output(t, dir, "bash", "-euo", "pipefail", "-c", text)
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// previewOf serves a site by followpress preview.
func previewOf(t *testing.T, folder string) string {
	t.Helper()
	address := servers.FreeAddress(t)
	servers.Program(t, address, "followpress", "preview", "--site", folder, "--addr", address)
	return "http://" + address
}

// nginxOf serves a site by nginx from MinIO, with a fallback for computed answers.
func nginxOf(t *testing.T, folder string) string {
	t.Helper()
	minio := servers.Start(t, servers.MinIO)
	minio.Env(t)
	const bucket = "my-graph"
	to := []string{"--dest", "s3://" + bucket, "--endpoint", minio.Endpoint}
	output(t, ".", "followpress", append([]string{"init"}, to...)...)
	output(t, ".", "followpress", append([]string{"publish", "--site", folder}, to...)...)
	fallback, address, dir := servers.FreeAddress(t), servers.FreeAddress(t), t.TempDir()
	servers.Program(t, fallback, "followpress", "serve", "--site", "s3://"+bucket, "--endpoint", minio.Endpoint, "--addr", fallback)
	output(t, ".", "followpress", "edge", "--kind", "nginx", "--site", folder, "--bucket-url", minio.Endpoint+"/"+bucket,
		"--fallback-url", "http://"+fallback, "--listen", address, "--cache-dir", filepath.Join(dir, "cache"), "--out", dir)
	const main = `load_module /usr/lib/nginx/modules/ngx_http_js_module.so;
daemon off; master_process off; pid nginx.pid; error_log stderr warn;
events {}
http {
	access_log off;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	include followpress.conf;
}
`
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	servers.Program(t, address, "nginx", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr")
	return "http://" + address
}

// Accounts in the questions of the page.
const (
	me      = "0x8fc28d6b147d1625385172fae01b1dcba2ca4de8"
	leader  = "0x7e09743099183bcb8b4b6531e6e9540d778e4ad8"
	distant = "0x6fced44ca7e944095a0752082b40f6737843f853"
)

// checks returns a check of the output of each block, by comparison with the API.
func (s *dataSite) checks(t *testing.T) map[string]func(*testing.T, string) {
	t.Helper()
	same := func(t *testing.T, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	rows := func(name string, want func(*testing.T) []string) func(*testing.T, string) {
		return func(t *testing.T, out string) { same(t, column(decoded(t, out), name), want(t)) }
	}
	follows := s.graph(t)
	followers := func(t *testing.T) []string { return s.others(t, me, "followers?limit=1000") }
	list := func(t *testing.T, out string) {
		var got []string
		if err := json.Unmarshal([]byte(strings.ReplaceAll(out, "'", `"`)), &got); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		slices.Sort(got)
		same(t, got, followers(t))
	}
	return map[string]func(*testing.T, string){
		"Data (sh)":                     s.checkBoard,
		"Who follows an account? (sql)": rows("follower", followers),
		"By name, newest first (sql)":   rows("follower", followers),
		"Mutuals (sql)":                 rows("followed", func(t *testing.T) []string { return s.others(t, me, "mutuals?limit=1000") }),
		"Who of mine follows an account? (sql)": rows("followed", func(t *testing.T) []string {
			return s.others(t, me, "commonFollowers?limit=1000&leader="+leader)
		}),
		"Recommendations (sql)": func(t *testing.T, out string) {
			got, want := map[string]int{}, map[string]int{}
			for _, row := range decoded(t, out) {
				got[row["followed"].(string)] = int(row["n"].(float64))
			}
			for mine := range follows[me] {
				for other := range follows[mine] {
					if other != me && !follows[me][other] {
						want[other]++
					}
				}
			}
			maps.DeleteFunc(want, func(_ string, n int) bool { return n < 2 })
			if !maps.Equal(got, want) || len(want) == 0 {
				t.Errorf("got %v, want %v", got, want)
			}
		},
		"Shortest path (sql)": func(t *testing.T, out string) {
			found := decoded(t, out)
			if len(found) != 1 {
				t.Fatalf("got %v, want a path", found)
			}
			path := found[0]["path"].([]any)
			for i := range path[1:] {
				if !follows[path[i].(string)][path[i+1].(string)] {
					t.Errorf("got %v: %s does not follow the next one", path, path[i])
				}
			}
			if want := follows.hops(me, distant); len(path) != want+1 || path[0] != me || path[want] != distant {
				t.Errorf("got %v, want %d hops from %s to %s", path, want, me, distant)
			}
		},
		"PageRank (sql)": func(t *testing.T, out string) {
			want, got := follows.pageRank(20), decoded(t, out)
			best := slices.SortedFunc(maps.Values(want), func(a, b float64) int { return cmp.Compare(b, a) })
			if len(got) != 10 {
				t.Fatalf("got %d rows, want 10", len(got))
			}
			for i, row := range got {
				score := row["score"].(float64)
				if address := row["address"].(string); math.Abs(score-want[address]) > 1e-9 || math.Abs(score-best[i]) > 1e-9 {
					t.Errorf("row %d: got %s with %v, want %v, and %v there", i, address, score, want[address], best[i])
				}
			}
		},
		"Growth by month (sql)": func(t *testing.T, out string) {
			got, want := map[string]int{}, map[string]int{}
			for _, row := range decoded(t, out) {
				got[row["month"].(string)[:len("2026-01")]] = int(row["n"].(float64))
			}
			for account := range follows {
				var answer struct {
					Followers []struct {
						Added string `json:"updated_at"`
					}
				}
				s.get(t, "/api/v1/users/"+account+"/followers?limit=1000", &answer)
				for _, f := range answer.Followers {
					want[f.Added[:min(len(f.Added), len("2026-01"))]]++
				}
			}
			delete(want, "1970-01") // records without a known time
			if !maps.Equal(got, want) || len(want) == 0 {
				t.Errorf("got %v, want %v", got, want)
			}
		},
		"Yesterday's changes (sql)": func(t *testing.T, out string) {
			var recent struct{ Entries [][]any }
			s.get(t, "/_explore/recent", &recent)
			primary := map[any]bool{}
			var got, want []string
			for _, e := range recent.Entries {
				if primary[e[1]] = true; e[0].(float64) >= recent.Entries[0][0].(float64)-24*60*60*1000 {
					at := time.UnixMilli(int64(e[0].(float64))).UTC().Format("2006-01-02 15:04:05.999")
					action := []string{"follow", "unfollow", "tag", "untag"}[int(e[8].(float64))-1]
					want = append(want, fmt.Sprintln(at, e[1], e[2], action, e[5], e[9]))
				}
			}
			for _, row := range decoded(t, out) {
				if tag := row["tag"]; primary[row["list"]] {
					got = append(got, fmt.Sprintln(row["time"], row["list"], row["account"], row["action"], row["address"], cmp.Or(tag, any(""))))
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			same(t, got, want)
		},
		"polars (python)": list,
		"pandas (python)": list,
		"A page (html)":   list,
		"From edges (sh)": func(t *testing.T, out string) {
			const best = `[{"rank":1,"address":"0x0000000000000000000000000000000000000000","followers_count":"4"},`
			if !strings.HasPrefix(out, best) {
				t.Errorf("got %q, want %q first", out, best)
			}
		},
		"From Farcaster (sh)": func(t *testing.T, out string) {
			same(t, regexp.MustCompile("0x(a5|a3|a2)+").FindAllString(out, -1), []string{ // newest first
				"0x" + strings.Repeat("a5", 20), "0x" + strings.Repeat("a3", 20), "0x" + strings.Repeat("a2", 20),
			})
		},
		"From another site (sh)": func(t *testing.T, out string) {
			var got, want []any
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			s.get(t, "/api/v1/leaderboard/followers", &want)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got %v, want %v", got, want)
			}
		},
	}
}

// checkBoard compares a table of accounts and counts with the leaderboard. Accounts with equal
// counts may differ.
func (s *dataSite) checkBoard(t *testing.T, out string) {
	t.Helper()
	var board []struct {
		Address   string
		Followers string `json:"followers_count"`
	}
	s.get(t, "/api/v1/leaderboard/followers?limit=100", &board)
	counts := map[string]string{}
	for _, a := range board {
		counts[a.Address] = a.Followers
	}
	found := regexp.MustCompile(`(0x[0-9a-f]{40})\W+(\d+)`).FindAllStringSubmatch(out, -1)
	if len(found) != 10 {
		t.Fatalf("got %d rows, want 10: %s", len(found), out)
	}
	for i, row := range found {
		if row[2] != counts[row[1]] || row[2] != board[i].Followers {
			t.Errorf("row %d: got %s with %s followers, want %s", i, row[1], row[2], board[i].Followers)
		}
	}
}

// A followGraph maps each account to the accounts that it follows.
type followGraph map[string]map[string]bool

// graph returns the API's data about every account.
func (s *dataSite) graph(t *testing.T) followGraph {
	t.Helper()
	g := followGraph{}
	for next := []string{me}; len(next) > 0; next = next[1:] {
		if g[next[0]] != nil {
			continue
		}
		g[next[0]] = map[string]bool{}
		for _, other := range s.others(t, next[0], "following?limit=1000") {
			g[next[0]][other] = true
			next = append(next, other)
		}
		next = append(next, s.others(t, next[0], "followers?limit=1000")...)
	}
	return g
}

// hops returns how many follows lead from one account to another, or -1.
func (g followGraph) hops(from, to string) int {
	seen := map[string]int{from: 0}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		if next[0] == to {
			return seen[to]
		}
		for other := range g[next[0]] {
			if _, found := seen[other]; !found {
				seen[other] = seen[next[0]] + 1
				next = append(next, other)
			}
		}
	}
	return -1
}

// pageRank returns the score of every account after the given number of rounds, with a damping of
// 0.85. The share of accounts that follow nobody is lost.
func (g followGraph) pageRank(rounds int) map[string]float64 {
	scores := map[string]float64{}
	for account := range g {
		scores[account] = 1
	}
	for range rounds {
		next := map[string]float64{}
		for account, others := range g {
			next[account] += 0.15
			for other := range others {
				next[other] += 0.85 * scores[account] / float64(len(others))
			}
		}
		scores = next
	}
	return scores
}

// A file that is replaced while DuckDB reads it is an error, never a mixture of both versions.
func TestDataReplacedDuringAQuery(t *testing.T) {
	dataTools(t)
	file := filepath.Join(t.TempDir(), "follows.parquet")
	output(t, ".", "duckdb", "-c", "copy (select 'a' as follower from range(1000)) to '"+file+"'")
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, requests.Add(1)))
		http.ServeFile(w, r, file)
	}))
	defer server.Close()
	text, err := exec.CommandContext(t.Context(), "duckdb", "-c", "select count(distinct follower) from '"+server.URL+"/follows.parquet'").CombinedOutput()
	if err == nil || !strings.Contains(string(text), "ETag on reading file") {
		t.Errorf("got %q (%v), want an error that names the ETag", text, err)
	}
}
