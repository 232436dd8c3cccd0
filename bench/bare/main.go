// Command bare shows the limit of any handler: net/http with the settings of server.Serve and no
// work between request and body. It has no cache and no metrics, and sends only type and date as
// headers; with --headers also constant headers like those of details, to measure their cost.
package main

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "where to listen")
	body := flag.String("body", "", "file whose bytes answer every request; or")
	folder := flag.String("site", "", "folder whose files are read for each request")
	headers := flag.Bool("headers", false, "send as many headers as the handler does")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *addr, *body, *folder, *headers)
	stop()
	if err != nil {
		log.Fatalf("bare: %v", err)
	}
}

func run(ctx context.Context, addr, body, folder string, headers bool) error {
	if headers {
		addHeaders()
	}
	handler := fromFolder(folder)
	if folder == "" {
		var err error
		if handler, err = always(body); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return server.Serve(ctx, listener, handler, slog.Default())
}

// header has the headers of every answer. Answers share its values.
var header = http.Header{"Content-Type": {"application/json"}}

// addHeaders adds headers as long as those of details.
func addHeaders() {
	for _, every := range site.EveryHeader() {
		header.Set(every.Name, every.Value)
	}
	header.Set("Cache-Control", site.RouteBy(routes.Details).CacheControl)
	header.Set("Etag", `"`+site.Sum(nil).String()+`"`)
	header.Set("X-Request-Id", "0123456789abcdef")
}

// write sends a body. An error means that the client has gone.
func write(w http.ResponseWriter, body []byte) {
	maps.Copy(w.Header(), header)
	_, _ = w.Write(body)
}

// always answers every request with the content of a file.
func always(name string) (http.HandlerFunc, error) {
	body, err := os.ReadFile(name)
	return func(w http.ResponseWriter, _ *http.Request) {
		write(w, body)
	}, err
}

// fromFolder answers each request with its file. wrk requests plain paths only.
func fromFolder(dir string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := os.ReadFile(filepath.Join(dir, r.URL.Path))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		write(w, body)
	}
}
