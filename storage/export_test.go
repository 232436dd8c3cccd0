package storage

import "time"

// Hurry makes tests wait less before a request is tried again.
func Hurry() { refreshedWait = time.Millisecond }
