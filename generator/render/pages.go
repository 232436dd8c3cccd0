package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/crypto/keccak"
	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/plain"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/templates"
)

// Limits of the contents of a page.
const (
	pageRows       = site.DefaultLimit // accounts of each of the two lists
	maxBio         = 500               // characters
	maxDescription = 160               // characters of the text for search engines and previews
	maxLinkBytes   = 1_024
	pageBytes      = 3_072 // estimated size
	cardBytes      = 8_192 // estimated size
	sitemapPages   = 25_000
	topRows        = 20 // accounts of the page of the most followed
)

// A pageRenderer renders pages of accounts, their badges, and sitemaps. A page depends on the
// account, and on the names of the accounts that it follows and that follow it, but neither on
// ranks nor on the time of the snapshot. So it changes only when readers can see a change. Like
// Site, it is immutable.
type pageRenderer struct {
	*efpRenderer
	root     string   // prefix of all paths: Config.PublicPath
	explorer string   // prefix of an account's path in the explorer
	accounts []uint32 // accounts with a page, in numeric order
	sitemaps partition
	texts    texts // objects that do not depend on the snapshot

	title      string
	head, foot string // common to all pages
	top        string // start of the page of the most followed accounts
	bar        template.HTML
}

func newPageRenderer(ctx context.Context, e *efpRenderer, workers int) (*pageRenderer, error) {
	p := &pageRenderer{efpRenderer: e, root: page.Root(e.config), title: page.Title(e.config)}
	p.explorer = p.root + site.ExplorerPageKey.URLPath() + "#/a/"
	for account := range e.Accounts {
		if p.hasPage(uint32(account)) {
			p.accounts = append(p.accounts, uint32(account))
		}
	}
	if err := p.fillSitemaps(ctx, workers); err != nil {
		return nil, err
	}
	embed, err := embedScript(e.config)
	if err != nil {
		return nil, err
	}
	p.texts = texts{
		{page.StyleKey, pageStyle(e.config)}, {page.RobotsKey, robots(e.config)}, {page.EmbedKey, embed},
	}
	home := e.config.Home
	if home == "" && e.config.Explorer {
		home = p.root + site.ExplorerPageKey.URLPath()
	}
	hosts, _ := e.config.PictureHosts()
	common := map[string]any{
		"Root": p.root, "Title": p.title, "Home": home, "Logo": e.config.Logo, "LogoHost": page.LogoHost(e.config), "Pictures": hosts,
	}
	part := func(name string) string {
		var b strings.Builder
		err = errors.Join(err, pageTemplates.ExecuteTemplate(&b, name, common))
		return b.String()
	}
	p.head, p.bar, p.foot, p.top = part("head"), template.HTML(part("bar")), part("foot"), part("head")+part("top")
	return p, err
}

// fillSitemaps distributes the pages over sitemaps, so that none is too large. A page stays in its
// sitemap, whatever other pages come, until there are sixteen times as many sitemaps.
func (p *pageRenderer) fillSitemaps(ctx context.Context, workers int) (err error) {
	for digits := site.HashDigits(len(p.accounts), sitemapPages); ; digits++ {
		if p.sitemaps, err = newPartition(ctx, workers, digits, p.accounts, p.pageOf); err != nil {
			return err
		}
		largest := 0
		for bucket := range p.sitemaps.names {
			largest = max(largest, len(p.sitemaps.in(bucket)))
		}
		if largest <= 2*sitemapPages || digits == maxSitemapDigits {
			return nil
		}
	}
}

// maxSitemapDigits is enough for a billion pages. Overfilling a single sitemap on purpose would
// take too many names.
const maxSitemapDigits = 4

// hasPage reports whether an account has a page.
func (p *pageRenderer) hasPage(account uint32) bool {
	least := p.config.PagesMin
	return len(p.Profiles.Name(account)) > 0 || least > 0 && p.followersOf(account) >= uint32(min(least, maxCount))
}

// maxCount is the largest possible count.
const maxCount = 1<<32 - 1

func (p *pageRenderer) followersOf(account uint32) uint32 {
	return p.ranks.Count[rules.Followers][account]
}

func (p *pageRenderer) followingOf(account uint32) uint32 {
	return p.ranks.Count[rules.Following][account]
}

