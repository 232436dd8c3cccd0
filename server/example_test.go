package server_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/storage"
)

// A handler serves a site from any Store: here the demo, generated in memory. A server that runs for
// long also runs Watch, to notice new sites.
func Example() {
	ctx := context.Background()
	files, _, err := generator.ToMemory(ctx, afero.FromIOFS{FS: fixtures.Demo()}, generator.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler, err := server.New(ctx, storage.NewFolder(files), server.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer handler.Close()
	s := httptest.NewServer(handler)
	defer s.Close()
	response, err := http.Get(s.URL + "/api/v1/leaderboard/followers?limit=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	fmt.Println(response.StatusCode, response.Header.Get("Content-Type"), err)
	fmt.Println(string(body))
	// Output:
	// 200 application/json <nil>
	// [{"rank":1,"address":"0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd","followers_count":"18"}]
}
