package site

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of the API and of the layout of a site.
const (
	DefaultLimit        = 10            // entries of a leaderboard or search without ?limit
	searchMax           = 100           // largest ?limit of a search
	pageMax             = 1_000         // largest ?limit of other pages
	feedLimit           = 50            // entries of a feed without ?limit
	HistoryShardSize    = 1_000         // operations in a history shard
	relationshipsLimit  = 100           // relationships per page without ?limit
	RankedLimit         = 50            // ranked accounts per page without ?limit
	SearchShardSize     = 1_000         // entries in a search shard
	maxTermBytes        = 255           // longest search term, in bytes
	MaxNumberDigits     = 18            // most digits of a limit or an offset; fits an int64
	maxOffset           = math.MaxInt32 // larger offsets are past the end of any list
	usersPerBucket      = 4_000
	efpPerBucket        = 64     // entries in a bucket under APIEFP, some of them with rows
	PackedRows          = 20     // longest list stored in its bucket under APIEFP
	HeadRows            = 100    // rows of each order in the head of a sharded list
	RankedOrderSize     = 10_000 // positions in a shard RankedOrderKey
	DiscoverMax         = 250    // accounts in the result of discover
	MaxBatch            = 1_000  // accounts in a batch of button states
	MaxBatchBytes       = 131_072
	objectsPerShard     = 1_000
	largestLeaderboard  = 10_000
	maxBadgesFieldBytes = 64
	defaultProfileText  = 64 << 10
	largestProfileText  = 16 << 20 // longest row of a snapshot
	maxProfileURLBytes  = 1_024    // limit with the address filled in; a QR code holds twice as many
	defaultProfile      = 256 << 10
	largestRanksEvery   = 10 * 365 * 24 * 3600 // seconds
	leastProfile        = 1 << 10
	largestWindow       = 10 * 365 * 24 * time.Hour
	maxExplorerKeys     = 16
)

// publicKey matches public keys, which package note parses.
var publicKey = regexp.MustCompile(`^[^\s\pC+]{1,255}\+[0-9a-f]{8}\+[A-Za-z0-9+/]{1,255}={0,2}$`)

// Values of Config.API.
const (
	APISpec = "spec" // the interface of the specification; stored as ""
	APIEFP  = "efp"  // the whole read API of the Ethereum Follow Protocol
)

// Values of Config.Names.
const (
	NamesCopies = "copies" // a user's objects are stored under the name too; stored as ""
	NamesLookup = "lookup" // they are stored under the address only, and readers look names up
)

// addressPlaceholder stands for an address in Config.ProfileURL.
const addressPlaceholder = "{address}"

// Config is the operator's configuration of a site. It is part of the root, so that all servers and edges of a site
// agree. The comment of a field gives the default that its zero value means.
type Config struct {
	BasePath       string `json:"base_path"`       // path of the API, without slashes at its ends; "api/v1"
	BadgesField    string `json:"badges_field"`    // JSON member with the badges; "badges", or "poaps" under APIEFP
	LeaderboardMax int    `json:"leaderboard_max"` // maximum ?limit of a leaderboard; 100

	// MaxProfileText is the maximum size in bytes of a text in a profile; 64 KiB. The generator and refreshes omit
	// longer ones.
	MaxProfileText int `json:"max_profile_text"`
	// MaxProfile is the maximum size in bytes of a profile as JSON; 256 KiB, which is stored as 0. Profile.Within
	// omits the largest parts of larger profiles.
	MaxProfile int `json:"max_profile,omitempty"`

	// API is APISpec or APIEFP. With APISpec, the root omits this member and the next two.
	API string `json:"api,omitempty"`
	// ProfileURL is the URL of a person's page, with {address} in it; a page of efp.app. Only under APIEFP.
	ProfileURL string `json:"profile_url,omitempty"`
	// Names is NamesCopies, or NamesLookup, which requires APIEFP.
	Names string `json:"names,omitempty"`

	// Explorer adds the explorer, a page for people, and routes for reports. A root without it omits the member.
	Explorer bool `json:"explorer,omitempty"`
	// Pictures restricts where the explorer loads pictures from: "off" for none, not even those embedded in a
	// profile; host names separated by spaces; or the URL of a proxy with {url} in it. If empty, the explorer asks
	// the reader before it loads any from other hosts. Only with Explorer.
	Pictures string `json:"pictures,omitempty"`
	// ExplorerKeys are the public keys with which the explorer checks what it reads, sorted and separated by spaces.
	// If empty, it knows only keys that its reader enters. Only with Explorer.
	ExplorerKeys string `json:"explorer_keys,omitempty"`
	Reports      bool   `json:"reports,omitempty"` // whether reports are published; otherwise the explorer requests none

	// Pages adds pages of accounts for readers without JavaScript and for search engines, badges, and EmbedKey. Only
	// under APIEFP. An account has a page if it can be looked up by name, or if it has at least PagesMin followers; a
	// zero PagesMin means named accounts only.
	Pages    bool `json:"pages,omitempty"`
	PagesMin int  `json:"pages_min,omitempty"`
	// PublicURL is the URL of the site, without a trailing slash, for absolute URLs: canonical links, previews and
	// sitemaps. Pages need it; otherwise it is not allowed.
	PublicURL string `json:"public_url,omitempty"`

	// Branding of pages and the explorer. Without both, these fields are dropped.
	About  string `json:"about,omitempty"`  // one sentence: which network this is, and who runs the site
	Title  string `json:"title,omitempty"`  // name of the site; on pages, the host of PublicURL
	Logo   string `json:"logo,omitempty"`   // URL of a picture next to the title; none
	Colour string `json:"colour,omitempty"` // colour of links and badges, as #rrggbb; a blue
	Home   string `json:"home,omitempty"`   // URL that the title links to; the explorer, or none

	// Data adds the graph as files: the tables DataKey, and DataPackageKey.
	Data bool `json:"data,omitempty"`
	// DataLicence is the licence of these files: a name such as CC0-1.0, a URL or a sentence; "" for no statement.
	// Only with Data.
	DataLicence string `json:"data_licence,omitempty"`

	// Tags names the services whose caches are purged by tags, sorted and separated by spaces. The publisher sets it.
	// Without it, objects have no tags, and the root omits the member.
	Tags string `json:"tags,omitempty"`

	// RanksEvery is the interval in seconds, by the snapshots' time, between updates of the ranks in details. In
	// between, the ranks follow the counts in RanksKey. 0 means that they are always current; then the root omits the
	// member.
	RanksEvery int64 `json:"ranks_every,omitempty"`

	// HistoryWindow is how far back from the snapshot's time notifications and activity reach. 0 means no history;
	// then the root omits the member. Only under APIEFP.
	HistoryWindow Window `json:"history_window,omitempty"`
}

