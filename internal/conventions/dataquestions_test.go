package conventions

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/followpress/followpress/fixtures/odd"
)

// SQL queries of a site's tables give the API's answers: followers, followed accounts, counts and
// ranks. Snapshots are random, with every odd case.
func TestDataAnswersAsTheAPI(t *testing.T) {
	dataTools(t)
	questions := 0
	for seed := range uint64(2) {
		dir := t.TempDir()
		files := odd.Snapshot(seed, odd.Shape{Accounts: 90, Lists: 70, Records: 1500, Events: 3, Badges: 40, Hostile: seed > 0, Timed: true, Ops: 50})
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		folder := filepath.Join(t.TempDir(), "site")
		output(t, ".", "followpress", "generate", "--snapshot", dir, "--api", "efp", "--data", "--out", folder)
		s := countAt(t, previewOf(t, folder))
		ask := func(query string, args ...any) []map[string]any {
			t.Helper()
			questions++
			return decoded(t, output(t, folder, "duckdb", "-json", "-c", fmt.Sprintf(query, args...)))
		}

		accounts := map[string]map[string]any{}
		for _, row := range ask("from '_data/accounts.parquet'") {
			accounts[row["address"].(string)] = row
		}
		// One query for all accounts, because a process per question would take minutes.
		followers, following := map[string][]string{}, map[string][]string{}
		for _, row := range ask("from '_data/follows.parquet' where counts order by follower, followed") {
			from, to := row["follower"].(string), row["followed"].(string)
			followers[to], following[from] = append(followers[to], from), append(following[from], to)
		}
		for address := range accounts {
			questions += 2
			if got, want := followers[address], s.others(t, address, "followers?limit=1000"); !slices.Equal(got, want) {
				t.Errorf("seed %d: followers of %s: got %q by SQL, want %q of the API", seed, address, got, want)
			}
			if got, want := following[address], s.others(t, address, "following?limit=1000"); !slices.Equal(got, want) {
				t.Errorf("seed %d: followed by %s: got %q by SQL, want %q of the API", seed, address, got, want)
			}
		}
		questions += s.checkRanks(t, accounts)
		if len(accounts) < 80 {
			t.Errorf("seed %d: got %d accounts, want about 90", seed, len(accounts))
		}
	}
	if questions < 500 {
		t.Errorf("got %d questions, want 500 at least", questions)
	}
}

// checkRanks compares the counts and ranks of all accounts with the leaderboard, and returns their
// number.
func (s *dataSite) checkRanks(t *testing.T, accounts map[string]map[string]any) (questions int) {
	t.Helper()
	ranked := map[string]map[string]any{}
	for {
		var page struct{ Results []map[string]any }
		s.get(t, fmt.Sprintf("/api/v1/leaderboard/ranked?limit=100&offset=%d", len(ranked)), &page)
		if len(page.Results) == 0 {
			break
		}
		for _, row := range page.Results {
			ranked[row["address"].(string)] = row
		}
	}
	for address, row := range accounts {
		for _, measure := range []string{"followers", "following", "mutuals", "top8", "blocks"} {
			for _, column := range []string{measure, measure + "_rank"} {
				questions++
				want, got := ranked[address][column], fmt.Sprint(row[column])
				if want == nil {
					want = "0" // the account is on no leaderboard
				}
				if got != want {
					t.Errorf("%s of %s: got %s by SQL, want %s of the API", column, address, got, want)
				}
			}
		}
		delete(ranked, address)
	}
	for address := range ranked {
		t.Errorf("%s: got no row of accounts, want one: the leaderboard has it", address)
	}
	return questions
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