// pageOf returns the name of the page of an account.
func (p *pageRenderer) pageOf(account uint32) string {
	return page.Name(string(p.Profiles.Name(account)), p.Accounts[account])
}

// kinds returns the kinds of units: accounts, sitemaps, their index, and texts.
func (p *pageRenderer) kinds() []UnitKind {
	return []UnitKind{
		{len(p.accounts), nil, func(unit int, t *Scratch, emit Emitter) { p.renderPage(int(p.accounts[unit]), t, emit) }},
		{len(p.sitemaps.names), nil, p.renderSitemap}, // some are empty
		{1, nil, p.renderSitemaps},
		{1, nil, p.renderTop},
		p.texts.kind(),
	}
}

// objects returns the number of objects, without those of routes without variables.
func (p *pageRenderer) objects() int {
	n := objectsOfPage*len(p.accounts) + len(p.texts)
	for bucket := range p.sitemaps.names {
		if len(p.sitemaps.in(bucket)) > 0 {
			n++
		}
	}
	return n
}

// objectsOfPage counts the page, its card and two badges.
const objectsOfPage = 4

// find finds the unit of a key of a page route.
func (p *pageRenderer) find(route *site.Route, key site.Key) foundUnit {
	switch route.ID {
	case routes.Sitemap:
		return foundUnit{p.renderSitemaps, 0}
	case routes.PageTop:
		return foundUnit{p.renderTop, 0}
	case routes.SitemapPart:
		before, _, _ := strings.Cut(string(page.SitemapPartKey("*")), "*")
		return p.sitemaps.find(strings.TrimSuffix(string(key)[len(before):], ".xml"), p.renderSitemap)
	case routes.PageStyle, routes.Robots, routes.Embed:
		return p.texts.find(key)
	}
	own := page.Of(key)
	account, ok := p.accountOfUser(own)
	if !ok || !p.hasPage(account) || p.pageOf(account) != own {
		return foundUnit{}
	}
	return foundUnit{p.renderPage, int(account)}
}

// renderTop renders links to the most followed accounts. Without counts, the page changes only when their order does.
func (p *pageRenderer) renderTop(_ int, _ *Scratch, emit Emitter) {
	emit(pageBytes, func(b []byte) []byte {
		b = append(append(b, p.top...), "<ol>\n"...)
		first := p.ranks.First[rules.Followers]
		for _, account := range first[:min(topRows, len(first))] {
			b = p.appendRow(b, account)
		}
		return append(append(b, "</ol>\n"...), p.foot...)
	}, page.TopKey)
}

func (p *pageRenderer) renderSitemaps(_ int, _ *Scratch, emit Emitter) {
	url := p.config.PublicURL
	emit(objectBytes+len(p.sitemaps.names)*(userBytes+len(url)), func(b []byte) []byte {
		b = append(b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`+"\n"...)
		for i, bucket := range p.sitemaps.names {
			if len(p.sitemaps.in(i)) == 0 {
				continue // services reject an empty sitemap
			}
			b = fmt.Appendf(b, "<sitemap><loc>%s%s</loc></sitemap>\n", url, page.SitemapPartKey(bucket).URLPath())
		}
		return append(b, "</sitemapindex>\n"...)
	}, page.SitemapKey)
}

// renderSitemap renders the sitemap of a bucket. Addresses of pages need no encoding in URLs or
// XML.
func (p *pageRenderer) renderSitemap(bucket int, _ *Scratch, emit Emitter) {
	pages, url := p.sitemaps.in(bucket), p.config.PublicURL
	if len(pages) == 0 {
		return
	}
	pages = pages[:min(len(pages), 2*sitemapPages)]
	names := make([]string, len(pages))
	size := objectBytes
	for i, account := range pages {
		names[i] = p.pageOf(account)
		size += len(names[i]) + len(url) + 64
	}
	slices.Sort(names)
	emit(size, func(b []byte) []byte {
		b = append(b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`+"\n"...)
		for _, name := range names {
			b = append(append(append(b, "<url><loc>"...), url...), '/')
			b = append(append(b, page.Key(name)...), "</loc></url>\n"...)
		}
		return append(b, "</urlset>\n"...)
	}, page.SitemapPartKey(p.sitemaps.names[bucket]))
}

