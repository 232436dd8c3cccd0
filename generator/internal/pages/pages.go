// Package pages renders what people and search engines read of accounts without JavaScript: pages,
// badges, cards and sitemaps.
package pages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/internal/units"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/plain"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/rules"
)

// Limits of the contents of a page.
const (
	pageRows       = site.DefaultLimit // accounts of each of the two lists
	maxBio         = 500               // characters
	maxDescription = 160               // characters of the text for search engines and previews
	pageBytes      = 3_072             // estimated size
	cardBytes      = 8_192             // estimated size
	topRows        = 20                // accounts of the page of the most followed
)

// A Renderer renders pages of accounts, their badges, and sitemaps. A page depends on the
// account, and on the names of the accounts that it follows and that follow it, but neither on
// ranks nor on the time of the snapshot. So it changes only when readers can see a change. It is
// immutable.
type Renderer struct {
	*graph.Relations
	ranks    *graph.Ranks
	config   site.Config
	root     string   // prefix of all paths: Config.PublicPath
	explorer string   // prefix of an account's path in the explorer
	accounts []uint32 // accounts with a page, in numeric order
	sitemaps *sitemaps
	texts    units.Texts // objects that do not depend on the snapshot

	title      string
	head, foot string // common to all pages
	top        string // start of the page of the most followed accounts
	bar        template.HTML
}

// NewRenderer prepares to render the pages of a site.
func NewRenderer(ctx context.Context, of *graph.Relations, ranks *graph.Ranks, config site.Config, workers int) (*Renderer, error) {
	p := &Renderer{Relations: of, ranks: ranks, config: config, root: page.Root(config), title: page.Title(config)}
	p.explorer = p.root + site.ExplorerPageKey.URLPath() + "#/a/"
	for account := range p.Accounts {
		if p.hasPage(uint32(account)) {
			p.accounts = append(p.accounts, uint32(account))
		}
	}
	var err error
	if p.sitemaps, err = newSitemaps(ctx, workers, config.PublicURL, p.accounts, p.pageOf); err != nil {
		return nil, err
	}
	embed, err := embedScript(config)
	if err != nil {
		return nil, err
	}
	p.texts = units.Texts{
		{Key: page.StyleKey, Body: pageStyle(config)}, {Key: page.RobotsKey, Body: robots(config)}, {Key: page.EmbedKey, Body: embed},
	}
	home := config.Home
	if home == "" && config.Explorer {
		home = p.root + site.ExplorerPageKey.URLPath()
	}
	hosts, _ := config.PictureHosts()
	common := map[string]any{
		"Root": p.root, "Title": p.title, "Home": home, "Logo": config.Logo, "LogoHost": page.LogoHost(config), "Pictures": hosts,
	}
	part := func(name string) string {
		var b strings.Builder
		err = errors.Join(err, pageTemplates.ExecuteTemplate(&b, name, common))
		return b.String()
	}
	p.head, p.bar, p.foot, p.top = part("head"), template.HTML(part("bar")), part("foot"), part("head")+part("top")
	return p, err
}

// hasPage reports whether an account has a page.
func (p *Renderer) hasPage(account uint32) bool {
	least := p.config.PagesMin
	return len(p.Profiles.Name(account)) > 0 || least > 0 && p.followersOf(account) >= uint32(min(least, maxCount))
}

// maxCount is the largest possible count.
const maxCount = 1<<32 - 1

func (p *Renderer) followersOf(account uint32) uint32 {
	return p.ranks.Count[rules.Followers][account]
}

func (p *Renderer) followingOf(account uint32) uint32 {
	return p.ranks.Count[rules.Following][account]
}

// pageOf returns the name of the page of an account.
func (p *Renderer) pageOf(account uint32) string {
	return page.Name(string(p.Profiles.Name(account)), p.Accounts[account])
}

// Kinds returns the kinds of units: accounts, sitemaps, their index, and texts.
func (p *Renderer) Kinds() []units.Kind {
	return []units.Kind{
		{Units: len(p.accounts), Render: func(unit int, t *units.Scratch, emit render.Emitter) { p.renderPage(int(p.accounts[unit]), t, emit) }},
		{Units: len(p.sitemaps.Names), Render: p.sitemaps.render}, // some are empty
		{Units: 1, Render: p.sitemaps.renderIndex},
		{Units: 1, Render: p.renderTop},
		p.texts.Kind(),
	}
}

// Objects returns the number of objects, without those of routes without variables.
func (p *Renderer) Objects() int {
	return objectsOfPage*len(p.accounts) + p.sitemaps.objects() + len(p.texts)
}

// objectsOfPage counts the page, its card and two badges.
const objectsOfPage = 4

