// Command bare is the limit that the handler is compared with: net/http with the settings of
// server.Serve, and nothing between a request and its body. It knows no cache, no metrics and no
// other headers than the type and the date.
package main

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/followpress/followpress/server"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "where to listen")
	body := flag.String("body", "", "file whose bytes answer every request; or")
	site := flag.String("site", "", "folder whose files are read for each request")
	flag.Parse()
	if err := run(*addr, *body, *site); err != nil {
		log.Fatalf("bare: %v", err)
	}
}

func run(addr, body, site string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	handler := fromFolder(site)
	if site == "" {
		var err error
		if handler, err = always(body); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return server.Serve(ctx, listener, handler, slog.Default(), server.Limits{})
}

var contentType = []string{"application/json"}

// always answers every request with the bytes of a file.
func always(name string) (http.HandlerFunc, error) {
	body, err := os.ReadFile(name)
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = contentType
		_, _ = w.Write(body) // an error means that the client is gone
	}, err
}

// fromFolder reads the file of each request. wrk asks for plain paths only.
func fromFolder(dir string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := os.ReadFile(filepath.Join(dir, r.URL.Path))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		w.Header()["Content-Type"] = contentType
		_, _ = w.Write(body) // an error means that the client is gone
	}
}