// A pageView is the data of the page template. Untrusted text is a string, which the template
// escapes.
type pageView struct {
	Bar                template.HTML // from another template
	Title, Name, About string        // About is a line for previews
	Picture            string        // URL of the avatar, "" if it may not be named
	Linked             linkedPage
	Address, Bio, Link string // "" for none
	Face, Asked        string // URL of the avatar: shown, and shown on request; "" for none
}

// A linkedPage describes a page to search engines (schema.org/ProfilePage).
type linkedPage struct {
	Context string       `json:"@context"`
	Type    string       `json:"@type"`
	Main    linkedPerson `json:"mainEntity"`
}

type linkedPerson struct {
	Type        string      `json:"@type"`
	Name        string      `json:"name"`
	Identifier  string      `json:"identifier"`
	Description string      `json:"description,omitempty"`
	Image       string      `json:"image,omitempty"`
	Statistic   linkedCount `json:"interactionStatistic"`
}

type linkedCount struct {
	Type  string `json:"@type"`
	Kind  string `json:"interactionType"`
	Count uint32 `json:"userInteractionCount"`
}

func (p *pageRenderer) renderPage(unit int, t *Scratch, emit Emitter) {
	account := uint32(unit)
	own := p.pageOf(account)
	if t.only.object == "" || t.only.object == "index.html" {
		emit(pageBytes, func(b []byte) []byte { return p.appendPage(b, account, own) }, page.Key(own))
	}
	if t.only.object != "index.html" {
		p.emitBadges(account, own, emit)
		emit(cardBytes, func(b []byte) []byte {
			return appendCard(b, card{
				name: p.nameOf(account), foot: p.title, address: p.Accounts[account], followers: p.followersOf(account), following: p.followingOf(account),
				accent: page.Colour(p.config),
			})
		}, page.CardKey(own))
	}
}

// appendPage appends a page: untrusted text by the template, and around it addresses, numbers and
// rows, which are most of a page.
func (p *pageRenderer) appendPage(b []byte, account uint32, own string) []byte {
	out := bytes.NewBuffer(p.appendAddresses(append(b, p.head...), own, p.Accounts[account].String()))
	if err := aboutAccount.Execute(out, p.view(account)); err != nil {
		panic("render: own: " + err.Error()) // template and data are the program's
	}
	b = fmt.Appendf(out.Bytes(), `<p class="counts"><b>%s</b> %s <b>%s</b> following</p>`+"\n",
		grouped(p.followersOf(account)), followersWord(p.followersOf(account)), grouped(p.followingOf(account)))
	if p.config.Explorer {
		b = append(append(append(b, `<p><a class="open" href="`...), p.explorer...), own...)
		b = append(b, "\">Open in the explorer</a></p>\n"...)
	}
	b = p.appendSection(b, account, "Follows", rules.Following, func(b []byte) []byte { return p.appendFollowed(b, account) })
	b = p.appendSection(b, account, "Followed by", rules.Followers, func(b []byte) []byte { return p.appendFollowers(b, account) })
	return append(b, p.foot...)
}

var (
	pageTemplates = template.Must(template.New("").Parse(templates.Page))
	aboutAccount  = pageTemplates.Lookup("page")
)

func (p *pageRenderer) view(account uint32) *pageView {
	address, name := checksummed(p.Accounts[account]), p.nameOf(account)
	followers, following := p.followersOf(account), p.followingOf(account)
	bio, link := p.aboutOf(account)
	v := &pageView{
		Bar: p.bar, Title: p.title, Name: name, Picture: p.pictureOf(account), Bio: bio, Link: link,
		About: grouped(followers) + " " + followersWord(followers) + ", follows " + grouped(following) + ".",
	}
	if name != address {
		v.Address = address
	}
	// As in the explorer: if the operator names no hosts, the reader decides, here by following a
	// link.
	if _, all := p.config.PictureHosts(); all {
		v.Asked = v.Picture
	} else {
		v.Face = v.Picture
	}
	if bio != "" {
		v.About = shortenedTo(v.About+" "+strings.Join(strings.Fields(bio), " "), maxDescription)
	}
	v.Linked = linkedPage{"https://schema.org", "ProfilePage", linkedPerson{
		Type: "Person", Name: name, Identifier: p.Accounts[account].String(), Description: bio, Image: v.Picture,
		Statistic: linkedCount{"InteractionCounter", "https://schema.org/FollowAction", followers},
	}}
	return v
}

