// Package release is the version of a program, as the Go tool has recorded it.
package release

import "runtime/debug"

// Version is the version of the module of this program, such as v1.2.3. It does not depend on the machine or on the Go
// release. A build without a version, as of go run and of tests, is a "development build".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok { // built without module support
		info = &debug.BuildInfo{}
	}
	return Of(info)
}

// Of is the version in what the Go tool has recorded.
func Of(info *debug.BuildInfo) string {
	if version := info.Main.Version; version != "" && version != "(devel)" {
		return version
	}
	return "development build"
}
