package publisher_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// Wherever a signed publish was killed, readers with the key accept everything that a server has,
// also after another killed publish. The next publish, by a new key alongside the old one,
// completes the bucket; an older site is rejected.
func TestASignedPublishThatWasKilled(t *testing.T) {
	sites := threeSites(t)[:2] // the sites with the same configuration
	var paths []string
	for i, s := range sites {
		paths = append(paths, s.Write(t, filepath.Join(t.TempDir(), fmt.Sprint(i))))
	}
	old, rotated := testkey.New(t, "follow.example"), testkey.New(t, "follow.example")
	onServers(t, func(t *testing.T, server *servers.Server) {
		p := newPlace(t, server, "signed")
		accepts := func(when string, keys note.Keys, all ...memory) {
			t.Helper()
			s, err := checked.Open(t.Context(), p.open(t, nil), keys, checked.Options{})
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			for key := range sites[0] {
				if strings.HasPrefix(string(key), "_manifest/") || key == site.RootKey {
					continue
				}
				body, err := s.Get(t.Context(), key)
				right := false
				for _, m := range all {
					was, has := m[key]
					right = right || err == nil && has && was == string(body) || errors.Is(err, storage.ErrNotFound) && !has
				}
				if !right {
					t.Errorf("%s: %s: got %d bytes, %v", when, key, len(body), err)
				}
			}
		}
		signed := func(privates ...string) publisher.Options {
			signing, err := signingBy(privates...)
			if err != nil {
				t.Fatal(err)
			}
			return publisher.Options{Signing: signing, AllowRollback: true}
		}
		publish(t, sites[0], p.open(t, nil), signed(old.Private))
		kills := 0
		for round := range 4 {
			next := (round + 1) % 2
			child := p.start(t, job{Site: paths[next], Bulk: publisher.BulkOff, Workers: 1, Lease: 2 * time.Second, Sign: old.Private})
			if child.WaitFor("upload") {
				time.Sleep(time.Duration(round) * 20 * time.Millisecond)
			}
			child.Signal(syscall.SIGKILL)
			if _, killed := child.Wait(); killed {
				kills++
			}
			accepts(fmt.Sprintf("killed %d times", round+1), old.Keys, sites...)
			quiet(t, p)
			p.remove(t, site.LockKey)
		}
		if kills == 0 {
			t.Error("got no publisher killed, want some")
		}
		publish(t, sites[1], p.open(t, nil), signed(rotated.Private, old.Private))
		accepts("the old key", old.Keys, sites[1])
		accepts("the new key", rotated.Keys, sites[1])

		older := sites[0].With(t, func(_ memory, root *site.Root) { root.AsOf = "2001-01-01T00:00:00Z" })
		refusing := signed(rotated.Private)
		refusing.AllowRollback = false
		if _, err := publisher.Publish(t.Context(), older, p.open(t, nil), refusing); !errors.Is(err, publisher.ErrRollback) {
			t.Errorf("an older site: got %v, want ErrRollback", err)
		}
	})
}
