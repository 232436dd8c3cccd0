package server_test

import (
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// The code of a person is the same by any way to name it, and another than those of others; an address that the graph does
// not know has one. Tests in browsers/ read them.
func TestQRCodes(t *testing.T) {
	t.Parallel()
	snapshot := afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.ConformanceEFP()}, "snapshot")
	const bob, unknown = "0x0202020202020202020202020202020202020202", "0x0000000000000000000000000000000000abcdef"
	files, _, err := generator.ToMemory(t.Context(), snapshot, generator.Options{NoSync: true, Config: site.Config{API: site.APIEFP}})
	if err != nil {
		t.Fatal(err)
	}
	handler := newHandler(t, storage.NewFolder(files), server.Options{})
	owners := map[string]string{}
	for path, owner := range map[string]string{
		"users/bob.eth/qr": bob, "users/BOB.eth/qr?x=1": bob, "users/" + bob + "/qr": bob, "users/0X" + bob[2:] + "/qr": bob,
		"users/" + strings.ToUpper(unknown) + "/qr": unknown, "users/" + unknown + "/qr": unknown, "lists/1/qr": "of list 1",
	} {
		got := ask(handler, "/api/v1/"+path)
		if contentType := got.Header().Get("Content-Type"); got.Code != 200 || contentType != "image/svg+xml" {
			t.Fatalf("%s: got %d, %s, want a picture: %s", path, got.Code, contentType, got.Body)
		}
		if of, known := owners[got.Body.String()]; known && of != owner {
			t.Errorf("%s: got the code of %s, want one of %s", path, of, owner)
		}
		owners[got.Body.String()] = owner
	}
	if len(owners) != 3 {
		t.Errorf("got %d codes, want one for each of 3 persons", len(owners))
	}
	for path, status := range map[string]int{"users/nobody.eth/qr": 404, "lists/424242/qr": 404, "lists/01/qr": 400, "users/100%25/qr": 404} {
		if got := ask(handler, "/api/v1/"+path); got.Code != status || got.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d, %s, want the problem %d", path, got.Code, got.Header().Get("Content-Type"), status)
		}
	}
}