// appendAddresses appends the addresses of a page and of related resources, none of which needs
// escaping.
func (p *pageRenderer) appendAddresses(b []byte, own, address string) []byte {
	url, api := p.config.PublicURL+"/"+string(page.Key(own)), p.root+"/"+p.config.BasePath+"/users/"+address
	b = append(append(append(b, `<link rel="canonical" href="`...), url...), "\">\n"...)
	b = append(append(append(b, `<meta property="og:url" content="`...), url...), "\">\n"...)
	b = append(append(append(b, `<meta property="og:image" content="`...), p.config.PublicURL+"/"+string(page.CardKey(own))...), "\">\n"...)
	b = append(append(append(b, `<link rel="alternate" type="application/json" href="`...), api...), "/account\">\n"...)
	if p.config.HistoryWindow > 0 {
		b = append(append(append(b, `<link rel="alternate" type="application/atom+xml" href="`...), api...), "/notifications.atom\">\n"...)
	}
	return b
}

// appendSection appends rows under a title, and a link to the rest in the explorer, or else in the
// API. It appends nothing without rows.
func (p *pageRenderer) appendSection(b []byte, account uint32, title string, counted rules.Measure, rows func(b []byte) []byte) []byte {
	start := len(b)
	b = append(append(append(b, "<section><h2>"...), title...), "</h2><ul>\n"...)
	head := len(b)
	if b = rows(b); len(b) == head {
		return b[:start]
	}
	b = append(b, "</ul>\n"...)
	if n := p.ranks.Count[counted][account]; n > pageRows {
		all, address := "followers", p.Accounts[account].String()
		if counted == rules.Following {
			all = "following"
		}
		to := p.explorer + address + "/" + all
		if !p.config.Explorer {
			to = p.root + "/" + p.config.BasePath + "/users/" + address + "/" + all
		}
		b = fmt.Appendf(b, `<p class="quiet">The latest %d of %s. <a href="%s">All of them</a></p>`+"\n", pageRows, grouped(n), to)
	}
	return append(b, "</section>\n"...)
}

// appendFollowed appends rows of the accounts that an account followed last.
func (p *pageRenderer) appendFollowed(b []byte, account uint32) []byte {
	primary := p.Primary[account]
	if primary == None {
		return b
	}
	all, n := p.RecordsOf(primary), 0
	for i := all.Len() - 1; i >= 0 && n < pageRows; i-- {
		if r := all.At(i); p.IsFollow(r) {
			b = p.appendRow(b, r.Data)
			n++
		}
	}
	return b
}

// appendFollowers appends rows of the accounts that followed an account last.
func (p *pageRenderer) appendFollowers(b []byte, account uint32) []byte {
	n := 0
	for _, h := range p.holdersOf(account) {
		if n == pageRows {
			break
		}
		if h.follows() {
			b = p.appendRow(b, p.Owners[h.list])
			n++
		}
	}
	return b
}

// appendRow appends a row with an account and a link to its page, or else to the explorer. The
// template does not render rows, because most of a page is rows. The name of a page and an address
// need no escaping.
func (p *pageRenderer) appendRow(b []byte, account uint32) []byte {
	name := p.Profiles.Name(account)
	own := page.Name(string(name), p.Accounts[account])
	b = append(b, "<li>"...)
	isLink := true
	switch {
	case p.hasPage(account):
		b = append(append(append(b, `<a href="`...), p.root...), '/')
		b = append(append(b, page.Key(own)...), `">`...)
	case p.config.Explorer:
		b = append(append(append(append(b, `<a href="`...), p.explorer...), own...), `">`...)
	default:
		isLink = false
	}
	switch {
	case len(name) == 0:
		b = append(b, checksummed(p.Accounts[account])...)
	case string(name) == own:
		b = append(b, own...)
	default:
		b = append(b, "<bdi>"...)
		b = append(b, template.HTMLEscapeString(plain.Text(string(name)))...)
		b = append(b, "</bdi>"...)
	}
	if isLink {
		b = append(b, "</a>"...)
	}
	return append(b, '\n')
}

// nameOf returns the lookup name of an account, or its address.
func (p *pageRenderer) nameOf(account uint32) string {
	if name := p.Profiles.Name(account); len(name) > 0 {
		return plain.Text(string(name))
	}
	return checksummed(p.Accounts[account])
}

