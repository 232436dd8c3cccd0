package storage

import "time"

// Hurry makes tests wait less before a request is tried again.
func Hurry() { refreshedRetry.First = time.Millisecond }