// DefaultHistoryWindow is the longest interval that a request can ask for.
const DefaultHistoryWindow = 999 * time.Hour

// A Window is a duration in whole seconds. In JSON it is a text such as "999h0m0s".
type Window time.Duration

// MarshalText returns the format of time.Duration.
func (w Window) MarshalText() ([]byte, error) { return []byte(time.Duration(w).String()), nil }

// UnmarshalText returns the inverse of MarshalText.
func (w *Window) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*w = Window(d)
	return err
}

// AllFeatures returns a configuration with all routes.
func AllFeatures() Config {
	return Config{API: APIEFP, Explorer: true, RanksEvery: 1, HistoryWindow: Window(DefaultHistoryWindow), Pages: true, PublicURL: "https://example.org", Data: true}
}

// EFP reports whether the site has the complete read API.
func (c Config) EFP() bool { return c.API == APIEFP }

// ProfilePage returns the URL of an account's page, by ProfileURL.
func (c Config) ProfilePage(address string) string {
	return strings.ReplaceAll(c.ProfileURL, addressPlaceholder, address)
}

// ProfileLimits returns the limits of the site's profiles.
func (c Config) ProfileLimits() ProfileLimits {
	return ProfileLimits{Text: c.MaxProfileText, Whole: cmp.Or(c.MaxProfile, defaultProfile)}
}

