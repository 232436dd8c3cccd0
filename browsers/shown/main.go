// Command shown prints the text of a page's <pre>; the argument is the page's HTML. Modules come
// from the npm packages of package browser, data from another origin. The test of docs/data.md, in
// another Go module, runs it.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/followpress/followpress/browsers/internal/browser"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(page string) error {
	mux := http.NewServeMux()
	mux.Handle("/node_modules/", http.FileServer(http.Dir("internal/browser")))
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) })
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	server := httptest.NewServer(mux)
	defer server.Close()
	return browser.Run(context.Background(), "shown", func(t browser.T) {
		p := browser.Start(t, browser.Options{Alone: true}).Open(t, server.URL+"/", browser.View{})
		p.Wait("document.querySelector('pre').textContent !== ''")
		fmt.Print(p.Text("pre"))
	})
}
