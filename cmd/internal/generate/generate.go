// Package generate is the command that renders the site of a snapshot into a folder or a
// tar file, and the flags about snapshots that preview has too.
package generate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	reports "github.com/followpress/followpress/cmd/internal/report"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/release"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/ranks"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
	"github.com/followpress/followpress/storage/refreshed"
)

// Command is the command with its flags.
type Command struct {
	Snapshot string `required:"" placeholder:"DIR" help:"Folder of the snapshot, or s3://BUCKET/PREFIX: meta.json and the tables, as .ndjson, .ndjson.gz, .ndjson.zst or .parquet, also in parts (accounts-00001.ndjson.zst)."`
	Out      string `default:"out" placeholder:"OUT" help:"Where the site goes: a folder, or a file that ends in .tar (default ${default})."`
	Report   string `placeholder:"FILE" help:"Write a report, as JSON with time and bytes by stage, or as a page with their picture if the name ends in .html; - is standard output. Must not be inside the output folder."`
	DryRun   bool   `help:"Render everything and compare it with the old site, and write nothing. The report says what a run would write, and how long it takes without a disk."`
	NoSync   bool   `help:"Do not sync the new site to disk before it replaces the old one: faster, but a power failure soon after may leave neither."`
	Rebuild  bool   `help:"Write every object again, even if the old site's manifest says that it is unchanged."`
	command.Messages
	command.S3
	Content `group:"How a snapshot is rendered:"`
}

// Help is what --help shows below the first line.
func (*Command) Help() string {
	return `Every answer of the API becomes a file. The complete new site replaces the old one in one step; a run that fails, even by a power failure, leaves the old one as it was. If there is an old site, only objects whose bytes changed are written.

	followpress generate --snapshot graph-snapshot --out site.tar`
}

// Content are the flags that decide what is in the site of a snapshot.
type Content struct {
	OnInvalid    string   `enum:"stop,skip" default:"stop" placeholder:"stop|skip" help:"Whether to stop at an invalid row, or to skip and report it (default ${default})."`
	Refreshed    *string  `placeholder:"LOCATION" help:"Where the fallback keeps the data it fetched for cache=fresh; newer data is merged into the site: s3://BUCKET/_refresh, s3://BUCKET/PREFIX/_refresh, or a folder, also as file:///FOLDER. A signed site takes only what is signed (--refreshed-key)."`
	RefreshedKey []string `sep:"none" placeholder:"PUBLIC" help:"Take only refreshed data that this key has signed (serve --refresh-key); may be repeated: any of the keys will do."`
	BasePath     string   `first:"" default:"api/v1" placeholder:"PATH" help:"Path of the API (default ${default})."`
	API          string   `first:"" enum:"spec,efp" default:"spec" placeholder:"spec|efp" help:"Which API the site has: that of the specification, or the whole read API of the Ethereum Follow Protocol (default ${default})."`
	Names        string   `enum:"copies,lookup" default:"copies" placeholder:"copies|lookup" help:"With --api=efp: whether each object of a user exists under the name too, or edges and the fallback look names up (default ${default})."`
	ProfileURL   string   `placeholder:"URL" help:"With --api=efp: URL of a person's page, with {address} in it (default https://efp.app/{address})."`
	BadgesField  string   `placeholder:"NAME" help:"Name of the member that holds the badges (default badges; poaps with --api=efp)."`
	Explorer     bool     `first:"" default:"true" help:"Add _explore/, a page that shows the graph to people, and index.html, which leads there. --explorer=false leaves both out."`
	Pictures     string   `placeholder:"WHERE" help:"From where the explorer loads pictures of profiles: off shows none at all; hosts, with commas between them, also *.HOST; or a proxy, https://HOST/PATH/{url}. Hosts and proxies must allow reading by other origins (CORS). Without it, the page asks its reader once."`
	ExplorerKey  []string `sep:"none" placeholder:"PUBLIC" help:"Public key that the site is signed with (publish --sign): the explorer then checks what it shows, and says so. May be repeated: any of the keys will do. A site that none of them signs is not published. That of what live and preview serve from memory does not get it."`
	Reports      bool     `help:"Reports are published beside the site (report --publish): the explorer leads to them."`
	Pages        bool     `first:"" help:"With --api=efp: add u/NAME/index.html for each account with a name, a page without JavaScript for people, search engines and previews of links; sitemap.xml and robots.txt; badges (_badge/NAME.svg); and embed.js, the element <follow-card> for other sites. Needs --public-url."`
	PagesMin     int      `default:"0" placeholder:"N" help:"With --pages: an account without a name has a page too, under its address, if it has at least N followers; 0 means none has (default ${default})."`
	PublicURL    string   `first:"" placeholder:"URL" help:"With --pages: the address of the site, https://HOST or https://HOST/PATH, for canonical links, previews and sitemaps."`
	Data         bool     `help:"Add the graph itself as files for queries: _data/follows.parquet, accounts, edges and badges, ops if the snapshot has that table, and datapackage.json, which tells their columns and digests (docs/data.md)."`
	DataLicence  string   `placeholder:"TEXT" help:"With --data: the terms on which anybody may use these files, such as CC0-1.0, a URL or a sentence; datapackage.json repeats them."`
	Branding
	LeaderboardMax int `default:"100" placeholder:"N" help:"Largest limit of a leaderboard (default ${default})."`
	Ranking

	HistoryWindow time.Duration `default:"999h" placeholder:"DURATION" help:"With --api=efp, of a snapshot with the table ops: how far back notifications and activity go, from the time of the snapshot (default ${default}, the longest that can be asked for). 0 leaves them out."`
}

