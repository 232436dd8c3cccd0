package explorer_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
)

// large renders a graph with the shape of a real network.
func large(t *testing.T) memsite.Site {
	t.Helper()
	dir := t.TempDir()
	_, err := graph.Write(context.Background(), graph.Options{Accounts: 4000, Lists: 3000, Records: 60_000, Seed: 3, Added: true}, func(name string) (io.WriteCloser, error) {
		return os.Create(filepath.Join(dir, name))
	})
	if err != nil {
		t.Fatal(err)
	}
	return generate(t, os.DirFS(dir), site.Config{API: site.APIEFP, Names: site.NamesLookup})
}

// In a network of thousands, scrolling loads rows and keeps few in the document, a neighbourhood is
// drawn, and no task blocks the page for long.
func TestLargeNetwork(t *testing.T) {
	servers.Wanted(t)
	b := browser.Start(t, browser.Options{})
	s := large(t)
	var top struct {
		Total    int
		Accounts [][]any
	}
	if err := json.Unmarshal([]byte(s[site.TopKey]), &top); err != nil {
		t.Fatal(err)
	}
	most := fmt.Sprint(top.Accounts[0][0])
	followers := int(top.Accounts[0][2].(float64))
	h := serve(t, s, "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Desktop, Now: now})
	shown(t, p)

	for place, rows := range map[string]int{"#/boards/followers": 100, "#/a/" + most + "/followers": followers} {
		p.Go(h.at(place))
		shown(t, p)
		last := "Math.max(...[...document.querySelectorAll('[data-index]')].map((row) => Number(row.dataset.index)))"
		// Scroll to the end, which moves as rows are added.
		for begun := time.Now(); browser.Eval[int](p, last) < rows-1; {
			if time.Since(begun) > 20*time.Second {
				t.Fatalf("%s: scrolled to the end: got the last row %d, want %d", place, browser.Eval[int](p, last), rows-1)
			}
			browser.Eval[any](p, "void scrollTo(0, document.documentElement.scrollHeight)")
			p.Settle()
		}
		shown(t, p)
		if n := p.Count("[data-index]"); n > 200 {
			t.Errorf("%s: got %d rows in the document, want at most 200", place, n)
		}
		frames := p.Frames(func() {
			for range 40 {
				p.Wheel(720, 600, -500)
				time.Sleep(15 * time.Millisecond)
			}
		})
		if longest := slices.Max(frames); longest > 1000 {
			t.Errorf("%s: scrolling: got a frame of %v ms, want none of a second", place, longest)
		}
		p.Settle()
	}

	p.Go(h.at("#/a/" + busy(t, s) + "/graph"))
	shown(t, p)
	p.Wait("performance.getEntriesByName('followpress:graph').length > 0")
	x, y := p.Middle("canvas")
	before := p.Screenshot()
	p.Hold(x, y)
	frames := p.Frames(func() {
		for i := range 30 {
			p.Mouse(x+float64(4*i), y+float64(2*i), true)
			time.Sleep(10 * time.Millisecond)
		}
	})
	p.Release(x+120, y+60)
	if longest := slices.Max(frames); longest > 1000 {
		t.Errorf("dragging the graph: got a frame of %v ms, want none of a second", longest)
	}
	if browser.Compare(p.Screenshot(), before) == nil {
		t.Error("dragging the graph: got the same picture, want another one")
	}
}

// busy returns the account that follows most others.
func busy(t *testing.T, s memsite.Site) string {
	t.Helper()
	var board []struct{ Address string }
	if err := json.Unmarshal([]byte(s[s.Root(t).Config.LeaderboardKey(site.Following)]), &board); err != nil {
		t.Fatal(err)
	}
	return board[0].Address
}
