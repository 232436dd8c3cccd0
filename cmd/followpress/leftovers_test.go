package main

import (
	"bytes"
	"context"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/internal/testenv/testkey"
)

// A firstLine cancels a context at the first write, when a server has printed its address.
type firstLine struct {
	mu     sync.Mutex
	text   bytes.Buffer
	cancel context.CancelFunc
}

func (f *firstLine) Write(text []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancel != nil {
		f.cancel()
	}
	return f.text.Write(text)
}

// runWith runs a command until ctx ends, or once it has written to standard output if untilServed is set. It returns all
// that the command has written.
func runWith(ctx context.Context, untilServed bool, args ...string) (all string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parsed, err := command.NewParser("followpress", about, &verbs{}).Parse(args)
	if err != nil {
		return err.Error(), err
	}
	out, messages := &firstLine{}, &firstLine{}
	if untilServed {
		out.cancel = cancel
	}
	err = parsed.Selected().Target.Addr().Interface().(command.Grammar).Run(ctx, out, messages)
	return out.text.String() + messages.text.String(), err
}

// below returns all files and folders below a folder.
func below(t *testing.T, folder string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// No command leaves files in the temporary folder or the working directory, whether it succeeds,
// fails, or is stopped at any time.
func TestNothingIsLeftBehind(t *testing.T) {
	p, _ := play(t, 23)
	p.publish(t, "snapshot", "bucket")
	p.publish(t, "snapshot", "older")
	done(t, "generate", "--snapshot", p.at("snapshot"), "--out", p.at("site.tar"))
	keyFile := testkey.New(t, "follow.example").File(t)
	cache := served(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	busy := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	web := served(t, http.FileServer(http.Dir(p.at("bucket"))))
	bucket, nowhere := "file://"+p.at("bucket"), p.at("nowhere")
	serving := []string{"--addr", "127.0.0.1:0"}
	verbs := map[string]struct {
		good, bad []string // nil for none
		serves    bool     // until it is told to stop
	}{
		"snapshot chain": {[]string{"--rpc", p.rpc(), "--state", p.at("new-state"), "--out", p.at("new-snapshot")},
			[]string{"--rpc", "8453=" + busy + ";10=" + busy + ";1=" + busy, "--state", p.at("no-state"), "--out", p.at("no-snapshot")}, false},
		"snapshot postgres": {nil, []string{"--dsn", "postgres://127.0.0.1:1/nobody", "--out", p.at("no-snapshot")}, false},
		"generate":          {[]string{"--snapshot", p.at("snapshot"), "--out", p.at("site")}, []string{"--snapshot", nowhere, "--out", p.at("no-site")}, false},
		"preview":           {append([]string{"--site", p.at("site.tar")}, serving...), append([]string{"--site", nowhere}, serving...), true},
		"init":              {[]string{"--dest", "file://" + p.at("made"), "--site", p.at("site.tar")}, []string{"--dest", bucket, "--site", nowhere}, false},
		"publish": {[]string{"--snapshot", p.at("snapshot"), "--dest", "file://" + p.at("published"), "--inputs", "--sign", keyFile},
			[]string{"--snapshot", nowhere, "--dest", bucket}, false},
		"key":       {[]string{"--name", "follow.example", "--out", p.at("new.key")}, []string{"--name", "follow.example", "--out", p.at("nowhere/new.key")}, false},
		"edge":      {[]string{"--kind", "nginx", "--site", p.at("site.tar"), "--bucket-url", "http://bucket.example"}, []string{"--kind", "nginx", "--site", nowhere, "--bucket-url", "http://bucket.example"}, false},
		"report":    {[]string{"--from", "file://" + p.at("older"), "--to", p.at("site.tar"), "--out", p.at("report.html")}, []string{"--from", nowhere, "--to", p.at("site.tar"), "--out", p.at("no.html")}, false},
		"verify":    {[]string{"--dest", bucket}, []string{"--dest", "file://" + nowhere}, false},
		"audit":     {[]string{p.at("site.tar"), "--rpc", p.rpc()}, []string{nowhere, "--rpc", p.rpc()}, false},
		"reproduce": {[]string{web}, []string{busy}, false},
		"repair":    {[]string{"--site", p.at("site.tar"), "--dest", bucket}, []string{"--site", nowhere, "--dest", bucket}, false},
		"purge":     {[]string{"--purge", "http:" + cache}, []string{"--purge", "http:" + busy}, false},
		"serve":     {append([]string{"--site", p.at("site.tar")}, serving...), append([]string{"--site", nowhere}, serving...), true},
		"live": {append([]string{"--rpc", p.rpc(), "--state", p.at("state")}, serving...),
			append([]string{"--rpc", "8453=" + busy, "--state", p.at("no-state")}, serving...), true},
		"version": {nil, nil, false},
	}
	temporary, working := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Chdir(working)
	for _, leaf := range commands(t) {
		verb, ok := verbs[leaf.Path]
		if !ok {
			t.Errorf("%s: got no arguments, want some here", leaf.Path)
			continue
		}
		check := func(how string, args []string, err error, all string, want bool) {
			t.Helper()
			if (err == nil) != want {
				t.Errorf("%s %s, %s: got %v: %s", leaf.Path, strings.Join(args, " "), how, err, all)
			}
			if left := slices.Concat(below(t, temporary)[1:], below(t, working)[1:]); len(left) > 0 {
				t.Errorf("%s %s, %s: got left behind %v", leaf.Path, strings.Join(args, " "), how, left)
				for _, path := range left {
					_ = os.RemoveAll(path)
				}
			}
		}
		words := strings.Fields(leaf.Path)
		if verb.bad != nil {
			args := append(slices.Clone(words), verb.bad...)
			all, err := runWith(t.Context(), false, args...)
			check("failing", args, err, all, false)
		}
		if verb.good == nil {
			continue
		}
		args := append(words, verb.good...)
		stopped, stop := context.WithCancel(t.Context())
		stop()
		all, err := runWith(stopped, false, args...)
		check("told to stop before", args, err, all, err == nil)
		for pause := 500 * time.Microsecond; pause < time.Second && !verb.serves; pause *= 4 {
			ctx, cancel := context.WithTimeout(t.Context(), pause)
			all, err := runWith(ctx, false, args...)
			cancel()
			check("told to stop after "+pause.String(), args, err, all, err == nil)
			if err == nil {
				break
			}
		}
		if leaf.Path == "key" {
			_ = os.Remove(p.at("new.key")) // key new does not replace a file
		}
		all, err = runWith(t.Context(), verb.serves, args...)
		check("succeeding", args, err, all, true)
	}
}
