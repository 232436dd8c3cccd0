// Package siteflags holds what configures a site in every program that renders one: flags, and settings. A setting is a
// member of a JSON file, which all these programs can share. A variable overrides the file, and a flag overrides both.
package siteflags

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// Tag marks the fields of Flags that are settings.
const Tag = "setting"

// Flags configure a site. A setting is named after its flag: leaderboard_max is --leaderboard-max. Most are hidden in the
// list of flags.
type Flags struct {
	Config     string        `first:"" placeholder:"FILE" help:"JSON object with settings of the site, such as its title; flags and variables override it."`
	BasePath   string        `setting:"" first:"" default:"api/v1" placeholder:"PATH" help:"Path of the API (default ${default})."`
	API        string        `setting:"" first:"" enum:"spec,efp" default:"spec" placeholder:"spec|efp" help:"spec is the specification's API, efp the whole read API of the Ethereum Follow Protocol (default ${default})."`
	Explorer   bool          `setting:"" first:"" default:"true" help:"Add the explorer in _explore/, and index.html, which redirects there; --explorer=false omits both."`
	Data       bool          `setting:"" help:"Add the graph as Parquet files in _data/, with datapackage.json (docs/data.md)."`
	RanksEvery time.Duration `setting:"" placeholder:"DURATION" help:"How often details get new ranks, in snapshot time, such as 24h. In between, only accounts whose counts changed do, so a round changes few objects; leaderboards stay current. By default always."`

	About          string        `hidden:"" setting:"" placeholder:"SENTENCE" help:"One sentence for the explorer, at most 200 bytes: which network this is, and who runs the site."`
	BadgesField    string        `hidden:"" setting:"" placeholder:"NAME" help:"JSON member with badges (default badges; poaps with the API efp)."`
	Colour         string        `hidden:"" setting:"" placeholder:"#RRGGBB" help:"Color of links, buttons and badges (default #0b5cad)."`
	DataLicence    string        `hidden:"" setting:"" placeholder:"TEXT" help:"With data: the license of these files, such as CC0-1.0, a URL or a sentence."`
	ExplorerKey    []string      `hidden:"" setting:"" sep:"none" placeholder:"PUBLIC" help:"Public key that signs the site, or a list of them, any of which suffices: the explorer then checks what it shows; publish refuses a site signed by none. Not for sites in memory."`
	HistoryWindow  time.Duration `hidden:"" setting:"" default:"999h" placeholder:"DURATION" help:"With the API efp and the table ops: how far back notifications and activity go (default ${default}, the most a request can ask for). 0s omits them."`
	Home           string        `hidden:"" setting:"" placeholder:"URL" help:"Link target of the title; by default the explorer."`
	LeaderboardMax int           `hidden:"" setting:"" default:"100" placeholder:"N" help:"Maximum limit of a leaderboard (default ${default})."`
	Logo           string        `hidden:"" setting:"" placeholder:"URL" help:"Picture next to the title, https://HOST/PATH."`
	MaxProfile     int           `hidden:"" setting:"" default:"262144" placeholder:"BYTES" help:"Largest profile as JSON (default ${default}); larger ones lose their largest texts."`
	MaxProfileText int           `hidden:"" setting:"" default:"65536" placeholder:"BYTES" help:"Largest text in a profile (default ${default}); larger ones are omitted."`
	Names          string        `hidden:"" setting:"" enum:"copies,lookup" default:"copies" placeholder:"copies|lookup" help:"With the API efp: copy users' objects under their names, or let edges and fallback look names up (default ${default})."`
	Pages          bool          `hidden:"" setting:"" help:"With the API efp: add u/NAME/index.html, a page without JavaScript, for each named account; sitemap.xml, robots.txt, badges (_badge/NAME.svg), and embed.js, the element <follow-card>. Needs public_url."`
	PagesMin       int           `hidden:"" setting:"" default:"0" placeholder:"N" help:"With pages: also for unnamed accounts with at least N followers; 0 means none (default ${default})."`
	Pictures       string        `hidden:"" setting:"" placeholder:"WHERE" help:"Profile pictures in the explorer: off; a comma-separated list of hosts, *.HOST too; or a proxy, https://HOST/PATH/{url}. They must allow CORS. By default, the page asks its reader."`
	ProfileURL     string        `hidden:"" setting:"" placeholder:"URL" help:"With the API efp: URL of a person's page (default https://efp.app/{address})."`
	PublicURL      string        `hidden:"" setting:"" placeholder:"URL" help:"With pages: the site's URL, https://HOST or https://HOST/PATH."`
	RanksFrom      *string       `hidden:"" setting:"" placeholder:"LOCATION" help:"With ranks_every: previous site with the ranks: s3://BUCKET[/PREFIX], a folder or a .tar file. publish and live default to their destination. none recomputes all ranks."`
	Reports        bool          `hidden:"" setting:"" help:"Link the explorer to reports from report --publish."`
	Title          string        `hidden:"" setting:"" placeholder:"TEXT" help:"Name of the site, at most 60 bytes. By default, pages show the host of public_url."`
}

