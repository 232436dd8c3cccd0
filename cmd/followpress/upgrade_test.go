package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/site"
)

var makeRelease = flag.String("make-release", "", "make the fixture of a release, such as v1.0.0, with this program")

const releases = root + "/fixtures/releases"

// A release holds the files of an older version: a state after the first half of a history, the
// snapshot made from that state, and the bucket with its site. It stores the whole history, so the
// test does not depend on the current generator of histories.
type release struct {
	t   *testing.T
	dir string
}

// chains asks for a snapshot of the first blocks of the history, as a share of them.
func (r release) chains(numerator, denominator int, args ...string) {
	r.t.Helper()
	var blocks []history.Block
	read(r.t, filepath.Join(r.dir, "blocks.json"), &blocks)
	played := &history.History{Chains: history.Production(), Blocks: blocks}
	args = append([]string{"snapshot", "chain", "--no-sync", "--state", r.dir + "/state"}, args...)
	for _, c := range played.Chains {
		var of []history.Block
		for b := range played.Of(c.ID) {
			of = append(of, b)
		}
		args = append(args, "--rpc", fmt.Sprintf("%d=%s", c.ID, meanrpc.Start(r.t, c.ID, (&history.History{Blocks: of[:len(of)*numerator/denominator]}).Of(c.ID)).URL))
	}
	done(r.t, args...)
}

// published checks that the site in the bucket is complete, and returns its root.
func (r release) published() (of site.Root) {
	r.t.Helper()
	done(r.t, "verify", "--dest", "file://"+r.dir+"/www")
	read(r.t, r.dir+"/www/_site", &of)
	return of
}

// formats returns the formats of the files in the folder, as docs/upgrade.md writes them.
func (r release) formats() string {
	r.t.Helper()
	var meta struct{ Format int }
	read(r.t, r.dir+"/snapshot/meta.json", &meta)
	var check struct{ Version int }
	found, err := filepath.Glob(r.dir + "/state/chains/*/checkpoint.json")
	if err != nil || len(found) == 0 {
		r.t.Fatalf("got %d checkpoints (%v), want those of the chains", len(found), err)
	}
	read(r.t, found[0], &check)
	return fmt.Sprintf("| %d | %d | %d |", meta.Format, r.published().Format, check.Version)
}

// TestUpgrade upgrades the files of each release to this version, and goes back.
func TestUpgrade(t *testing.T) {
	t.Setenv("FOLLOWPRESS_EXPLORER", "false")
	if *makeRelease != "" {
		leave(t, filepath.Join(releases, *makeRelease+".tar.gz"))
	}
	kept, err := filepath.Glob(releases + "/*.tar.gz")
	if err != nil || len(kept) == 0 {
		t.Fatalf("got %d releases (%v), want those since v1.0.0", len(kept), err)
	}
	page, err := os.ReadFile(root + "/docs/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range kept {
		name := strings.TrimSuffix(filepath.Base(kept), ".tar.gz")
		t.Run(name, func(t *testing.T) {
			r := release{t, unpack(t, kept)}
			old, before := r.published(), r.formats()
			if !strings.Contains(string(page), "| "+name+" "+before) {
				t.Errorf("docs/upgrade.md has no row | %s %s", name, before)
			}

			// Up: a night of this version. The state goes on where it was.
			r.chains(1, 1, "--expect-state", "--out", r.dir+"/new")
			done(t, "publish", "--max-loss", "100%", "--snapshot", r.dir+"/new", "--dest", "file://"+r.dir+"/www")
			now := r.published()
			if now.Counts.Records <= old.Counts.Records || now.AsOf <= old.AsOf {
				t.Errorf("got %d records as of %v, want more and newer than %d as of %v", now.Counts.Records, now.AsOf, old.Counts.Records, old.AsOf)
			}
			if after := r.formats(); after != before && !strings.Contains(string(page), "| now "+after) {
				t.Errorf("docs/upgrade.md has no row | now %s: who goes back needs to know", after)
			}

			// Back: the snapshot of that version is the site again.
			done(t, "publish", "--snapshot", r.dir+"/snapshot", "--dest", "file://"+r.dir+"/www", "--allow-rollback")
			if again := r.published(); again.AsOf != old.AsOf || again.Counts.Records != old.Counts.Records {
				t.Errorf("back: got %d records as of %v, want %d as of %v", again.Counts.Records, again.AsOf, old.Counts.Records, old.AsOf)
			}
		})
	}
}

// leave makes the fixture of this version.
func leave(t *testing.T, file string) {
	r := release{t, t.TempDir()}
	blocks, err := json.Marshal(history.Random(7, history.Options{Chains: history.Production(), Transactions: 60}).Blocks)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.dir+"/blocks.json", blocks, 0o644); err != nil {
		t.Fatal(err)
	}
	r.chains(1, 2, "--out", r.dir+"/snapshot")
	done(t, "publish", "--snapshot", r.dir+"/snapshot", "--dest", "file://"+r.dir+"/www")
	if output, err := exec.Command("tar", "-C", r.dir, "-czf", file, "--sort=name", "--owner=0", "--group=0", "--mtime=@0", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// unpack makes a folder with the files of a release.
func unpack(t *testing.T, file string) (dir string) {
	dir = t.TempDir()
	if output, err := exec.Command("tar", "-C", dir, "-xzf", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return dir
}