// Find finds the unit of a key of a page route.
func (p *Renderer) Find(route *site.Route, key site.Key) units.Found {
	switch route.ID {
	case routes.Sitemap:
		return units.Found{Render: p.sitemaps.renderIndex}
	case routes.PageTop:
		return units.Found{Render: p.renderTop}
	case routes.SitemapPart:
		before, _, _ := strings.Cut(string(page.SitemapPartKey("*")), "*")
		return p.sitemaps.Find(strings.TrimSuffix(string(key)[len(before):], ".xml"), p.sitemaps.render)
	case routes.PageStyle, routes.Robots, routes.Embed:
		return p.texts.Find(key)
	}
	own := page.Of(key)
	account, ok := p.AccountOfUser(own)
	if !ok || !p.hasPage(account) || p.pageOf(account) != own {
		return units.Found{}
	}
	return units.Found{Render: p.renderPage, Unit: int(account)}
}

// renderTop renders links to the most followed accounts. Without counts, the page changes only when their order does.
func (p *Renderer) renderTop(_ int, _ *units.Scratch, emit render.Emitter) {
	emit(pageBytes, func(b []byte) []byte {
		b = append(append(b, p.top...), "<ol>\n"...)
		first := p.ranks.First[rules.Followers]
		for _, account := range first[:min(topRows, len(first))] {
			b = p.appendRow(b, account)
		}
		return append(append(b, "</ol>\n"...), p.foot...)
	}, page.TopKey)
}

func (p *Renderer) renderPage(unit int, t *units.Scratch, emit render.Emitter) {
	account := uint32(unit)
	own := p.pageOf(account)
	if t.Only.Object == "" || t.Only.Object == "index.html" {
		emit(pageBytes, func(b []byte) []byte { return p.appendPage(b, account, own) }, page.Key(own))
	}
	if t.Only.Object != "index.html" {
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
func (p *Renderer) appendPage(b []byte, account uint32, own string) []byte {
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

func (p *Renderer) view(account uint32) *pageView {
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
func (p *Renderer) appendAddresses(b []byte, own, address string) []byte {
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
func (p *Renderer) appendSection(b []byte, account uint32, title string, counted rules.Measure, rows func(b []byte) []byte) []byte {
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
func (p *Renderer) appendFollowed(b []byte, account uint32) []byte {
	primary := p.Primary[account]
	if primary == graph.None {
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
func (p *Renderer) appendFollowers(b []byte, account uint32) []byte {
	n := 0
	for _, h := range p.HoldersOf(account) {
		if n == pageRows {
			break
		}
		if h.Follows() {
			b = p.appendRow(b, p.Owners[h.List])
			n++
		}
	}
	return b
}

// appendRow appends a row with an account and a link to its page, or else to the explorer. The
// template does not render rows, because most of a page is rows. The name of a page and an address
// need no escaping.
func (p *Renderer) appendRow(b []byte, account uint32) []byte {
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
func (p *Renderer) nameOf(account uint32) string {
	if name := p.Profiles.Name(account); len(name) > 0 {
		return plain.Text(string(name))
	}
	return checksummed(p.Accounts[account])
}

// aboutOf returns the account's description of itself, and its web page, if valid.
func (p *Renderer) aboutOf(account uint32) (bio, link string) {
	var profile struct {
		Records map[string]json.RawMessage `json:"records"`
	}
	ens := p.Profile(account).ENS
	if !bytes.Contains(ens, []byte(`"description":`)) && !bytes.Contains(ens, []byte(`"url":`)) || json.Unmarshal(ens, &profile) != nil {
		return "", ""
	}
	bio = shortenedTo(strings.TrimSpace(plain.Text(textOf(profile.Records["description"]))), maxBio)
	return bio, webPage(textOf(profile.Records["url"]))
}

// pictureOf returns the URL of an account's avatar, "" if it may not be named.
func (p *Renderer) pictureOf(account uint32) string {
	a := render.Account{Profile: p.Profile(account)}
	_, avatar, _ := a.Texts()
	return page.Picture(p.config, textOf(avatar))
}

// emitBadges emits the badges of an account, for light and for dark pages.
func (p *Renderer) emitBadges(account uint32, own string, emit render.Emitter) {
	n := p.followersOf(account)
	label, count, name := followersWord(n), grouped(n), template.HTMLEscapeString(p.nameOf(account))
	colour := page.Colour(p.config)
	emit(2*render.ObjectBytes, func(b []byte) []byte { return appendBadge(b, label, count, name, "#e3e8ed", "#17222e", colour) }, page.BadgeKey(own))
	emit(2*render.ObjectBytes, func(b []byte) []byte { return appendBadge(b, label, count, name, "#2d3a47", "#e1e8ee", colour) }, page.DarkBadgeKey(own))
}
