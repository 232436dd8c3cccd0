package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/storage"
)

// TestRefreshLeavesOutLongTexts: the limit of the site's configuration applies to an
// upstream's answer, so that the next generate gives the same object, and to data that
// was stored before there was a limit.
func TestRefreshLeavesOutLongTexts(t *testing.T) {
	t.Parallel()
	files := demo(t)
	account := accountOf(t, files, "104")
	long := profileOf("new.eth", 1_795_300_000_000)
	long.Avatar = "data:," + strings.Repeat("x", 64<<10)
	want := readObject(t, generated(t, withProfile(t, account, long)), "api/v1/lists/104/details")
	if !strings.Contains(want, `"name":"new.eth","avatar":"","header":`) {
		t.Fatalf("the generator: got %.300s, want the profile without its avatar", want)
	}

	t.Run("fetched", func(t *testing.T) {
		b := local(t, files)
		u := newUpstream(t)
		u.tell(profiles(func(string) site.Profile { return long }).handler(t), nil)
		base := listen(t, newHandler(t, b, server.Options{Refresh: u.options()}))
		if _, body := request(t, http.MethodGet, base+freshDetails); body != want {
			t.Errorf("got  %.300s\nwant %s", body, want)
		}
		if kept := content(t, b, "_refresh/")["_refresh/details/104"]; kept == "" || strings.Contains(kept, long.Avatar) {
			t.Errorf("kept: got %.300s, want it without the long avatar", kept)
		}
	})
	t.Run("kept", func(t *testing.T) {
		b := local(t, files)
		kept, err := refresh.KeptProfile{Address: account, Profile: long}.Keep(nil, []byte{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		o := storage.Object{Entry: site.Entry{Key: "_refresh/details/104", Size: int64(len(kept)), MD5: site.Sum(kept)}, Body: kept}
		if _, err := b.Put(t.Context(), o, ""); err != nil {
			t.Fatal(err)
		}
		h := newHandler(t, b, server.Options{Refresh: newUpstream(t).options(), Poll: 10 * time.Millisecond})
		ctx, stop := context.WithCancel(t.Context())
		watched := make(chan struct{})
		go func() {
			h.Watch(ctx)
			close(watched)
		}()
		defer func() {
			stop()
			<-watched
		}()
		eventually(t, "the refresh is done again", func() bool {
			return content(t, b, "api/v1/lists/104/details")["api/v1/lists/104/details"] == want
		})
	})
}
