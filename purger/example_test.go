package purger_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/followpress/followpress/purger"
	"github.com/followpress/followpress/site"
)

// A publish reports the keys that it changed. URLs turns them into what to purge, and a Purger sends
// the requests of its service.
func ExamplePurger_Purge() {
	cache := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL)
	}))
	defer cache.Close()

	config, err := site.Config{}.WithDefaults()
	if err != nil {
		panic(err)
	}
	changed := []site.Key{config.ListKey("1", site.Details)}
	p, err := purger.New("http:"+cache.URL+"{path}", purger.Options{})
	if err != nil {
		panic(err)
	}
	result, err := p.Purge(context.Background(), purger.URLs(config, config, changed))
	fmt.Println(result.Items, "items in", result.Requests, "requests:", err)
	// Unordered output:
	// PURGE /_site
	// PURGE /api/v1/lists/1/details
	// 2 items in 2 requests: <nil>
}
