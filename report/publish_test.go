package report_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/report"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// reportOf returns a report of a day of 2026.
func reportOf(n int) *report.Report {
	return &report.Report{
		Format: report.Format, Date: report.Text(time.Date(2026, 1, 1+n, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)),
		From: report.SiteSummary{AsOf: "2026-01-01T00:00:00Z"}, To: report.SiteSummary{AsOf: "2026-01-02T00:00:00Z"},
		Follows: report.Follows{Follows: n, Unfollows: 2}, Lists: report.Lists{New: 3, Gone: 4},
	}
}

func indexOf(t *testing.T, b report.Bucket) report.Index {
	t.Helper()
	body, _, err := b.Read(context.Background(), site.ReportsKey)
	if err != nil {
		t.Fatal(err)
	}
	index, err := report.ParseIndex(body)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// TestPublish: a report becomes a page, JSON and an entry of the index; another one of the same day
// replaces it.
func TestPublish(t *testing.T) {
	t.Parallel()
	b := storage.OpenLocal(t.TempDir())
	for _, n := range []int{5, 9, 7} {
		if err := report.Publish(t.Context(), b, reportOf(n), 0); err != nil {
			t.Fatal(err)
		}
	}
	again := reportOf(7)
	again.Follows.Follows = 70
	if err := report.Publish(t.Context(), b, again, 0); err != nil {
		t.Fatal(err)
	}
	body, _, err := b.Read(t.Context(), site.ReportsKey)
	if err != nil {
		t.Fatal(err)
	}
	entry := `{"date":"2026-01-%s","from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","follows":%d,"unfollows":2,"new_lists":3,"gone_lists":4}`
	want := fmt.Sprintf(`{"reports":[`+entry+`,`+entry+`,`+entry+`]}`, "10", 9, "08", 70, "06", 5)
	if string(body) != want {
		t.Errorf("got %s, want %s", body, want)
	}
	page, _, err := b.Read(t.Context(), site.ReportKey("2026-01-08", "html"))
	if err != nil || !strings.Contains(string(page), "<td class=\"n\">70</td>") {
		t.Errorf("the page of the second report is not there (%v)", err)
	}
	figures, _, err := b.Read(t.Context(), site.ReportKey("2026-01-08", "json"))
	var r report.Report
	if err != nil || json.Unmarshal(figures, &r) != nil || r.Follows.Follows != 70 {
		t.Errorf("the JSON of the second report is not there (%v)", err)
	}
}

// TestPublishedBrand: a published report names its site, but not the machine that made it.
func TestPublishedBrand(t *testing.T) {
	t.Parallel()
	from, to := demo(t, site.APIEFP)
	root := to[site.RootKey]
	to[site.RootKey] = strings.Replace(root, `"base_path"`, `"explorer":true,"title":"Fell Follows","colour":"#7a1f5c","home":"https://fell.example/","base_path"`, 1)
	r, err := report.Compare(t.Context(), sideOf("/home/ada/old.tar", from), sideOf("s3://ada-private", to), report.Options{Date: day})
	if err != nil {
		t.Fatal(err)
	}
	saved, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if r, err = report.Parse(saved); err != nil {
		t.Fatal(err)
	}

	r.From.Counts.Bytes, r.To.Counts.Bytes, r.Read.Bytes = 2_000_000, 1_900_000, 600_000
	b := storage.OpenLocal(t.TempDir())
	if err := report.Publish(t.Context(), b, r, 0); err != nil {
		t.Fatal(err)
	}
	page := ""
	for _, form := range []string{"html", "json"} {
		body, _, err := b.Read(t.Context(), site.ReportKey("2026-11-22", form))
		if err != nil {
			t.Fatal(err)
		}
		if page = cmp.Or(page, string(body)); strings.Contains(string(body), "/home/") || strings.Contains(string(body), "private") {
			t.Errorf("%s: got the name that its operator has for a site", form)
		}
	}
	golden(t, "published.html", []byte(page))
	for _, want := range []string{`<a class="brand" href="https://fell.example/">Fell Follows</a>`, "light-dark(#7a1f5c", "to <time datetime=\"2026-11-22T00:00:00Z\">22 November 2026, 00:00 UTC</time>", "<title>What changed: 1 November 2026, 00:00 UTC to 22 November 2026, 00:00 UTC – Fell Follows</title>"} {
		if !strings.Contains(page, want) {
			t.Errorf("got no %s in the page", want)
		}
	}
	if main, _, _ := strings.Cut(page, "</main>"); strings.Contains(main, "bytes to put") {
		t.Error("the page has the table of kinds of objects before its end")
	}
}

// TestIndexIsBounded: the index has the newest 1,000 reports.
func TestIndexIsBounded(t *testing.T) {
	t.Parallel()
	b := storage.OpenLocal(t.TempDir())
	var index report.Index
	for n := range report.MaxIndexEntries {
		index.Reports = append(index.Reports, report.IndexEntry{Date: reportOf(2_000 - n).Date.String()})
	}
	put(t, b, index)
	for _, n := range []int{3_000, 0} { // the second one is too old
		if err := report.Publish(t.Context(), b, reportOf(n), 0); err != nil {
			t.Fatal(err)
		}
	}
	got := indexOf(t, b).Reports
	if len(got) != report.MaxIndexEntries || got[0].Date != reportOf(3_000).Date.String() || got[len(got)-1].Date != reportOf(1_002).Date.String() {
		t.Errorf("got %d entries from %s to %s", len(got), got[0].Date, got[len(got)-1].Date)
	}
}

func put(t *testing.T, b report.Bucket, index any) {
	t.Helper()
	body, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	o := storage.Object{Entry: site.Entry{Key: site.ReportsKey, Size: int64(len(body)), MD5: site.Sum(body)}, Body: body}
	if _, err := b.Put(t.Context(), o, storage.Always); err != nil {
		t.Fatal(err)
	}
}

// TestMalformedIndex: a malformed index is not replaced, because that would lose entries.
func TestMalformedIndex(t *testing.T) {
	t.Parallel()
	for _, index := range []any{7, map[string]any{"reports": []any{map[string]any{"date": "today"}}},
		report.Index{Reports: []report.IndexEntry{{Date: "2026-01-01"}, {Date: "2026-01-02"}}}} {
		b := storage.OpenLocal(t.TempDir())
		put(t, b, index)
		err := report.Publish(t.Context(), b, reportOf(1), 0)
		if err == nil || !strings.Contains(err.Error(), "_reports/index") || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%v: got %v", index, err)
		}
	}
}

