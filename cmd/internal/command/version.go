package command

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/followpress/followpress/internal/release"
)

// Version describes this build in one line, from the Go tool's records: version, commit and Go release.
func Version(name string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok { // built without module support
		info = &debug.BuildInfo{}
	}
	return name + " " + describe(info)
}

func describe(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	version := release.Of(info)
	if commit := settings["vcs.revision"]; commit != "" {
		changed := ""
		if settings["vcs.modified"] == "true" {
			changed = ", with local changes"
		}
		version += fmt.Sprintf(" (commit %.12s of %s%s)", commit, settings["vcs.time"], changed)
	}
	return fmt.Sprintf("%s, %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
