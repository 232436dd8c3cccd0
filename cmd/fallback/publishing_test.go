package main

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
)

// While one signed site replaces another, each answer is that of one of them, or a 503: nothing is taken for altered.
func TestASignedPublishWhileItAnswers(t *testing.T) {
	a := testkey.New(t, "follow.example")
	sites := []memsite.Site{demo(t, 21), demo(t, 22), demo(t, 23), demo(t, 24)}
	asked := details(sites[0])
	onBuckets(t, func(t *testing.T, open func() attacked) {
		b := open()
		publish := func(s memsite.Site) {
			t.Helper()
			if _, err := publisher.Publish(t.Context(), s, b.Bucket, publisher.Options{
				Signing: &publisher.Signing{Signers: []note.Signer{a.Signer}, Keys: a.Keys},
			}); err != nil {
				t.Fatal(err)
			}
		}
		publish(sites[0])
		// With little room in the cache, nearly every answer is read from the bucket.
		p := run(t, executable(t), append(b.args, "--key="+a.Public, "--poll=200ms", "--cache-bytes=8192")...)
		var published atomic.Int64 // the site that is being published, or was
		var done atomic.Bool
		var readers sync.WaitGroup
		var answers, between atomic.Int64
		for reader := range 4 {
			readers.Go(func() {
				for n := reader; !done.Load(); n++ {
					key := asked[n%len(asked)]
					first := max(published.Load()-1, 0)
					response, body := get(t, p.base+key.URLPath())
					last := published.Load()
					is := false
					for _, s := range sites[first : last+1] {
						is = is || s[key] == body
					}
					switch {
					case response.StatusCode == http.StatusServiceUnavailable:
						between.Add(1)
					case response.StatusCode != http.StatusOK || !is:
						t.Errorf("%s, while sites %d to %d were published: got %d %s", key, first, last, response.StatusCode, body)
						return
					}
					answers.Add(1)
				}
			})
		}
		for n, s := range sites[1:] {
			published.Store(int64(n + 1))
			publish(s)
			waitFor(t, "the new site", func() bool { _, body := get(t, p.base+site.RootKey.URLPath()); return body == s[site.RootKey] })
		}
		done.Store(true)
		readers.Wait()
		t.Logf("%d answers, of which %d were 503", answers.Load(), between.Load())
		if answers.Load() < 10 {
			t.Errorf("got %d answers while sites were published, want some", answers.Load())
		}
		last := sites[len(sites)-1]
		for _, key := range append(asked, site.RootKey) {
			waitFor(t, fmt.Sprintf("%s of the last site", key), func() bool { _, body := get(t, p.base+key.URLPath()); return body == last[key] })
		}
	})
}
