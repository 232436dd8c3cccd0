package server_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// BenchmarkChecked compares a handler that checks objects with one that does not: for cached
// objects (warm), and for objects read from a folder by each request (cold).
func BenchmarkChecked(b *testing.B) {
	files, _, err := generator.ToMemory(b.Context(), afero.FromIOFS{FS: fixtures.Demo()}, generator.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s, err := memsite.Read(files)
	if err != nil {
		b.Fatal(err)
	}
	key := testkey.New(b, "follow.example")
	signed := []byte(key.Note(b, s, 1))
	folder := inFolder(b, files)
	bucket := openLocal(folder)
	if _, err := bucket.Put(b.Context(), storage.Object{Entry: site.NewEntry(note.Key, signed), Body: signed}, storage.Always); err != nil {
		b.Fatal(err)
	}
	handlers := map[string]*server.Handler{}
	for name, store := range map[string]server.Store{"without": bucket, "with": checked.New(bucket, key.Keys, checked.Options{})} {
		h, err := server.New(b.Context(), store, server.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		defer h.Close()
		handlers[name] = h
	}
	r := httptest.NewRequest(http.MethodGet, largeList+"details", nil)
	for _, warm := range []bool{true, false} {
		for pair := range 12 { // one after the other, and each first in turns, since the machine may have other work
			for _, name := range [][]string{{"without", "with"}, {"with", "without"}}[pair%2] {
				b.Run(fmt.Sprintf("%s/%s/%d", map[bool]string{true: "warm", false: "cold"}[warm], name, pair), func(b *testing.B) {
					begun := processorTime(b)
					defer func() { b.ReportMetric(float64(processorTime(b)-begun)/float64(b.N), "cpu-ns/op") }()
					for b.Loop() {
						if !warm {
							handlers[name].Forget()
						}
						handlers[name].ServeHTTP(discarded{http.Header{}}, r)
					}
				})
			}
		}
	}
}

// processorTime returns what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