// A moody bucket loses answers, fails, and lets others write in between.
type moody struct {
	report.Bucket
	between func()
	mu      sync.Mutex
	random  *rand.Rand
}

func (m *moody) mood() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.IntN(4)
}

func (m *moody) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	switch mood := m.mood(); {
	case mood == 0 && o.Key == site.ReportsKey:
		m.between()
	case mood == 1:
		if _, err := m.Bucket.Put(ctx, o, condition); err != nil {
			return "", err
		}
		return "", &storage.UnansweredError{Err: errors.New("the answer was lost")}
	case mood == 2:
		return "", &storage.UnansweredError{Err: errors.New("the request was lost")}
	}
	return m.Bucket.Put(ctx, o, condition)
}

// TestLostAnswers: no entry is lost, even if responses are lost and others write in between.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) { // the waits between attempts take no time
			b := storage.OpenLocal(t.TempDir())
			others := 100
			m := &moody{Bucket: b, random: rand.New(rand.NewPCG(seed, 1)), between: func() {
				others++
				if err := report.Publish(t.Context(), b, reportOf(others), 0); err != nil {
					t.Error(err)
				}
			}}
			const own = 3
			for n := range own {
				if err := report.Publish(t.Context(), m, reportOf(n), time.Minute); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if got, want := len(indexOf(t, b).Reports), own+others-100; got != want {
				t.Errorf("seed %d: got %d entries, want %d", seed, got, want)
			}
		})
	}
}

// An unconditional bucket has no conditional writes.
type unconditional struct{ report.Bucket }

func (u unconditional) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	if condition != storage.Always {
		return "", storage.ErrUnsupported
	}
	return u.Bucket.Put(ctx, o, condition)
}

// TestUnconditional: a server without conditional writes gets the entry, and Publish returns ErrUnsafe.
func TestUnconditional(t *testing.T) {
	t.Parallel()
	b := storage.OpenLocal(t.TempDir())
	if err := report.Publish(t.Context(), unconditional{b}, reportOf(1), 0); !errors.Is(err, report.ErrUnsafe) {
		t.Errorf("got %v, want ErrUnsafe", err)
	}
	if got := indexOf(t, b).Reports; len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestMain(m *testing.M) {
	tempdir.InMemory()
	os.Exit(m.Run())
}
