package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/nodes"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// A logged world has chains that grow in steps, and a bucket.
type logged struct {
	rpc    []string
	grow   func(step int)
	bucket string // URL
	// logOf is what the bucket has below _log/.
	logOf func(t *testing.T) map[string][]byte
	// change puts another body in the place of an object of the bucket, or removes it if that is nil.
	change func(t *testing.T, key string, body []byte)
	https  func(t *testing.T) (url string, env []string) // of a web server over the bucket; nil if there is none
}

const growthSteps = 3

// TestPublishedLog: what publish --history puts as the chains grow is the log that one publish of another
// state puts; and a state that begins with it, over any protocol, ends as one that has read the chains.
func TestPublishedLog(t *testing.T) {
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	t.Run("nodes of this process, a folder, HTTPS", func(t *testing.T) {
		w := loggedFolder(t, history.Random(7, history.Options{Chains: history.Production(), Transactions: 400}))
		publishedLog(t, w)
	})
	t.Run("MinIO", func(t *testing.T) {
		w := loggedFolder(t, history.Random(8, history.Options{Chains: history.Production(), Transactions: 400}))
		w.https = nil
		s3 := servers.Start(t, servers.MinIO)
		t.Setenv("AWS_ACCESS_KEY_ID", s3.AccessKey)
		t.Setenv("AWS_SECRET_ACCESS_KEY", s3.SecretKey)
		t.Setenv("FOLLOWPRESS_ENDPOINT", s3.Endpoint)
		name := s3.Bucket(t)
		w.bucket = "s3://" + name
		client := s3.Client()
		w.logOf = func(t *testing.T) map[string][]byte {
			t.Helper()
			found := map[string][]byte{}
			for o := range client.ListObjectsIter(context.Background(), name, minio.ListObjectsOptions{Prefix: "_log/", Recursive: true}) {
				if o.Err != nil {
					t.Fatal(o.Err)
				}
				stream, err := client.GetObject(context.Background(), name, o.Key, minio.GetObjectOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if found[strings.TrimPrefix(o.Key, "_log/")], err = io.ReadAll(stream); err != nil {
					t.Fatal(err)
				}
				info, err := stream.Stat()
				if want := map[bool]string{true: "application/json", false: "application/zstd"}[strings.HasSuffix(o.Key, "/index")]; err != nil || info.ContentType != want || info.Metadata.Get("Cache-Control") != "no-cache" {
					t.Errorf("%s: got %s and %v (%v), want %s that is checked: it is not full", o.Key, info.ContentType, info.Metadata, err, want)
				}
			}
			return found
		}
		w.change = func(t *testing.T, key string, body []byte) {
			t.Helper()
			var err error
			if body == nil {
				err = client.RemoveObject(context.Background(), name, key, minio.RemoveObjectOptions{})
			} else {
				_, err = client.PutObject(context.Background(), name, key, bytes.NewReader(body), int64(len(body)), minio.PutObjectOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		publishedLog(t, w)
	})
}

// TestLogAndAnvil: contracts that run in a real node confirm the log.
func TestLogAndAnvil(t *testing.T) {
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	played := history.Random(8, history.Options{Chains: history.Production(), Transactions: 200})
	var rpc []string
	for _, c := range played.Chains {
		node := nodes.StartAnvil(t, played.Chains, c.ID, 1)
		node.Play(slices.Collect(played.Of(c.ID))...)
		node.Finalize()
		rpc = append(rpc, fmt.Sprintf("%d=%s", c.ID, node.URL))
	}
	dir := t.TempDir()
	w := &logged{rpc: rpc, bucket: "file://" + filepath.Join(dir, "bucket")}
	at := func(name string) string { return filepath.Join(dir, name) }
	done(t, "generate", "--snapshot", "../../fixtures/demo", "--out", at("site.tar"))
	done(t, w.chainArgs(at("state"), at("snapshot"))...)
	done(t, "publish", "--site", at("site.tar"), "--dest", w.bucket, "--history", at("state"))
	done(t, w.chainArgs(at("begun"), at("begun-snapshot"), "--from-bundles", w.bucket, "--report", at("report.json"))...)
	if !maps.EqualFunc(files(t, at("begun-snapshot")), files(t, at("snapshot")), bytes.Equal) {
		t.Error("got another snapshot than that of the nodes alone")
	}
	var report struct {
		Log   struct{ Rows int }
		Chain struct {
			Chains []struct{ Events, Stored int }
		}
	}
	read(t, at("report.json"), &report)
	fromNodes, stored := 0, 0
	for _, c := range report.Chain.Chains {
		fromNodes, stored = fromNodes+c.Events, stored+c.Stored
	}
	if report.Log.Rows == 0 || fromNodes >= stored {
		t.Errorf("got %d rows, and %d of %d events from nodes, want fewer of these", report.Log.Rows, fromNodes, stored)
	}
}

// loggedFolder is a world of nodes in this process, with a folder as its bucket and HTTPS in front of it.
func loggedFolder(t *testing.T, played *history.History) *logged {
	t.Helper()
	folder := t.TempDir()
	w := &logged{bucket: "file://" + folder}
	all := map[uint64]*meanrpc.Node{}
	for _, c := range played.Chains {
		all[c.ID] = meanrpc.Start(t, c.ID, slices.Values(played.Blocks))
		w.rpc = append(w.rpc, fmt.Sprintf("%d=%s", c.ID, all[c.ID].URL))
	}
	var first, last int64
	for _, b := range played.Blocks {
		if first == 0 || b.Time < first {
			first = b.Time
		}
		last = max(last, b.Time)
	}
	w.grow = func(step int) { // all chains have come to the same time, as they do
		now := first + (last-first)*int64(step+1)/growthSteps
		for _, c := range played.Chains {
			n := all[c.ID]
			head := c.First + uint64(sort.Search(1<<30, func(i int) bool { return n.Time(c.First+uint64(i)) > now }))
			head = max(c.First+1, head) - 1
			n.SetHead(head, head, head)
		}
	}
	w.logOf = func(t *testing.T) map[string][]byte { return files(t, filepath.Join(folder, "_log")) }
	w.change = func(t *testing.T, key string, body []byte) {
		t.Helper()
		err := os.Remove(filepath.Join(folder, key))
		if body != nil {
			err = os.WriteFile(filepath.Join(folder, key), body, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.https = func(t *testing.T) (string, []string) {
		t.Helper()
		server := httptest.NewTLSServer(http.FileServer(http.Dir(folder)))
		t.Cleanup(server.Close)
		certificate := filepath.Join(t.TempDir(), "certificate.pem")
		if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o644); err != nil {
			t.Fatal(err)
		}
		return server.URL, []string{"SSL_CERT_FILE=" + certificate}
	}
	return w
}

// chainArgs read a state.
func (w *logged) chainArgs(state, out string, more ...string) []string {
	return append([]string{"snapshot", "chain", "--state", state, "--out", out, "--rpc", strings.Join(w.rpc, ";")}, more...)
}

// failsWith runs a command that must fail, and say something.
func failsWith(t *testing.T, want string, args ...string) {
	t.Helper()
	if said := failed(t, args...); !strings.Contains(said, want) {
		t.Errorf("followpress %s: got %s, want an error with %q", strings.Join(args, " "), said, want)
	}
}

func publishedLog(t *testing.T, w *logged) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	done(t, "generate", "--snapshot", "../../fixtures/demo", "--out", at("site.tar"))
	publish := func(state string, more ...string) []string {
		return append([]string{"publish", "--site", at("site.tar"), "--dest", w.bucket, "--history", at(state)}, more...)
	}
	for step := range growthSteps {
		w.grow(step)
		done(t, w.chainArgs(at("state"), at("snapshot"))...)
		done(t, publish("state", "--dry-run")...)
		done(t, publish("state", "--report", at("report.json"))...)
		var report struct {
			Log struct{ Rows, Bundles, Put int }
		}
		if read(t, at("report.json"), &report); report.Log.Rows == 0 || report.Log.Put == 0 {
			t.Errorf("step %d: got %+v, want rows and bundles", step, report.Log)
		}
		done(t, publish("state", "--report", at("report.json"))...)
		if read(t, at("report.json"), &report); report.Log.Put != 0 {
			t.Errorf("step %d again: got %d bundles put, want none", step, report.Log.Put)
		}
		done(t, "verify", "--dest", w.bucket)
	}
	grown := w.logOf(t)

	// Another state, read at once, into another bucket.
	other := "file://" + at("other")
	done(t, w.chainArgs(at("other-state"), at("other-snapshot"))...)
	done(t, "publish", "--site", at("site.tar"), "--dest", other, "--history", at("other-state"))
	once := files(t, at("other/_log"))
	delete(once, "index") // which may name other points
	if !maps.EqualFunc(without(grown, "index"), once, bytes.Equal) {
		t.Error("the bundles of one publish differ from those that grew")
	}

	// Anybody begins with the log, with and without nodes. A run that fails after the state is there goes on, too.
	refuses := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	failsWith(t, "--badges", "snapshot", "bundle", "--from", w.bucket, "--state", at("twin"), "--out", at("twin-snapshot"), "--badges", refuses, "--badge-events", "1")
	done(t, "snapshot", "bundle", "--from", w.bucket, "--state", at("twin"), "--out", at("twin-snapshot"), "--report", at("report.json"))
	failsWith(t, "has events already", "snapshot", "bundle", "--from", w.bucket, "--state", at("twin"), "--out", at("twin-snapshot"))
	done(t, w.chainArgs(at("twin"), at("twin-snapshot"))...)
	done(t, w.chainArgs(at("begun"), at("begun-snapshot"), "--from-bundles", w.bucket)...)
	done(t, w.chainArgs(at("begun"), at("begun-snapshot"), "--from-bundles", w.bucket)...)
	for _, name := range []string{"twin-snapshot", "begun-snapshot", "other-snapshot"} {
		if !maps.EqualFunc(files(t, at(name)), files(t, at("snapshot")), bytes.Equal) {
			t.Errorf("%s: got another snapshot than that of the nodes alone", name)
		}
	}
	done(t, publish("twin")...) // it goes on with the log as the first state does
	if w.https != nil {
		url, env := w.https(t)
		run := process.Self(t, env, w.chainArgs(at("over-https"), at("https-snapshot"), "--from-bundles", url)...)
		run.Args[0] = "followpress"
		p := process.Start(t, run)
		if status, _ := p.Wait(); status != 0 {
			t.Fatalf("over HTTPS: %s", p.Stderr())
		}
		if !maps.EqualFunc(files(t, at("https-snapshot")), files(t, at("snapshot")), bytes.Equal) {
			t.Error("over HTTPS: got another snapshot than that of the nodes alone")
		}
	}

	// What is damaged is named, and believed by nobody; the state puts it right.
	damaged := slices.Clone(grown["0"])
	damaged[len(damaged)/2] ^= 1
	w.change(t, "_log/0", damaged)
	failsWith(t, "bundle _log/0", "verify", "--dest", w.bucket)
	failsWith(t, "bundle _log/0", w.chainArgs(at("none"), at("none-snapshot"), "--from-bundles", w.bucket)...)
	done(t, "repair", "--site", at("site.tar"), "--dest", w.bucket) // which leaves the log alone
	w.change(t, "_log/index", nil)
	done(t, publish("state")...)
	done(t, "verify", "--dest", w.bucket)
	if !maps.EqualFunc(w.logOf(t), grown, bytes.Equal) {
		t.Error("the log that was put right differs from what it was")
	}

	// A state that contradicts the log is refused, and nothing is put.
	refused := strings.Replace(string(grown["index"]), `"text_sha256":"`, `"text_sha256":"0000`, 1)
	w.change(t, "_log/index", []byte(refused))
	failsWith(t, "the index of the log is damaged", publish("state")...)
	w.change(t, "_log/index", grown["index"])
	failsWith(t, "nothing was read into it yet", publish("empty")...)
}

func without(all map[string][]byte, name string) map[string][]byte {
	rest := maps.Clone(all)
	delete(rest, name)
	return rest
}

// TestLogOfKilledRuns: whenever a publish of the log is killed, readers have what its index names, and the
// next publish goes on; and a run that begins with the log goes on where it was killed.
func TestLogOfKilledRuns(t *testing.T) {
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	w := loggedFolder(t, history.Random(9, history.Options{Chains: history.Production(), Transactions: servers.Rounds(300, 6000)}))
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	done(t, "generate", "--snapshot", "../../fixtures/demo", "--out", at("site.tar"))
	random := rand.New(rand.NewPCG(20261123, 5))
	kill := func(within time.Duration, args ...string) {
		t.Helper()
		run := process.Self(t, nil, args...)
		run.Args[0] = "followpress"
		p := process.Start(t, run)
		time.Sleep(time.Duration(random.Int64N(int64(within) + 1)))
		p.Signal(syscall.SIGKILL)
		p.Wait()
	}
	rounds := servers.Rounds(3, 15)
	publish := []string{"publish", "--site", at("site.tar"), "--dest", w.bucket, "--history", at("state"), "--lock-lease", "1s"}
	for step := range growthSteps {
		w.grow(step)
		done(t, w.chainArgs(at("state"), at("snapshot"))...)
		for n := range rounds {
			kill(400*time.Millisecond, append(publish, "--no-lock")...)
			if _, err := os.Stat(strings.TrimPrefix(w.bucket, "file://") + "/_log/index"); err != nil {
				continue
			}
			name := fmt.Sprintf("reader-%d-%d", step, n)
			done(t, w.chainArgs(at(name), at(name+"-snapshot"), "--from-bundles", w.bucket)...)
			if !maps.EqualFunc(files(t, at(name+"-snapshot")), files(t, at("snapshot")), bytes.Equal) {
				t.Fatalf("step %d, kill %d: a reader of the log got another snapshot", step, n)
			}
		}
		done(t, append(publish, "--no-lock")...)
		done(t, "verify", "--dest", w.bucket, "--exclude", "nothing")
	}
	begin := w.chainArgs(at("killed"), at("killed-snapshot"), "--from-bundles", w.bucket)
	for range 3 * rounds {
		kill(300*time.Millisecond, begin...)
	}
	done(t, begin...)
	if !maps.EqualFunc(files(t, at("killed-snapshot")), files(t, at("snapshot")), bytes.Equal) {
		t.Error("after kills: got another snapshot than that of the nodes alone")
	}
	if _, err := os.Stat(at("killed/bundles")); err == nil {
		t.Error("the bundles that were downloaded are still there")
	}
}
