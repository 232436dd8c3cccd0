package command

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.time", Value: "2026-11-21T10:00:00Z"}}
	for want, info := range map[string]debug.BuildInfo{
		"v1.2.3":            {Main: debug.Module{Version: "v1.2.3"}},
		"development build": {Main: debug.Module{Version: "(devel)"}},
		"v1.2.3 (commit 0123456789ab of 2026-11-21T10:00:00Z)": {Main: debug.Module{Version: "v1.2.3"}, Settings: commit},
		"development build (commit 0123456789ab of 2026-11-21T10:00:00Z, with local changes)": {
			Settings: append(commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
		},
	} {
		want += ", " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
		if got := describe(&info); got != want {
			t.Errorf("version: got %q, want %q", got, want)
		}
	}
	if got := Version("followpress"); !strings.HasPrefix(got, "followpress development build, go") {
		t.Errorf("version of a test: got %q, want a development build", got)
	}
}