// Member returns the name of a setting in a file.
func Member(flag *kong.Flag) string { return strings.ReplaceAll(flag.Name, "-", "_") }

// BeforeResolve makes the file --config the source of values that neither flags nor variables give; kong calls it.
func (*Flags) BeforeResolve(parsed *kong.Context) error {
	flags := map[string]*kong.Flag{}
	for _, flag := range parsed.Flags() {
		flags[flag.Name] = flag
	}
	path, _ := parsed.FlagValue(flags["config"]).(string)
	if path == "" {
		return nil
	}
	settings, err := read(path, flags)
	if err != nil {
		return fmt.Errorf("--config=%s: %w", path, err)
	}
	parsed.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if slices.ContainsFunc(flag.Envs, func(name string) bool { return os.Getenv(name) != "" }) {
			return nil, nil
		}
		return settings[flag.Name], nil
	}))
	return nil
}

// maxBytes is far more than all settings can take.
const maxBytes = 1 << 20

// read reads a file of settings. The result has the values by the names of the flags.
func read(path string, flags map[string]*kong.Flag) (map[string]any, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err) // the caller names the path
	}
	defer file.Close() // read-only
	body, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	switch {
	case err != nil:
		return nil, errors.Unwrap(err)
	case len(body) > maxBytes:
		return nil, fmt.Errorf("larger than %d bytes", maxBytes)
	}
	var members map[string]json.RawMessage
	if err := site.DecodeObject(body, &members); err != nil {
		return nil, err
	}
	values := map[string]any{}
	for _, member := range slices.Sorted(maps.Keys(members)) {
		name := strings.ReplaceAll(member, "_", "-")
		flag := flags[name]
		if flag == nil || !flag.Tag.Has(Tag) || strings.Contains(member, "-") {
			return nil, fmt.Errorf("%s: no such setting", site.Quoted(member))
		}
		if values[name], err = value(members[member], flag.Target.Interface()); err != nil {
			return nil, fmt.Errorf("%s: %w", member, err)
		}
	}
	return values, nil
}

// value returns a member in the form in which kong takes a value of the field's type.
func value(member []byte, field any) (any, error) {
	var text string
	err := json.Unmarshal(member, &text)
	switch field.(type) {
	case bool:
		var v bool
		if json.Unmarshal(member, &v) != nil || string(member) == "null" {
			return nil, errors.New("write true or false")
		}
		return v, nil
	case int:
		var v json.Number
		if json.Unmarshal(member, &v) != nil || err == nil {
			return nil, errors.New("write a whole number")
		}
		return v.String(), nil
	case []string:
		var v []any
		if json.Unmarshal(member, &v) == nil && !slices.ContainsFunc(v, func(e any) bool { _, ok := e.(string); return !ok }) && v != nil {
			return v, nil
		}
	}
	if err != nil || string(member) == "null" {
		return nil, errors.New("write a text in quotes")
	}
	return text, nil
}

// Check reports invalid settings.
func (f *Flags) Check() error {
	switch {
	case f.MaxProfileText == 0: // otherwise it would mean the default
		return errors.New("--max-profile-text=0: every text would be omitted")
	case f.MaxProfile == 0:
		return errors.New("--max-profile=0: every text would be omitted")
	case f.Pages && f.API == site.APIEFP && f.PublicURL == "":
		return errors.New("--pages needs --public-url, the address of the site, such as https://HOST")
	}
	_, err := f.Site().WithDefaults()
	return err
}

// Site returns the configuration of the site.
func (f *Flags) Site() site.Config {
	c := site.Config{
		BasePath: f.BasePath, BadgesField: f.BadgesField, LeaderboardMax: f.LeaderboardMax, MaxProfileText: f.MaxProfileText, MaxProfile: f.MaxProfile,
		API: f.API, ProfileURL: f.ProfileURL, Names: f.Names, Explorer: f.Explorer, Pictures: f.Pictures,
		ExplorerKeys: strings.Join(f.ExplorerKey, " "), Reports: f.Reports,
		Pages: f.Pages, PagesMin: f.PagesMin, PublicURL: f.PublicURL, Title: f.Title, About: f.About, Logo: f.Logo, Colour: f.Colour, Home: f.Home,
		Data: f.Data, DataLicence: f.DataLicence,
		RanksEvery: int64(f.RanksEvery / time.Second),
	}
	if c.EFP() {
		c.HistoryWindow = site.Window(f.HistoryWindow)
	}
	return c
}
