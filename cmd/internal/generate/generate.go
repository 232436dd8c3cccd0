// Command generate renders the site of a snapshot into a folder or a tar file.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

const about = `Render the site of a snapshot: every answer of the API as a file.

The output is replaced in one step when the new site is complete. Until then, and
after any failure, what was there stays, even if the power fails (--no-sync does
without that). Over a site that is there, only objects whose bytes changed are
written.

With --refreshed, profiles and badges that clients had fetched since the snapshot
stay. Credentials for s3:// come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY,
the shared credentials file, or the machine's role.`

type flags struct {
	Snapshot       string  `required:"" placeholder:"DIR" help:"Folder of the snapshot: meta.json and the tables, as .ndjson, .ndjson.gz or .ndjson.zst."`
	Out            string  `default:"out" help:"Where the site goes: a folder, or a file that ends in .tar."`
	OnInvalid      string  `enum:"stop,skip" default:"stop" help:"What to do about a row or a refreshed object that cannot be read: stop the run, or skip it and report it."`
	Report         string  `placeholder:"FILE" help:"Write a report of a run that succeeded, as JSON; - is standard output. Not into the output folder."`
	Refreshed      *string `placeholder:"LOCATION" help:"What refreshes have fetched (cache=fresh), merged where it is newer than the snapshot: s3://BUCKET/_refresh, s3://BUCKET/PREFIX/_refresh, or a folder, also as file:///FOLDER."`
	Endpoint       string  `placeholder:"URL" env:"FOLLOWPRESS_ENDPOINT,AWS_ENDPOINT_URL_S3,AWS_ENDPOINT_URL" help:"Server of --refreshed=s3://…; without one Amazon S3."`
	Region         string  `placeholder:"NAME" help:"Region of that bucket; by default AWS_REGION, or us-east-1."`
	NoSync         bool    `help:"Do not wait until the new site is on the disk before it takes the old one's place: faster, but a power failure soon after may leave neither."`
	Rebuild        bool    `help:"Write every object again, whatever the manifest says about the site that is there."`
	Workers        int     `default:"0" help:"Goroutines that parse and render; 0 means one a core."`
	BasePath       string  `default:"api/v1" help:"Path of the API."`
	BadgesField    string  `default:"badges" help:"Name of the member that holds the badges."`
	LeaderboardMax int     `default:"100" help:"Largest limit of a leaderboard."`
	MaxProfileText int     `default:"65536" placeholder:"BYTES" help:"Longest text of a profile, such as an avatar. What is longer, most often a data: URI, is left out and reported."`
}

func main() {
	command.SaveMemory()
	command.Main("generate", about, &flags{})
}

// Validate refuses what no run could do; kong calls it.
func (f *flags) Validate() error {
	if f.Workers < 0 {
		return fmt.Errorf("--workers=%d: use 1 or more, or 0 for one a core", f.Workers)
	}
	if f.MaxProfileText == 0 { // else it would mean the default
		return errors.New("--max-profile-text=0: every text would be left out")
	}
	if err := checkOut(f.Out); err != nil {
		return err
	}
	if command.ReportInside(f.Report, f.Out) {
		return fmt.Errorf("--report=%s is in the output: the next run would have to remove it", f.Report)
	}
	if f.Refreshed != nil { // empty, it is a variable that is not set: an error
		at, err := storage.ParseRefreshed(*f.Refreshed)
		if err != nil {
			return fmt.Errorf("--refreshed: %w", err)
		}
		if at.Folder != "" && command.ReportInside(f.Report, at.Folder) {
			return fmt.Errorf("--report=%s is in --refreshed: the next run would take it for an object", f.Report)
		}
	}
	_, err := f.config().WithDefaults()
	return err
}

// location is what looks like a URL, also if its slashes were merged.
var location = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*):/+(.*)`)

// packed is the end of a name that is not a folder's; only .tar itself is a file's.
var packed = regexp.MustCompile(`(?i)\.(tar(\..*)?|zip)$`)

// checkOut refuses names that mean something else than the folder that they would become.
func checkOut(out string) error {
	if url := location.FindStringSubmatch(out); url != nil {
		scheme, rest := url[1], url[2]
		switch strings.ToLower(scheme) {
		case "s3":
			return fmt.Errorf("--out=%s is a bucket: generate --out site.tar, then publish --site site.tar --dest %s://%s", out, scheme, rest)
		case "file":
			return fmt.Errorf("--out=%s: name the path itself, --out /%s; a bucket in a folder is what publish --site SITE --dest file:///%[2]s writes", out, rest)
		}
		return fmt.Errorf("--out=%s is a URL: name a folder, or a file that ends in .tar", out)
	}
	out = filepath.Clean(out)
	name := strings.ToLower(filepath.Base(out))
	for _, by := range []struct{ ending, command string }{
		{".tar.gz", "gzip"}, {".tgz", "gzip"}, {".tar.zst", "zstd --rm"}, {".tzst", "zstd --rm"}, {".tar.xz", "xz"}, {".txz", "xz"}, {".tar.bz2", "bzip2"}, {".tbz", "bzip2"},
		{".tbz2", "bzip2"},
	} {
		if strings.HasSuffix(name, by.ending) {
			tar := out[:len(out)-len(by.ending)] + ".tar"
			return fmt.Errorf("--out=%s: generate does not compress: generate --out %s, then %s %[2]s", out, tar, by.command)
		}
	}
	if end := packed.FindStringIndex(out); end != nil && !strings.HasSuffix(out, ".tar") {
		return fmt.Errorf("--out=%s: name a file that ends in .tar, such as %s.tar, or a folder of another name", out, out[:end[0]])
	}
	return nil
}

func (f *flags) config() site.Config {
	return site.Config{BasePath: f.BasePath, BadgesField: f.BadgesField, LeaderboardMax: f.LeaderboardMax, MaxProfileText: f.MaxProfileText}
}

// openRefreshed gives nil where there is no --refreshed.
func (f *flags) openRefreshed(ctx context.Context) (generator.Refreshed, error) {
	if f.Refreshed == nil {
		return nil, nil
	}
	at, err := storage.ParseRefreshed(*f.Refreshed)
	if err != nil {
		return nil, err
	}
	return storage.OpenRefreshed(ctx, at, storage.S3Options{Endpoint: f.Endpoint, Region: f.Region})
}

// Run makes the site.
func (f *flags) Run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := command.CheckReport(f.Report, f.Out); err != nil {
		return err
	}
	refreshed, err := f.openRefreshed(ctx)
	if err != nil {
		return fmt.Errorf("--refreshed: %w", err)
	}
	progress := command.NewProgress(stderr)
	report, err := generator.ToPath(ctx, afero.NewBasePathFs(afero.NewOsFs(), f.Snapshot), f.Out, generator.Options{
		Config:      f.config(),
		Workers:     f.Workers,
		SkipInvalid: f.OnInvalid == "skip",
		Refreshed:   refreshed,
		Rebuild:     f.Rebuild,
		NoSync:      f.NoSync,
		Progress:    progress,
	})
	progress.End()
	if errors.Is(err, generator.ErrLeftBehind) {
		fmt.Fprintf(stderr, "%v\n", strings.ReplaceAll(err.Error(), "\n", "; ")) // all that is said of a signal is its name
	}
	if err != nil {
		return err
	}
	report.Snapshot = f.Snapshot
	fmt.Fprint(stderr, report)
	return command.WriteReport(f.Report, report, stdout)
}