// checksummed returns an address with the letter case that detects typing errors (EIP-55), like the
// explorer.
func checksummed(address site.Address) string {
	text := []byte(address.String())
	hash := keccak.NewLegacyKeccak256()
	_, _ = hash.Write(text[2:]) // a hash never fails
	sum := hash.Sum(nil)
	for i, digit := range text[2:] {
		if half := sum[i/2] >> (4 * (1 - i%2)); digit >= 'a' && half&8 != 0 {
			text[2+i] = digit - 'a' + 'A'
		}
	}
	return string(text)
}

// aboutOf returns the account's description of itself, and its web page, if valid.
func (p *pageRenderer) aboutOf(account uint32) (bio, link string) {
	var profile struct {
		Records map[string]json.RawMessage `json:"records"`
	}
	ens := p.profile(account).ENS
	if !bytes.Contains(ens, []byte(`"description":`)) && !bytes.Contains(ens, []byte(`"url":`)) || json.Unmarshal(ens, &profile) != nil {
		return "", ""
	}
	bio = shortenedTo(strings.TrimSpace(plain.Text(textOf(profile.Records["description"]))), maxBio)
	return bio, webPage(textOf(profile.Records["url"]))
}

// pictureOf returns the URL of an account's avatar, "" if it may not be named.
func (p *pageRenderer) pictureOf(account uint32) string {
	a := p.shown(account)
	_, avatar, _ := a.texts()
	return page.Picture(p.config, textOf(avatar))
}

// textOf returns the text of a JSON string, "" for any other value.
func textOf(encoded []byte) string {
	if len(encoded) <= len(emptyText) || encoded[0] != '"' {
		return ""
	}
	if inner := encoded[1 : len(encoded)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var text string
	if json.Unmarshal(encoded, &text) != nil {
		return ""
	}
	return text
}

// webPage returns the URL of a web page that is safe to link, "" for anything else.
func webPage(text string) string {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(text) > maxLinkBytes {
		return ""
	}
	shown := u.String()
	if !utf8.ValidString(shown) || plain.Text(shown) != shown {
		return ""
	}
	return shown
}

// shortenedTo returns the beginning of a text, up to this many characters.
func shortenedTo(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	n := 0
	for at := range text {
		if n++; n == most {
			return strings.TrimSpace(text[:at]) + "…"
		}
	}
	return text
}

func followersWord(n uint32) string {
	if n == 1 {
		return "follower"
	}
	return "followers"
}

// grouped writes a number with commas between thousands.
func grouped(n uint32) string {
	digits := strconv.FormatUint(uint64(n), 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// emitBadges emits the badges of an account, for light and for dark pages.
func (p *pageRenderer) emitBadges(account uint32, own string, emit Emitter) {
	n := p.followersOf(account)
	label, count, name := followersWord(n), grouped(n), template.HTMLEscapeString(p.nameOf(account))
	colour := page.Colour(p.config)
	emit(2*objectBytes, func(b []byte) []byte { return appendBadge(b, label, count, name, "#e3e8ed", "#17222e", colour) }, page.BadgeKey(own))
	emit(2*objectBytes, func(b []byte) []byte { return appendBadge(b, label, count, name, "#2d3a47", "#e1e8ee", colour) }, page.DarkBadgeKey(own))
}

// pageStyle returns the style sheet of the pages of a site.
func pageStyle(config site.Config) []byte {
	return []byte(strings.ReplaceAll(templates.PageStyle, "COLOUR", page.Colour(config)))
}

// embedScript returns the script with the element <follow-card>.
func embedScript(config site.Config) ([]byte, error) {
	about, err := json.Marshal(map[string]any{
		"api": config.BasePath, "title": page.Title(config), "colour": page.Colour(config), "explorer": config.Explorer,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", page.EmbedKey, err)
	}
	return []byte(strings.NewReplacer("SITE", string(about), "PAGE", config.Expression("page")).Replace(templates.Embed)), nil
}

// robots excludes the answers of the API for robots, and names the sitemaps.
func robots(config site.Config) []byte {
	root := page.Root(config)
	return fmt.Appendf(nil, "User-agent: *\nDisallow: %[1]s/%[2]s/\nDisallow: %[1]s/_search/\nDisallow: %[1]s/_variants/\n\nSitemap: %[3]s/%[4]s\n",
		root, config.BasePath, config.PublicURL, page.SitemapKey)
}
