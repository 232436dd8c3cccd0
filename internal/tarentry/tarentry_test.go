package tarentry_test

import (
	"archive/tar"
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/tarentry"
)

// libraryHeader returns the header that archive/tar writes.
func libraryHeader(name string, size int64, modTime time.Time) ([]byte, error) {
	var b bytes.Buffer
	err := tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: modTime})
	return b.Bytes(), err
}

// sameHeader fails the test unless a header equals archive/tar's, which may be missing.
func sameHeader(t *testing.T, name string, size, unix int64) {
	t.Helper()
	modTime := time.Unix(unix, 0)
	const before = "what the piece has already"
	format, err := tarentry.New(modTime)
	var got []byte
	if err == nil {
		got, err = format.AppendHeader([]byte(before), name, size)
	}
	want, wantErr := libraryHeader(name, size, modTime)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("name %q, size %d, time %d: got error %v, want %v", name, size, unix, err, wantErr)
	}
	if wantErr == nil && string(got) != before+string(want) {
		t.Errorf("name %q, size %d, time %d: got header %q, want %q", name, size, unix, got[len(before):], want)
	}
	if wantErr != nil {
		return
	}
	if n, err := format.HeaderSize(name, size); err != nil || n != int64(len(want)) {
		t.Errorf("name %q, size %d, time %d: got a header of %d bytes, %v, want %d", name, size, unix, n, err, len(want))
	}
}

// Names, sizes and times at the limits of the fields of a header.
var (
	headerNames = []string{"", "a", "_site", "api/v1/lists/7/details", strings.Repeat("n", 99), strings.Repeat("n", 100), strings.Repeat("n", 101),
		strings.Repeat("d", 99) + "/name", strings.Repeat("d", 155) + "/" + strings.Repeat("n", 100), strings.Repeat("d", 300) + "/name",
		"api/v1/users/é.eth/details", "folder/", strings.Repeat("n", 99) + "/", "nul\x00byte", "\x7f", "\x80", "not\xffutf8", " ", "/absolute", "../up"}
	headerSizes = []int64{0, 1, 7, 8, 511, 512, 513, 600, 1<<33 - 1, 1 << 33, math.MaxInt64, -1}
	headerTimes = []int64{1_763_596_800, 0, 1, -1, 1<<33 - 1, 1 << 33, -62_135_596_800, 253_402_300_799}
)

// TestTarHeaders: headers are those of archive/tar, regardless of the object and the time.
func TestTarHeaders(t *testing.T) {
	for _, name := range headerNames {
		for _, size := range headerSizes {
			for _, unix := range headerTimes {
				sameHeader(t, name, size, unix)
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 14))
	for range 20_000 {
		name := make([]byte, random.IntN(110))
		for i := range name {
			name[i] = byte(1 + random.IntN(127))
		}
		sameHeader(t, string(name), random.Int64N(1<<random.IntN(40)), random.Int64N(1<<random.IntN(36)))
	}
}

// TestTarEntries: an archive of entries is that of archive/tar.
func TestTarEntries(t *testing.T) {
	const asOf = "2025-11-20T01:02:03.5+01:00"
	format, err := tarentry.ForSite(asOf)
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	var want bytes.Buffer
	archive := tar.NewWriter(&want)
	for i, name := range []string{"a", "api/v1/users/é.eth/details", strings.Repeat("d", 300) + "/name", "_site"} {
		body := bytes.Repeat([]byte{'x'}, []int{0, 1, 512, 513}[i])
		if got, err = format.Append(got, name, body); err != nil {
			t.Fatal(err)
		}
		err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(body)), Mode: 0o644,
			ModTime: time.Date(2025, 11, 20, 0, 2, 3, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if got = tarentry.AppendEnd(got); !bytes.Equal(got, want.Bytes()) {
		t.Error("the archive differs from that of archive/tar")
	}
	if _, err := tarentry.ForSite("yesterday"); err == nil {
		t.Error("an invalid time: got no error")
	}
}

func FuzzTarHeader(f *testing.F) {
	for i, name := range headerNames {
		f.Add(name, headerSizes[i%len(headerSizes)], headerTimes[i%len(headerTimes)])
	}
	f.Fuzz(func(t *testing.T, name string, size, unix int64) {
		if unix < -1<<40 || unix > 1<<40 {
			return // no time that a snapshot can have
		}
		sameHeader(t, name, size, unix)
	})
}
