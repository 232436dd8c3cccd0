package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/upstreams"
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
	var rpc []string
	for _, c := range played.Chains {
		rpc = append(rpc, fmt.Sprintf("%d=%s", c.ID, meanrpc.Start(t, c.ID, slices.Values(played.Blocks)).URL))
	}
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
	for _, c := range played.Chains {
		args = append(args, "--rpc", fmt.Sprintf("%d=%s", c.ID, meanrpc.Start(t, c.ID, slices.Values(played.Blocks)).URL))
	}
	if err := os.Mkdir(filepath.Join(dir, "temp"), 0o755); err != nil {
		t.Fatal(err)
	}
	done(t, args...)
	if n := (&night{t: t, dir: dir}).names(); n == 0 {
		t.Error("got no profiles")
	}
}
