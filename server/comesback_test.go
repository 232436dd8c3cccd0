package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/server"
)

// A folder is replaced by another and restored between two polls. No answer comes from
// the other folder afterwards, though the root is the same file as before.
func TestAFolderThatComesBack(t *testing.T) {
	flip := func(t *testing.T, link, target string) {
		t.Helper()
		if err := os.Symlink(target, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		site string
		put  func(t *testing.T, in string, is, was string)
	}{
		"a link": {"current", func(t *testing.T, in string, is, _ string) {
			t.Helper()
			flip(t, filepath.Join(in, "current"), is)
		}},
		"a link on the way": {"current/site", func(t *testing.T, in string, is, _ string) {
			t.Helper()
			if err := os.MkdirAll(filepath.Join(in, "of"+is), 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(filepath.Join(in, "of"+is, "site")); err != nil {
				flip(t, filepath.Join(in, "of"+is, "site"), filepath.Join(in, is))
			}
			flip(t, filepath.Join(in, "current"), "of"+is)
		}},
		"renamed": {"site", func(t *testing.T, in string, is, was string) {
			t.Helper()
			current := filepath.Join(in, "site")
			if err := os.Rename(current, filepath.Join(in, was)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(in, is), current); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := t.TempDir()
			for i, text := range []string{"one", "two"} {
				for key, body := range follows(t, text, map[string]int{"1": 3}) {
					path := filepath.Join(in, fmt.Sprint(i), filepath.FromSlash(string(key)))
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			c.put(t, in, "0", "1")
			handler := newHandler(t, open(t, filepath.Join(in, c.site)), server.Options{})
			time.Sleep(20 * time.Millisecond) // times of files are as exact as the system's ticks
			c.put(t, in, "1", "0")
			const path = "/api/v1/lists/1/records"
			if w := ask(handler, path); !strings.Contains(w.Body.String(), `"two"`) {
				t.Fatalf("the other site: got %d %.300s, want a search that finds two", w.Code, w.Body)
			}
			c.put(t, in, "0", "1")
			handler.PollRoot(t.Context())
			if w := ask(handler, path); !strings.Contains(w.Body.String(), `"one"`) {
				t.Errorf("the site that came back: got %d %.300s, want a search that finds one", w.Code, w.Body)
			}
			served := handler.Version()
			handler.PollRoot(t.Context())
			if got := handler.Version(); got != served {
				t.Errorf("nothing has changed: got version %d, want %d", got, served)
			}
		})
	}
}