// Branding are the flags that say whose site it is.
type Branding struct {
	Title  string `placeholder:"TEXT" help:"What pages and the explorer call the site, in at most 60 bytes. By default pages name the host of --public-url, and the explorer is called followpress."`
	About  string `placeholder:"SENTENCE" help:"One sentence at the start of the explorer, in at most 200 bytes: what network this is, and who runs the site."`
	Logo   string `placeholder:"URL" help:"A picture beside the title of pages and of the explorer, https://HOST/PATH."`
	Colour string `placeholder:"#RRGGBB" help:"The colour of links, buttons and badges (default #0b5cad)."`
	Home   string `placeholder:"URL" help:"Where the title of pages and of the explorer leads. By default to the start of the explorer, if there is one."`
}

// Ranking are the flags that say how often the ranks in details change.
type Ranking struct {
	RanksEvery time.Duration `placeholder:"DURATION" help:"How often the ranks in details are those of now, by the time of snapshots, such as 24h. Between, they stay what they were, but for accounts whose own count changed; leaderboards are always of now. So a round changes few objects. By default always."`
	RanksFrom  *string       `placeholder:"LOCATION" help:"With --ranks-every: the last site, whose object _ranks says what ranks were, as s3://BUCKET[/PREFIX], a folder, also as file:///FOLDER, or a .tar file; or a copy of that object. publish and live take that of the destination by default; generate and preview have none, and so the ranks of now. With none the ranks are those of now."`
}

// rankAnew is the --ranks-from of ranks that are those of now.
const rankAnew = "none"

func (r *Ranking) validate() error {
	switch {
	case r.RanksEvery < 0 || r.RanksEvery%time.Second != 0:
		return fmt.Errorf("--ranks-every=%s: use whole seconds, such as 24h", r.RanksEvery)
	case r.RanksFrom == nil:
		return nil
	case r.RanksEvery == 0:
		return errors.New("--ranks-from: only with --ranks-every, such as 24h")
	}
	if *r.RanksFrom == rankAnew {
		return nil
	}
	if _, err := storage.ParsePlace(*r.RanksFrom); err != nil {
		return fmt.Errorf("--ranks-from: %w", err)
	}
	return nil
}

