package publisher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
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

var errCut = errors.New("the process was killed")

// A cut bucket carries out some writes, and none after those.
type cut struct {
	*storage.S3
	left atomic.Int64
}

func (c *cut) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	if c.left.Add(-1) < 0 {
		return "", errCut
	}
	return c.S3.Put(ctx, o, condition)
}

func (c *cut) Delete(ctx context.Context, keys []site.Key) error {
	if c.left.Add(-1) < 0 {
		return errCut
	}
	return c.S3.Delete(ctx, keys)
}

// Wherever a signed publish was cut off, readers with the key accept all that a server has, also after the publish of
// another site was cut off too. The next publish, by a new key beside the old one, completes the bucket; an older site is
// refused.
func TestASignedPublishThatWasKilled(t *testing.T) {
	onServers(t, func(t *testing.T, server *servers.Server) {
		sites := threeSites(t)
		old, rotated := testkey.New(t, "follow.example"), testkey.New(t, "follow.example")
		both, err := note.ParseKeys(rotated.Public, old.Public)
		if err != nil {
			t.Fatal(err)
		}
		options := func(s publisher.Signing) publisher.Options {
			s.AllowRollback = true
			return publisher.Options{Signing: &s, Bulk: publisher.BulkOff, Concurrency: 1, Lease: time.Second, BreakLock: true}
		}
		signed := options(publisher.Signing{Signers: []note.Signer{old.Signer}, Keys: old.Keys})
		for _, writes := range []int64{4, 20, 60, 1000} {
			t.Run(fmt.Sprintf("after %d writes", writes), func(t *testing.T) {
				p := newPlace(t, server, "signed")
				bucket := p.open(t, nil)
				accepts := func(when string, keys note.Keys, all ...memory) {
					t.Helper()
					s, err := checked.Open(t.Context(), bucket, keys, checked.Options{})
					if err != nil {
						t.Fatalf("%s: %v", when, err)
					}
					for key := range all[0] {
						if strings.HasPrefix(string(key), "_manifest/") || key == site.RootKey {
							continue
						}
						body, err := s.Get(t.Context(), key)
						ok := false
						for _, m := range all {
							was, has := m[key]
							ok = ok || err == nil && has && was == string(body) || errors.Is(err, storage.ErrNotFound) && !has
						}
						if !ok {
							t.Errorf("%s: %s: got %d bytes, %v", when, key, len(body), err)
						}
					}
				}
				publish(t, sites[0], bucket, signed)
				for i, next := range sites[1:] {
					dying := &cut{S3: bucket}
					dying.left.Store(writes)
					if _, err := publisher.Publish(t.Context(), next, dying, signed); err != nil && !errors.Is(err, errCut) {
						t.Fatal(err)
					}
					accepts(fmt.Sprintf("cut off: %d", i+1), old.Keys, sites...)
				}
				publish(t, sites[1], bucket, options(publisher.Signing{Signers: []note.Signer{rotated.Signer, old.Signer}, Keys: both}))
				accepts("the old key", old.Keys, sites[1])
				accepts("the new key", rotated.Keys, sites[1])
			})
		}
	})
}
