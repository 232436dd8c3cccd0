package storage

import (
	"context"
	"net"
	"net/http"
	"os"
	"time"
)

// Dial makes connections of a Web by a function of a test.
func (w *Web) Dial(dial func() net.Conn) {
	w.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return dial(), nil }
}

// Hurry makes tests wait less before a request is tried again.
func Hurry() {
	readRetry.First = time.Millisecond
	partsFirstBackoff, partsPatience = time.Millisecond, 500*time.Millisecond
}

// SiteOf is the site in a bucket of parts; nil for a folder.
func SiteOf(p *Parts) Site {
	if _, local := p.place.(partsFolder); local {
		return nil
	}
	return newPartsSite(p, chunksOfBucket)
}

// SettleAfter changes the age from which a new tar file counts as complete, until reset is called.
func SettleAfter(age time.Duration) (reset func()) {
	was := settleTime
	settleTime = age
	return func() { settleTime = was }
}

// LimitMemory limits the memory for what is read of files.
func LimitMemory(f *Files, bytes int) { f.FS.(*bucketFiles).most = bytes }

// MemoryOf is how much of it is in use.
func MemoryOf(f *Files) int { return f.FS.(*bucketFiles).memory }

// WatchSyncs calls synced instead of making files and file systems durable, until stop is called.
func WatchSyncs(synced func(what *os.File) error) (stop func()) {
	file, fileSystem := syncFile, syncFileSystem
	syncFile, syncFileSystem = synced, synced
	return func() { syncFile, syncFileSystem = file, fileSystem }
}