// Held reads the ranks that details show until they are due: those of --ranks-from, or of the site at usual if that
// is not "". They are nil without --ranks-every, with --ranks-from=none, and if there are none yet. With keys, ranks of a
// site are believed only if one of the keys has signed that site: they go into a site that is signed.
func (r *Ranking) Held(ctx context.Context, usual string, server storage.S3Options, keys note.Keys) (*ranks.Held, error) {
	from, flag := usual, "the destination"
	if r.RanksFrom != nil {
		from, flag = *r.RanksFrom, "--ranks-from"
	}
	if r.RanksEvery == 0 || from == "" || from == rankAnew {
		return nil, nil
	}
	var check func(context.Context, storage.Site) (storage.Site, error)
	if !keys.None() {
		check = func(ctx context.Context, s storage.Site) (storage.Site, error) {
			return checked.Open(ctx, s, keys, checked.Options{})
		}
	}
	body, err := readRanks(ctx, from, server, check)
	if r.RanksFrom == nil && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, storage.ErrNoBucket)) {
		return nil, nil // the run creates it, or says what is missing
	}
	if err != nil && check != nil && !storage.Temporary(err) {
		return nil, fmt.Errorf("%s: the ranks are not those of a site that this key has signed: %w; rank anew with --ranks-from=none", flag, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if body == nil {
		return nil, nil
	}
	held, err := ranks.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w: if it cannot be put right, delete it there; the ranks are those of now then", flag, from, err)
	}
	return held, nil
}

// Validate checks the flags before the run; kong calls it.
func (r *Content) Validate() error {
	if _, err := r.location(); err != nil {
		return err
	}
	if _, err := r.Refreshers(); err != nil {
		return err
	}
	if err := r.validate(); err != nil {
		return err
	}
	if _, err := command.PublicKeys("explorer-key", r.ExplorerKey); err != nil {
		return err
	}
	if r.Pages && r.API == site.APIEFP && r.PublicURL == "" {
		return errors.New("--pages needs --public-url, the address of the site, such as https://HOST")
	}
	_, err := r.config().WithDefaults()
	return err
}

func (r *Content) config() site.Config {
	c := site.Config{
		BasePath: r.BasePath, BadgesField: r.BadgesField, LeaderboardMax: r.LeaderboardMax,
		API: r.API, ProfileURL: r.ProfileURL, Names: r.Names, Explorer: r.Explorer, Pictures: r.Pictures,
		ExplorerKeys: strings.Join(r.ExplorerKey, " "), Reports: r.Reports,
		Pages: r.Pages, PagesMin: r.PagesMin, PublicURL: r.PublicURL, Title: r.Title, About: r.About, Logo: r.Logo, Colour: r.Colour, Home: r.Home,
		Data: r.Data, DataLicence: r.DataLicence,
		RanksEvery: int64(r.RanksEvery / time.Second),
	}
	if c.EFP() {
		c.HistoryWindow = site.Window(r.HistoryWindow)
	}
	return c
}

// location parses --refreshed. It is empty without the flag. An empty flag is an error:
// it comes from a variable that is not set.
func (r *Content) location() (at storage.Location, err error) {
	if r.Refreshed == nil {
		return at, nil
	}
	if at, err = refreshed.Parse(*r.Refreshed); err != nil {
		return at, fmt.Errorf("--refreshed: %w", err)
	}
	return at, nil
}

// Options are those of the generator that the flags ask for, with the s3://… of --refreshed and --ranks-from on some
// server. ranksFrom is the usual --ranks-from, "" for none. keys are those that sign the site; without any, ranks and
// refreshed data are taken as they are. A signed site has only what a key of --refreshed-key has signed.
func (r *Content) Options(ctx context.Context, ranksFrom string, server storage.S3Options, keys note.Keys) (o generator.Options, err error) {
	o = generator.Options{Config: r.config(), SkipInvalid: r.OnInvalid == "skip", Generator: release.Version()}
	if o.Ranks, err = r.Held(ctx, ranksFrom, server, keys); err != nil {
		return o, err
	}
	at, err := r.location()
	if err != nil || r.Refreshed == nil {
		return o, err
	}
	refreshed, err := refreshed.Open(ctx, at, server)
	if err != nil {
		return o, fmt.Errorf("--refreshed: %w", err)
	}
	refreshers, err := r.Refreshers()
	if err != nil {
		return o, err
	}
	o.Refreshed = refreshed
	if !keys.None() || !refreshers.None() {
		signed := &signedRefreshes{from: refreshed, keys: refreshers}
		o.Refreshed, o.RefreshedLeft = signed, func() int { return signed.left }
	}
	return o, nil
}

