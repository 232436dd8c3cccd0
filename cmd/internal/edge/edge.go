// Package edge implements the command edge, which writes the configuration of a cache or CDN in front
// of a site's bucket.
package edge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Command is edge with its flags.
type Command struct {
	Kind string `required:"" enum:"nginx,caddy,cloudfront,worker" placeholder:"KIND" help:"nginx, caddy, cloudfront or worker."`
	Site string `required:"" placeholder:"SITE" help:"The site: folder, .tar file, bucket (s3://BUCKET, s3://BUCKET/PREFIX, file:///FOLDER) or parts ('FOLDER/part-*', quoted)."`
	command.S3
	BucketURL   string   `required:"" name:"bucket-url" placeholder:"URL" help:"Public URL of the bucket."`
	FallbackURL string   `name:"fallback-url" placeholder:"URL" help:"URL of the fallback; without one, the edge serves files only."`
	LiveURL     string   `name:"live-url" placeholder:"URL" help:"URL of followpress live, asked first; bucket and fallback answer while it is down, slow or stale."`
	Out         string   `placeholder:"DIR" help:"Folder for the files; standard output by default."`
	Listen      string   `default:"8080" placeholder:"ADDR" help:"Where nginx and Caddy listen: port or address:port; Caddy also name:port for one host, with TLS on port 443 or without a port (default ${default})."`
	CacheDir    string   `default:"/var/cache/nginx/followpress" placeholder:"DIR" help:"Cache folder of nginx (default ${default})."`
	CacheSize   string   `default:"10g" placeholder:"SIZE" help:"Maximum size of that cache, in nginx syntax (default ${default})."`
	PurgeFrom   []string `default:"127.0.0.1,::1" name:"purge-from" placeholder:"ADDR" help:"Address or network allowed to purge nginx; repeatable (default ${default})."`
}

// Help returns the text below the first line of --help.
func (*Command) Help() string {
	return `The edge answers from the bucket where it can, and forwards other requests to the fallback; without one, it ignores parameters that need it. With --live-url it asks live first. Run this again when a publish warns that edges are stale.

	followpress edge --kind nginx --site site.tar --bucket-url https://BUCKET.s3.amazonaws.com --out edge`
}

// Validate checks the flags before the run, by rendering for a default site; kong calls it.
func (c *Command) Validate() error {
	if !slices.Contains(edge.Kinds(), edge.Kind(c.Kind)) || c.BucketURL == "" {
		return nil // kong reports the error
	}
	config, err := site.Config{}.WithDefaults()
	if err != nil {
		return err
	}
	_, err = edge.Render(edge.Kind(c.Kind), c.options(config))
	return err
}

func (c *Command) options(config site.Config) edge.Options {
	return edge.Options{
		Config: config, Bucket: c.BucketURL, Fallback: c.FallbackURL, Live: c.LiveURL, Listen: c.Listen, CacheDir: c.CacheDir, CacheSize: c.CacheSize,
		PurgeFrom: c.PurgeFrom,
	}
}

// Run writes the files.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) error {
	config, err := c.readConfig(ctx)
	if err != nil {
		return err
	}
	files, err := edge.Render(edge.Kind(c.Kind), c.options(config))
	if err != nil {
		return err
	}
	if c.Out == "" {
		return show(stdout, files)
	}
	for _, file := range files {
		if err := command.CheckFile("out", filepath.Join(c.Out, file.Name), filepath.Join(c.Out, file.Name)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		path := filepath.Join(c.Out, file.Name)
		if err := os.WriteFile(path, file.Body, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(stderr, "%s\n", path)
	}
	return nil
}

func (c *Command) readConfig(ctx context.Context) (config site.Config, err error) {
	store, err := command.OpenSite(ctx, c.Site, c.Server())
	if err != nil {
		return config, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	body, err := store.Get(ctx, site.RootKey)
	if errors.Is(err, storage.ErrNotFound) {
		return config, fmt.Errorf("%s contains no site; generate or publish one first", c.Site)
	} else if err != nil {
		return config, err
	}
	root, err := site.ParseRoot(body)
	return root.Config, err
}

// show writes the files in sequence, each below its name if there are several.
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
