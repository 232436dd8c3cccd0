package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/internal/testenv/testkey"
)

// No command prints a password in a URL, whether or not a server answers there.
func TestPasswordsInURLs(t *testing.T) {
	there := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		http.Error(w, r.URL.String()+password+r.Header.Get("Authorization"), http.StatusForbidden)
	}))
	key := testkey.New(t, "follow.example").Public
	for _, host := range []string{"127.0.0.1:1", strings.TrimPrefix(there, "http://")} {
		url := "http://user-name:pass-WORD@" + host
		for _, args := range [][]string{
			{"verify", "--dest", url, "--key", key, "--patience", "1ms", "--report", "-"}, {"reproduce", url}, {"reproduce", url + "?key=pass-WORD"},
			{"verify", "--dest", url}, {"verify", "--dest", url, "--exclude", "x", "--key", key},
			{"audit", url, "--rpc", "1=" + url}, {"audit", url + "#pass-WORD", "--rpc", "1=" + url},
			{"snapshot", "chain", "--rpc", "8453=" + url + ";10=" + url + ";1=" + url, "--state", t.TempDir(), "--out", filepath.Join(t.TempDir(), "s"), "--rpc-patience", "1ms"},
			{"publish", "--site", "x", "--dest", "s3://bucket", "--endpoint", url, "--patience", "1ms"},
			{"serve", "--site", "s3://bucket", "--endpoint", url},
		} {
			if host == "127.0.0.1:1" && args[0] != "verify" {
				continue // its patience is not a flag
			}
			status, _, all := ran(args...)
			if status == command.Done || strings.Contains(all, "pass-WORD") || strings.Contains(all, "dXNlci1uYW1lOnBhc3MtV09SRA") {
				t.Errorf("%s: got status %d and %s, want a failure that does not tell the password", strings.Join(args, " "), status, all)
			}
		}
	}
}

// Neither the answers of a server nor the objects in a bucket control the terminal.
func TestWhatOthersSayInATerminal(t *testing.T) {
	const evil = "\u009b31m\u202ekcab\u2066"
	s3 := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>Odd`+evil+`</Code><Message>no `+evil+`</Message></Error>`)
	}))
	cache := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "\x1b]0;title\x07"+evil)
	}))
	bucket := t.TempDir()
	done(t, "publish", "--snapshot", "../../fixtures/demo", "--dest", "file://"+bucket)
	if err := os.WriteFile(filepath.Join(bucket, "mine\x1b]0;title\x07"+evil), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "somebody")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "something")
	for _, args := range [][]string{
		{"verify", "--dest", "s3://bucket", "--endpoint", s3}, {"purge", "--purge", "http:" + cache}, {"verify", "--dest", "file://" + bucket},
	} {
		status, _, all := ran(args...)
		if status != command.Failed || !strings.Contains(all, "kcab") || strings.ContainsAny(all, "\x1b\x07\u009b\u202e\u2066") {
			t.Errorf("%s: got status %d and %q, want a failure that quotes the answer without control characters", strings.Join(args, " "), status, all)
		}
	}
}
