package storage_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures/worst"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/internal/s3"
)

// answers is a server with one fixed response.
type answers struct {
	http.RoundTripper
	status int
}

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.RoundTripper.RoundTrip(r)
	if err == nil {
		response.StatusCode = a.status
		response.Header.Set("Last-Modified", "Mon, 23 Nov 2026 08:00:00 GMT")
	}
	return response, err
}

// TestWorstAnswers: a response takes memory only in proportion to the limits of documents and of objects that are
// read first.
func TestWorstAnswers(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	texts := map[string]worst.Text{
		"keys":       {Begin: "<ListBucketResult>", Again: "<Contents/>"},
		"prefixes":   {Begin: "<ListBucketResult>", Again: "<CommonPrefixes/>"},
		"deleted":    {Begin: "<DeleteResult>", Again: "<Deleted/><Error/>"},
		"codes":      {Begin: "<Error>", Again: "<Code>a</Code>"},
		"deep":       {Again: "<a>"},
		"attributes": {Begin: "<ListBucketResult", Again: ` a="b"`},
		"a comment":  {Begin: "<!--", Again: strings.Repeat("a", 1000)},
		"a key":      {Begin: "<ListBucketResult><Contents><Key>", Again: strings.Repeat("a", 1000)},
		"statements": {Begin: `{"Version":"2012-10-17","Statement":[{}`, Again: ",{}"},
	}
	operations := map[string]func(*s3.Bucket) error{
		"list": func(b *s3.Bucket) error {
			return b.List(t.Context(), "", "", func(storage.Info) error { return nil })
		},
		"delete": func(b *s3.Bucket) error { return b.Delete(t.Context(), []site.Key{"a", "b"}) },
		"policy": func(b *s3.Bucket) error { return b.AllowRead(t.Context(), []string{"*"}) },
		"root":   func(b *s3.Bucket) error { _, err := b.Get(t.Context(), site.RootKey); return err },
		"lock":   func(b *s3.Bucket) error { _, _, err := b.Read(t.Context(), site.LockKey); return err },
		"object": func(b *s3.Bucket) error {
			_, err := b.GetAdmitted(t.Context(), "a", func(context.Context, int64) error { return nil })
			return err
		},
	}
	for name, text := range texts {
		for _, status := range []int{http.StatusOK, http.StatusForbidden} {
			for operation, do := range operations {
				isObject := operation == "root" || operation == "lock" || operation == "object"
				if isObject && name != "a key" || status != http.StatusOK && operation != "list" {
					continue // read in the same way
				}
				b, err := s3.Open(t.Context(), "bucket", "",
					storage.S3Options{Endpoint: "http://127.0.0.1:1", Transport: answers{text.Answer(worst.Size), status}})
				if err != nil {
					t.Fatal(err)
				}
				worst.Check(t, operation+": "+name, 384<<20, func() {
					if err := do(b); err == nil || storage.Temporary(err) {
						t.Errorf("%s, %s, status %d: got %v, want an error that stays", operation, name, status, err)
					}
				})
			}
		}
	}
}

// TestHugeObjects: an object with an excessive length is an error before memory is allocated.
func TestHugeObjects(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1099511627776")
		w.Header().Set("Last-Modified", "Mon, 23 Nov 2026 08:00:00 GMT")
		_, _ = w.Write(make([]byte, 1<<20)) // the client may hang up
	}))
	defer server.Close()
	b, err := s3.Open(t.Context(), "bucket", "", storage.S3Options{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	worst.Check(t, "1 TiB", 16<<20, func() {
		_, err := b.GetAdmitted(t.Context(), "a", func(context.Context, int64) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "more than 1024 MiB") {
			t.Errorf("got %v, want that the object is too large", err)
		}
	})
}

// TestWorstTars: a tar file's claims take memory only in proportion to its index.
func TestWorstTars(t *testing.T) {
	header := func(h tar.Header) []byte {
		var b bytes.Buffer
		if err := tar.NewWriter(&b).WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	root := string(site.RootKey)
	special := func(kind byte, size int64) []byte { // the name or the attributes of the entry that follows
		b := header(tar.Header{Name: root, Size: size, Mode: 0o644, Typeflag: tar.TypeReg})
		b[156] = kind
		copy(b[148:156], "        ")
		sum := 0
		for _, c := range b[:512] {
			sum += int(c)
		}
		copy(b[148:156], fmt.Sprintf("%06o\x00 ", sum))
		return b
	}
	var roots, attributes []byte // each could be the last entry, except for the bytes after it
	const most = 8000
	for i := range most {
		rest := int64(most-i-1) * 512
		roots = append(roots, header(tar.Header{Name: root, Size: rest, Mode: 0o644})...)
		attributes = append(attributes, special('x', rest)...)
	}
	end := bytes.Repeat([]byte{1}, 512)
	for name, file := range map[string][]byte{
		"roots":                append(roots, end...),
		"attributes":           append(attributes, end...),
		"a huge object":        header(tar.Header{Name: "a", Size: 1 << 62, Mode: 0o644, Format: tar.FormatGNU}),
		"a huge root":          header(tar.Header{Name: root, Size: 1<<63 - 1, Mode: 0o644, Format: tar.FormatGNU}),
		"a long name":          append(special('L', 64<<20), make([]byte, 64<<20)...),
		"many attributes":      append(special('x', 64<<20), bytes.Repeat([]byte("6 a=b\n"), 10<<20)...),
		"an endless long name": special('L', 1<<32),
		"nothing":              make([]byte, 64<<20),
		"a sparse object":      append(special('S', 0), make([]byte, 1<<20)...),
	} {
		path := filepath.Join(t.TempDir(), "site.tar")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		worst.Check(t, name, 48<<20, func() {
			s, err := storage.OpenSite(t.Context(), path, storage.S3Options{})
			if err != nil {
				return
			}
			if _, err := s.Get(t.Context(), "a"); err == nil {
				t.Errorf("%s: got an object", name)
			}
			if c, ok := s.(interface{ Close() error }); ok {
				_ = c.Close() // it was only read
			}
		})
	}
}

// TestListingOfLargeFiles: computing a file's ETag does not load the file.
func TestListingOfLargeFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "large"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "large"), worst.Size); err != nil {
		t.Fatal(err)
	}
	worst.Check(t, "a listing", 1<<20, func() {
		var got []storage.Info
		err := storage.OpenLocal(dir).List(t.Context(), "", "", func(i storage.Info) error { got = append(got, i); return nil })
		if err != nil || len(got) != 1 || got[0].Size != worst.Size || got[0].ETag != "7f614da9329cd3aebf59b91aadc30bf0" {
			t.Errorf("got %+v and the error %v", got, err)
		}
	})
}
