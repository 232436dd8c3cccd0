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

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/upstreams"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// A night runs steps of the nightly workflow, each time in a new folder, as runners do.
type night struct {
	t   *testing.T
	env []string
	dir string
}

// step runs .ci/nightly, and returns its output and whether it succeeded.
func (n *night) step(args ...string) (output string, ok bool) {
	n.t.Helper()
	script, err := filepath.Abs("../../.ci/nightly")
	if err != nil {
		n.t.Fatal(err)
	}
	c := exec.Command("bash", append([]string{script}, args...)...)
	c.Dir, c.Env = n.dir, append(append(os.Environ(), n.env...), "RUNNER_TEMP="+filepath.Join(n.dir, "temp"))
	out, err := c.CombinedOutput()
	return string(out), err == nil
}

// must runs a step that has to succeed.
func (n *night) must(args ...string) {
	n.t.Helper()
	if out, ok := n.step(args...); !ok {
		n.t.Fatalf("%v: %s", args, out)
	}
}

// refused runs a step that has to fail and say why.
func (n *night) refused(says string, args ...string) {
	n.t.Helper()
	if out, ok := n.step(args...); ok || !strings.Contains(out, says) {
		n.t.Errorf("%v: success %v: %s, want a failure that says %q", args, ok, out, says)
	}
}

// names returns the number of profiles in the snapshot.
func (n *night) names() (names int) {
	n.t.Helper()
	folder, err := snapshot.Open(filepath.Join(n.dir, "temp", "snapshot"))
	if err != nil {
		n.t.Fatal(err)
	}
	defer folder.Close()
	for a, err := range snapshot.Accounts(folder) {
		if err != nil {
			n.t.Fatal(err)
		}
		if a.ENS != nil {
			names++
		}
	}
	return names
}

// TestNightlySteps: a lost state is an error until somebody says that it is a first run, and then no
// profile is lost; a bucket whose credentials may not list it can begin.
func TestNightlySteps(t *testing.T) {
	s3 := servers.Start(t, servers.MinIO)
	aws, err := exec.LookPath("aws")
	if err != nil {
		t.Fatal("needs the AWS CLI: run make workflow-tools")
	}
	s3.Env(t)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	played := history.Random(5, history.Options{Chains: history.Production(), Transactions: 150})
	rpc, _ := startNodes(t, played)
	ens := &upstreams.ENS{MaxBulk: 50, Profiles: map[string]string{}}
	for i, l := range played.Truth().Lists {
		owner := fmt.Sprintf("0x%x", l.Owner)
		ens.Set(owner, upstreams.Profile(owner, fmt.Sprintf("name%s.eth", owner[2:6]), int64(i)))
	}
	// Without the right to list the bucket, S3 answers 403 for an absent object. MinIO answers 404,
	// so reads of this bucket are forbidden until it has a state.
	bucket := s3.Bucket(t)
	anybody := t.TempDir()
	if err := os.WriteFile(filepath.Join(anybody, "aws"), []byte("#!/bin/sh\nexec '"+aws+"' --no-sign-request \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	begin := func(env ...string) *night {
		n := &night{t: t, dir: t.TempDir(), env: append([]string{
			"STATE=s3://" + bucket + "/at/state.tar", "FOLLOWPRESS_ENDPOINT=" + s3.Endpoint, "FOLLOWPRESS_RPC=" + strings.Join(rpc, ";"),
		}, env...)}
		for _, folder := range []string{"temp", "bin"} {
			if err := os.Mkdir(filepath.Join(n.dir, folder), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(self, filepath.Join(n.dir, "bin", "followpress")); err != nil {
			t.Fatal(err)
		}
		return n
	}
	unlisted := "PATH=" + anybody + ":" + os.Getenv("PATH")

	n := begin(unlisted)
	n.refused("s3:ListBucket", "restore")
	n = begin()
	n.must("restore") // no state to restore
	n.refused("--expect-state", "snapshot")
	n.must("keep-state") // keeps nothing
	first := begin(unlisted, "FIRST_RUN=true", "FOLLOWPRESS_PROFILES="+served(t, ens))
	first.must("restore")
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":["s3:GetObject","s3:PutObject"],"Resource":"arn:aws:s3:::%s/*"}]}`, bucket)
	if err := s3.Client().SetBucketPolicy(t.Context(), bucket, policy); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"snapshot", "keep-state", "keep-snapshot"} {
		first.must(step)
	}
	names := first.names()
	if names == 0 {
		t.Fatal("got no profiles")
	}

	second := begin(unlisted, "FIRST_RUN=false", "REREAD=10 1:20820000")
	second.must("restore")
	second.must("snapshot")
	if got := second.names(); got != names {
		t.Errorf("second night: got %d profiles, want %d", got, names)
	}

	if err := s3.Client().RemoveObject(t.Context(), bucket, "at/state.tar", minio.RemoveObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	lost := begin()
	lost.must("restore")
	lost.refused("--expect-state", "snapshot")
	again := begin("FIRST_RUN=true")
	again.must("restore")
	again.must("snapshot")
	if got := again.names(); got != names {
		t.Errorf("after a lost state: got %d profiles, want %d", got, names)
	}
}

// TestProfilesFromABucket reuses the profiles of a snapshot in a bucket.
func TestProfilesFromABucket(t *testing.T) {
	s3 := servers.Start(t, servers.MinIO)
	s3.Env(t)
	bucket := s3.Bucket(t)
	s3.Upload(t, bucket, "last", "../../fixtures/demo")
	dir := t.TempDir()
	played := history.Random(5, history.Options{Chains: history.Production(), Transactions: 50})
	args := []string{"snapshot", "chain", "--no-sync", "--state", filepath.Join(dir, "state"), "--out", filepath.Join(dir, "temp", "snapshot"),
		"--profiles-from", "s3://" + bucket + "/last", "--endpoint", s3.Endpoint}
	rpc, _ := startNodes(t, played)
	args = append(args, "--rpc", strings.Join(rpc, ";"))
	if err := os.Mkdir(filepath.Join(dir, "temp"), 0o755); err != nil {
		t.Fatal(err)
	}
	done(t, args...)
	if n := (&night{t: t, dir: dir}).names(); n == 0 {
		t.Error("got no profiles")
	}
}

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
