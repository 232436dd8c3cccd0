package difftest

import "testing"

// JobFails skips a test of failing jobs under the race detector. A worker whose job has failed
// reads a stream from two goroutines (Beam 2.77.0, harness/datamgr.go: dataWriter.send, and
// DataChannel.read). The names of such tests begin with TestFaultOf.
func JobFails(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("a job that fails has a race within Beam: go test -C beam -run '^TestFaultOf', which .ci/test does too")
	}
}