// WithDefaults returns a normalized copy of c with defaults for zero fields. It fails if a field is invalid.
func (c Config) WithDefaults() (Config, error) {
	if c.BasePath == "" {
		c.BasePath = "api/v1"
	}
	c.BasePath = strings.Trim(c.BasePath, "/")
	if c.API == APISpec {
		c.API = ""
	}
	if c.Names == NamesCopies {
		c.Names = ""
	}
	if c.EFP() {
		c.BadgesField = cmp.Or(c.BadgesField, "poaps")
		c.ProfileURL = cmp.Or(c.ProfileURL, "https://efp.app/"+addressPlaceholder)
	}
	c.BadgesField = cmp.Or(c.BadgesField, "badges")
	if c.LeaderboardMax == 0 {
		c.LeaderboardMax = 100
	}
	if c.MaxProfileText == 0 {
		c.MaxProfileText = defaultProfileText
	}
	c.Pictures, c.ExplorerKeys = normalPictures(c.Pictures), strings.Join(slices.Compact(slices.Sorted(strings.FieldsSeq(c.ExplorerKeys))), " ")
	if !c.Explorer {
		c.ExplorerKeys, c.Reports = "", false
	}
	if !c.Explorer && !c.Pages {
		c.Pictures = ""
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	c.normalizeBrand()
	c.DataLicence = strings.TrimSpace(c.DataLicence)
	if c.MaxProfile == defaultProfile {
		c.MaxProfile = 0
	}
	return c, c.validate()
}

func (c Config) validate() error {
	first, _, _ := strings.Cut(c.BasePath, "/")
	switch {
	case !Key(c.BasePath).Valid() || !plainPath(c.BasePath):
		return fmt.Errorf("base path %q: use letters, digits, '-', '_', '.' and '/' only", c.BasePath)
	case slices.ContainsFunc(strings.Split(c.BasePath, "/"), func(s string) bool { return len(s) > MaxNameBytes }):
		return fmt.Errorf("base path %q: a part is longer than %d bytes", c.BasePath, MaxNameBytes)
	case slices.Contains(Reserved(), first):
		return fmt.Errorf("base path %q: %s is where a site keeps its own objects", c.BasePath, first)
	case len(c.BadgesField) > maxBadgesFieldBytes || !utf8.ValidString(c.BadgesField):
		return fmt.Errorf("badges field %q: at most %d bytes of UTF-8", c.BadgesField, maxBadgesFieldBytes)
	case c.LeaderboardMax < DefaultLimit || c.LeaderboardMax > largestLeaderboard:
		return fmt.Errorf("leaderboard maximum %d: between %d and %d", c.LeaderboardMax, DefaultLimit, largestLeaderboard)
	case c.MaxProfileText < MaxNameBytes || c.MaxProfileText > largestProfileText:
		return fmt.Errorf("longest profile text %d: between %d and %d bytes", c.MaxProfileText, MaxNameBytes, largestProfileText)
	case c.MaxProfile != 0 && c.MaxProfile < leastProfile || c.MaxProfile > largestProfileText:
		return fmt.Errorf("largest profile %d: between %d and %d bytes", c.MaxProfile, leastProfile, largestProfileText)
	}
	if c.RanksEvery < 0 || c.RanksEvery > largestRanksEvery {
		return fmt.Errorf("ranks every %ds: between 1s and %ds", c.RanksEvery, largestRanksEvery)
	}
	for _, validate := range []func() error{c.validatePictures, c.validateExplorerKeys, c.validateTags, c.validateAPI, c.validatePages, c.validateBrand, c.validateData} {
		if err := validate(); err != nil {
			return err
		}
	}
	return nil
}

const maxLicence = 1_000 // bytes

func (c Config) validateData() error {
	switch {
	case !c.Data && c.DataLicence != "":
		return errors.New("licence of the data: only with the graph as files, --data")
	case len(c.DataLicence) > maxLicence || !utf8.ValidString(c.DataLicence) || strings.ContainsFunc(c.DataLicence, unicode.IsControl):
		return fmt.Errorf("licence of the data %q: at most %d bytes of UTF-8, without line breaks and other controls", c.DataLicence, maxLicence)
	}
	return nil
}

func (c Config) validateTags() error {
	if services := strings.Fields(c.Tags); c.Tags != strings.Join(slices.Compact(slices.Sorted(slices.Values(services))), " ") {
		return fmt.Errorf("tags %q: use names of services in order, with spaces between", c.Tags)
	}
	return nil
}

func (c Config) validateExplorerKeys() error {
	keys := strings.Fields(c.ExplorerKeys)
	if len(keys) > maxExplorerKeys {
		return fmt.Errorf("explorer keys: %d, more than %d", len(keys), maxExplorerKeys)
	}
	for _, key := range keys {
		if !publicKey.MatchString(key) {
			return fmt.Errorf("explorer keys: %s is not a public key; use what `followpress key` printed: NAME+…", Quoted(key))
		}
	}
	return nil
}

func (c Config) validateAPI() error {
	switch {
	case c.API != "" && !c.EFP():
		return fmt.Errorf("api %q: use %s or %s", c.API, APISpec, APIEFP)
	case !c.EFP() && c.ProfileURL != "":
		return fmt.Errorf("profile URL %q: only the api %s has one", c.ProfileURL, APIEFP)
	case c.Names != "" && c.Names != NamesLookup:
		return fmt.Errorf("names %q: use %s or %s", c.Names, NamesCopies, NamesLookup)
	case !c.EFP() && c.Names != "":
		return fmt.Errorf("names %q: only with the api %s", c.Names, APIEFP)
	case c.EFP() && !c.hasValidProfileURL():
		return fmt.Errorf("profile URL %q: it must be like https://HOST/%s, of at most %d bytes with an address in it", c.ProfileURL, addressPlaceholder, maxProfileURLBytes)
	}
	switch w := time.Duration(c.HistoryWindow); {
	case w < 0 || w > largestWindow || w%time.Second != 0:
		return fmt.Errorf("history window %s: whole seconds, at most %s, or 0 for none", w, largestWindow)
	case w != 0 && !c.EFP():
		return fmt.Errorf("history window %s: only with the api %s", w, APIEFP)
	}
	return nil
}

// hasValidProfileURL reports whether ProfilePage returns a web URL for every account.
func (c Config) hasValidProfileURL() bool {
	filled := c.ProfilePage(Address{}.String())
	u, err := url.Parse(filled)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" &&
		strings.Contains(c.ProfileURL, addressPlaceholder) && len(filled) <= maxProfileURLBytes && utf8.ValidString(c.ProfileURL)
}

// plainPath reports whether a path has only characters that every edge, shell and configuration format takes
// literally.
func plainPath(path string) bool {
	return !strings.ContainsFunc(path, func(r rune) bool {
		letterOrDigit := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letterOrDigit && !strings.ContainsRune("-_./", r)
	})
}
