// Command fallback answers what no file of a site can: search paging and term
// searches, and records without tags.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/storage"
)

const about = `Answer the requests that no file of a site can answer, and all others too.

It runs behind a CDN and keeps no state of its own.`

type flags struct {
	Site string `required:"" placeholder:"SITE" help:"Folder or .tar file that generate wrote."`
	Addr string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Where to listen; port 0 takes a free one (default ${default})."`
}

func main() { command.Main("fallback", about, &flags{}) }

// Run serves until it is interrupted.
func (f *flags) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	store, err := storage.OpenSite(f.Site)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	handler, err := server.New(ctx, store, server.Options{Log: log})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.Addr)
	if err != nil {
		return fmt.Errorf("%w (--addr chooses another address)", err)
	}
	fmt.Fprintf(stdout, "http://%s\n", listener.Addr())
	return server.Serve(ctx, listener, handler, log)
}