// Refreshers are the keys of --refreshed-key.
func (r *Content) Refreshers() (note.Keys, error) {
	return command.PublicKeys("refreshed-key", r.RefreshedKey)
}

// signedRefreshes are those objects of refreshes that one of the keys has signed.
type signedRefreshes struct {
	from generator.Refreshed
	keys note.Keys
	left int // how many others the last Each has left out
}

// Each implements generator.Refreshed.
func (s *signedRefreshes) Each(ctx context.Context, found func(key site.Key, body []byte) error) error {
	s.left = 0
	return s.from.Each(ctx, func(key site.Key, body []byte) error {
		entry, err := s.keys.OpenEntry(site.RefreshPrefix+key, body, time.Now())
		if err != nil {
			s.left++
			return nil //nolint:nilerr // whoever can write there must not be able to stop every run
		}
		return found(key, entry)
	})
}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	if err := checkOut(c.Out); err != nil {
		return err
	}
	if command.Inside(c.Report, c.Out) {
		return fmt.Errorf("--report=%s is in the output: the next run would have to remove it", c.Report)
	}
	at, err := c.location()
	if err == nil && at.Folder != "" && command.Inside(c.Report, at.Folder) {
		return fmt.Errorf("--report=%s is in --refreshed: the next run would take it for an object", c.Report)
	}
	return err
}

// location matches URLs, even if their slashes were merged.
var location = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*):/+(.*)`)

// packed matches names of compressed or packed files. Of these, generate writes only .tar.
var packed = regexp.MustCompile(`(?i)\.(tar(\..*)?|tgz|tzst|txz|tbz2?|zip)$`)

// checkOut refuses names that would become a folder although something else was meant.
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
	if end := packed.FindStringIndex(out); end != nil && !strings.HasSuffix(out, ".tar") {
		return fmt.Errorf("--out=%s: name a file that ends in .tar, such as %s.tar, and compress it afterwards, or a folder of another name", out, out[:end[0]])
	}
	return nil
}

// Run makes the site.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	if err := command.CheckFile("report", c.Report, c.Out); err != nil {
		return err
	}
	o, err := c.Options(ctx, "", c.Server(), note.Keys{})
	if err != nil {
		return err
	}
	folder, closeFolder, err := OpenSnapshot(ctx, c.Snapshot, c.Server())
	if err != nil {
		return fmt.Errorf("--snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, closeFolder()) }()
	progress := command.NewProgress(stderr)
	o.Rebuild, o.DryRun, o.NoSync, o.Progress = c.Rebuild, c.DryRun, c.NoSync, progress
	report, err := generator.ToPath(ctx, folder, c.Out, o)
	progress.End()
	if errors.Is(err, generator.ErrLeftBehind) {
		command.Warn(stderr, strings.ReplaceAll(err.Error(), "\n", "; ")) // after a signal, the caller reports only the name of the signal
	}
	told := &staged{Report: report, Stages: progress.Stages()}
	if err != nil {
		told.Report, told.Error = &summary.Report{Out: c.Out, Tables: map[string]*summary.TableReport{}, Invalid: []*snapshot.RowError{}}, err.Error()
		told.LongTexts.Examples = []summary.LongTextExample{}
	} else {
		fmt.Fprint(stderr, report)
	}
	told.Snapshot = c.Snapshot
	return errors.Join(err, reports.WriteRun(c.Report, "generate: "+c.Out, told, told.Stages, stdout))
}

type staged struct {
	*summary.Report
	Error  string          `json:"error,omitempty"` // then the report has nothing but the stages until then
	Stages []command.Stage `json:"stages"`
}
