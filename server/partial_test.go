package server_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/followpress/followpress/server"
)

// TestAnUpstreamThatLeavesMembersOut: omitted members keep their stored value, null and "" clear
// it, and entries that are not strings are omitted and counted. The data kept for the next site
// agrees.
func TestAnUpstreamThatLeavesMembersOut(t *testing.T) {
	t.Parallel()
	files := demo(t)
	account := accountOf(t, files, "104")
	before := profileOf("old.eth", 1_000)
	before.Header, before.Resolver, before.Chains = "https://h.example", account, []byte(`{"eth":"0x1"}`)
	b := local(t, generated(t, withProfile(t, account, before)))
	want := before
	want.Name, want.Display, want.Records, want.Fresh = "new.eth", "", []byte(`{"a":"b"}`), 1_795_300_000_000
	after := readObject(t, generated(t, withProfile(t, account, want)), "api/v1/lists/104/details")

	u := newUpstream(t)
	u.tell(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"name":"new.eth","display":null,"records":{"a":"b","c":7,"d":null},"fresh":1795300000000}`)
	}, nil)
	var log bytes.Buffer
	base := listen(t, newHandler(t, b, server.Options{Refresh: u.options(), Log: slog.New(slog.NewTextHandler(&log, nil))}))
	if _, body := request(t, http.MethodGet, base+freshDetails); body != after {
		t.Errorf("got  %s\nwant %s", body, after)
	}
	kept := content(t, b, "_refresh/")["_refresh/details/104"]
	if rest := `"header":"https://h.example","display":"","records":{"a":"b"},"chains":{"eth":"0x1"}`; !strings.Contains(kept, rest) {
		t.Errorf("kept: got %s, want in it %s", kept, rest)
	}
	if line := "key=api/v1/lists/104/details entries=1"; !strings.Contains(log.String(), line) {
		t.Errorf("log: got %s, want in it %s", log.String(), line)
	}
	if stored := content(t, b, "api/v1/lists/104/details")["api/v1/lists/104/details"]; stored != after {
		t.Errorf("stored: got %s, want %s", stored, after)
	}
}
