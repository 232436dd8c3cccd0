// Command followpress turns a snapshot of a social follow graph into a static JSON API,
// publishes it to S3-compatible storage, and serves it.
package main

import (
	"context"
	"fmt"
	"io"
	"path"

	"github.com/alecthomas/kong"

	"github.com/followpress/followpress/client"
	"github.com/followpress/followpress/cmd/internal/audit"
	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/edge"
	"github.com/followpress/followpress/cmd/internal/generate"
	"github.com/followpress/followpress/cmd/internal/key"
	"github.com/followpress/followpress/cmd/internal/live"
	"github.com/followpress/followpress/cmd/internal/preview"
	"github.com/followpress/followpress/cmd/internal/publish"
	"github.com/followpress/followpress/cmd/internal/report"
	"github.com/followpress/followpress/cmd/internal/reproduce"
	"github.com/followpress/followpress/cmd/internal/serve"
	"github.com/followpress/followpress/cmd/internal/snapshot"
)

const about = `Turn a snapshot of a social follow graph into a static JSON API, publish it, and serve it.

Each flag is also an environment variable: --dest is FOLLOWPRESS_DEST. --out and --report have one per command, such as FOLLOWPRESS_GENERATE_OUT. The exit status is 0 for done, 1 for failed, 2 for wrong usage, 130 or 143 after SIGINT or SIGTERM.`

type verbs struct {
	Snapshot snapshot.Command `cmd:"" group:"Make a snapshot:" help:"Make a snapshot from the chains or from a database."`

	Generate generate.Command `cmd:"" group:"Make a site:" help:"Render a snapshot into a site: a folder or a .tar file."`
	Preview  preview.Command  `cmd:"" group:"Look at it:" help:"Serve a site on this machine, with every answer of the API."`

	Init    publish.Init    `cmd:"" group:"Put it online:" help:"Create a bucket that anyone can read the site from."`
	Publish publish.Publish `cmd:"" group:"Put it online:" help:"Upload what changed to S3-compatible storage or a folder."`
	Key     key.Command     `cmd:"" group:"Put it online:" help:"Make a key that signs a site, and print its public key."`
	Edge    edge.Command    `cmd:"" group:"Put it online:" help:"Write the configuration of a cache or CDN in front of the bucket."`

	Report    report.Command    `cmd:"" group:"Look after it:" help:"Report what changed between two sites: HTML, JSON or Markdown."`
	Verify    publish.Verify    `cmd:"" group:"Look after it:" help:"Compare a bucket with the manifest of its site."`
	Audit     audit.Command     `cmd:"" group:"Look after it:" help:"Compare a site or a snapshot with the contracts on the chains."`
	Reproduce reproduce.Command `cmd:"" group:"Look after it:" help:"Rebuild a published site from its inputs, and compare."`
	Repair    publish.Repair    `cmd:"" group:"Look after it:" help:"Repair what verify finds."`
	Purge     publish.Purge     `cmd:"" group:"Look after it:" help:"Purge every answer from caches."`

	Serve serve.Command `cmd:"" group:"Serve what no file can answer:" help:"Run the fallback: search pages and terms, fresh data."`

	Live live.Command `cmd:"" group:"Serve what no file can answer:" help:"Follow the chains: answer from the newest graph, publish finalized blocks."`

	Version version `cmd:"" group:"About followpress:" help:"Show the version."`
}

// AfterApply keeps the heap small, except for serve, which sets its own limit.
func (*verbs) AfterApply(parsed *kong.Context) error { //nolint:unparam // kong wants the error
	if parsed.Command() != "serve" {
		command.SaveMemory()
	}
	return nil
}

func main() {
	command.Main("followpress", about, &verbs{Serve: serve.Command{LimitMemory: command.LimitMemory}})
}

type version struct {
	Client bool `help:"Print the Subresource Integrity hash of each module of the client library."`
}

// Run prints the version, or the hashes of the modules in _client/.
func (v *version) Run(_ context.Context, stdout, _ io.Writer) (err error) {
	if !v.Client {
		_, err = fmt.Fprintln(stdout, command.Version("followpress"))
		return err
	}
	for _, f := range client.Files() {
		if path.Ext(f.Name) == ".js" && err == nil {
			_, err = fmt.Fprintf(stdout, "%s %s\n", f.Integrity(), f.Name)
		}
	}
	return err
}
