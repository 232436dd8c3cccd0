// Package release is the version of a program, as the Go tool has recorded it.
package release

import (
	"runtime/debug"
	"strings"
)

// Version returns the version of this program's module, such as v1.2.3. It does not depend on the
// machine, the Go release, or files other than the source. A build without a version, as by go run
// and go test, is a "development build".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok { // built without module support
		info = &debug.BuildInfo{}
	}
	return Of(info)
}

// Of returns the version in what the Go tool has recorded.
func Of(info *debug.BuildInfo) string {
	if version, _, _ := strings.Cut(info.Main.Version, "+"); version != "" && version != "(devel)" { // without +dirty
		return version
	}
	return "development build"
}
