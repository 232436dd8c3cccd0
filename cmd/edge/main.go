// Command edge writes the configuration of a cache or a CDN that stands before the
// bucket of a site.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

const about = `Write the configuration of an edge: a cache or a CDN before the bucket.

It answers from the bucket whatever an object answers, gives errors their JSON
bodies, and asks the fallback for the rest. Without a fallback it answers the
rest as if no parameters had been given. Base path and limits are those of the
site: make it again when they change. docs/deploy has a page for each kind.`

type flags struct {
	Kind        string   `required:"" enum:"nginx,varnish,caddy,cloudfront,worker" placeholder:"KIND" help:"nginx, varnish, caddy, cloudfront or worker."`
	Site        string   `required:"" placeholder:"SITE" help:"Folder or .tar file that generate wrote."`
	BucketURL   string   `required:"" name:"bucket-url" placeholder:"URL" help:"Where everybody can read the bucket; the keys follow after a slash."`
	FallbackURL string   `name:"fallback-url" placeholder:"URL" help:"The fallback; without one the edge works on files alone."`
	Out         string   `placeholder:"DIR" help:"Folder for the files; by default they go to standard output."`
	Listen      string   `default:"8080" placeholder:"ADDR" help:"Where nginx and Caddy listen: port, or host:port (default ${default})."`
	CacheDir    string   `default:"/var/cache/nginx/followpress" placeholder:"DIR" help:"Cache of nginx (default ${default})."`
	CacheSize   string   `default:"10g" placeholder:"SIZE" help:"Its largest size, as nginx has sizes (default ${default})."`
	PurgeFrom   []string `default:"127.0.0.1,::1" name:"purge-from" placeholder:"ADDR" help:"From where nginx and Varnish may be purged: addresses or networks (default ${default})."`
}

func main() { command.Main("edge", about, &flags{}) }

// Run renders and writes the files.
func (f *flags) Run(ctx context.Context, stdout, stderr io.Writer) error {
	config, err := readConfig(ctx, f.Site)
	if err != nil {
		return err
	}
	files, err := edge.Render(edge.Kind(f.Kind), edge.Options{
		Config: config, Bucket: f.BucketURL, Fallback: f.FallbackURL, Listen: f.Listen, CacheDir: f.CacheDir, CacheSize: f.CacheSize,
		PurgeFrom: f.PurgeFrom,
	})
	if err != nil {
		return err
	}
	if f.Out == "" {
		return show(stdout, files)
	}
	if err := os.MkdirAll(f.Out, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		path := filepath.Join(f.Out, file.Name)
		if err := os.WriteFile(path, file.Body, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(stderr, "%s\n", path)
	}
	return nil
}

func readConfig(ctx context.Context, path string) (c site.Config, err error) {
	store, err := storage.OpenSite(path)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	body, err := store.Get(ctx, site.RootKey)
	if err != nil {
		return c, err
	}
	root, err := site.ParseRoot(body)
	return root.Config, err
}

// show writes the files one after another, each below its name if there are more.
func show(stdout io.Writer, files []edge.File) error {
	for _, file := range files {
		if len(files) > 1 {
			if _, err := fmt.Fprintf(stdout, "==> %s <==\n", file.Name); err != nil {
				return err
			}
		}
		if _, err := stdout.Write(file.Body); err != nil {
			return err
		}
	}
	return nil
}
