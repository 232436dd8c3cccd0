package page_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
	"github.com/followpress/followpress/site/routes"
)

const alice = "0xabcdefabcdefabcdefabcdefabcdefabcdefabcd"

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A page is named after the account only if the name needs no escaping and has no look-alike letters.
func TestPageName(t *testing.T) {
	address, err := site.ParseAddress(alice)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "alice.eth", "1.2", "a-b.eth", "a..b", "a.", strings.Repeat("x", 100), "index.html", "dark"} {
		equal(t, "page of "+name, page.Name(name, address), name)
	}
	for _, name := range []string{"", ".", "..", ".a", "-a", "_a", "a_b", "A", "é", "аlice.eth", "a b", "a/b", "a%2f", "a\n", `"><b>`, strings.Repeat("x", 101), "\u202ea"} {
		equal(t, "page of "+name, page.Name(name, address), alice)
	}
}

// Pages have keys of their own, and two more paths each; sites without pages have none of that.
func TestPageKeys(t *testing.T) {
	without, err := site.Config{API: site.APIEFP}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	with := without
	with.Pages, with.PublicURL = true, "https://graph.example/at"
	for key, want := range map[site.Key]routes.ID{
		page.Key("a.eth"): routes.Page, page.Key(alice): routes.Page, page.BadgeKey("a.eth"): routes.Badge, page.BadgeKey("dark"): routes.Badge,
		page.DarkBadgeKey("a.eth"): routes.DarkBadge, page.CardKey("a.eth"): routes.Card, page.SitemapKey: routes.Sitemap, page.SitemapPartKey("0f"): routes.SitemapPart,
		page.RobotsKey: routes.Robots, page.StyleKey: routes.PageStyle, page.EmbedKey: routes.Embed, page.TopKey: routes.PageTop,
	} {
		route, ok := with.RouteOf(key)
		if !key.Valid() || !ok || route.ID != want {
			t.Errorf("%s: got the route %v, want that of %s", key, route, site.RouteBy(want).Pattern)
		}
		equal(t, "GET "+string(key), with.Resolve("GET", "/"+string(key), "").Key, key)
		if route, ok := without.RouteOf(key); ok {
			t.Errorf("%s without pages: got the route %s", key, route.Pattern)
		}
		first, _, _ := strings.Cut(string(key), "/")
		if !slices.Contains(with.TopLevel(), first) || slices.Contains(without.TopLevel(), first) {
			t.Errorf("%s: want it at the top of sites with pages only", first)
		}
		public := slices.ContainsFunc(with.PublicKeys(), func(pattern string) bool {
			prefix, isPrefix := strings.CutSuffix(pattern, "*")
			return pattern == string(key) || isPrefix && strings.HasPrefix(string(key), prefix)
		})
		equal(t, string(key)+" is public", public, true)
	}
	for _, name := range []string{"a.eth", "a.svg", "index.html", "dark"} {
		for _, key := range []site.Key{page.Key(name), page.BadgeKey(name), page.DarkBadgeKey(name), page.CardKey(name)} {
			equal(t, "page of "+string(key), page.Of(key), name)
		}
	}
	for _, path := range append(page.Paths("a.eth"), "/u/%61.eth", "/u/a%2Eeth/", "/u/a.eth/index.html") {
		equal(t, path, with.Resolve("GET", path, "x=1").Key, page.Key("a.eth"))
		equal(t, path+" without pages", without.Resolve("GET", path, "").Problem, site.NoSuchRoute)
	}
	for _, path := range []string{"/u", "/u/", "/u//", "/u/a.eth//", "/u/a.eth/x", "/u/A.eth", "/u/_page.css/", "/u/..", "/u/%2e%2e/", "/u/a%2Fb", "/U/a.eth", "/x/a.eth"} {
		equal(t, path, with.Resolve("GET", path, "").Problem, site.NoSuchRoute)
	}
	equal(t, "POST to a page", with.Resolve("POST", "/u/a.eth", "").Problem, site.MethodNotAllowed)
}

// Invalid settings of pages and branding are errors that name valid values.
func TestPagesConfig(t *testing.T) {
	good := site.Config{API: site.APIEFP, Pages: true, PublicURL: "https://graph.example/"}
	c, err := good.WithDefaults()
	if err != nil || c.PublicURL != "https://graph.example" || page.Root(c) != "" || page.Title(c) != "graph.example" {
		t.Errorf("got %+v, %v", c, err)
	}
	for name, tc := range map[string]struct {
		change func(c *site.Config)
		want   string // expected error; "" for none
	}{
		"a path":              {func(c *site.Config) { c.PublicURL = "http://127.0.0.1:8080/a/b~c" }, ""},
		"an address":          {func(c *site.Config) { c.PublicURL = "http://[::1]:8080" }, ""},
		"spec":                {func(c *site.Config) { c.API = "" }, "only with the api efp"},
		"no URL":              {func(c *site.Config) { c.PublicURL = "" }, "public URL"},
		"a query":             {func(c *site.Config) { c.PublicURL += "?a" }, "without a query"},
		"a fragment":          {func(c *site.Config) { c.PublicURL += "#a" }, "public URL"},
		"a user":              {func(c *site.Config) { c.PublicURL = "https://a@b.example" }, "public URL"},
		"a script":            {func(c *site.Config) { c.PublicURL = "javascript:alert(1)" }, "public URL"},
		"a quote":             {func(c *site.Config) { c.PublicURL = `https://a.example/"` }, "public URL"},
		"dots":                {func(c *site.Config) { c.PublicURL = "https://a.example/../b" }, "public URL"},
		"a long URL":          {func(c *site.Config) { c.PublicURL += strings.Repeat("x", 600) }, "512 bytes"},
		"fewer than none":     {func(c *site.Config) { c.PagesMin = -1 }, "use 1 or more"},
		"no pages":            {func(c *site.Config) { c.Pages = false }, "only with pages"},
		"the base path":       {func(c *site.Config) { c.BasePath = "u/v1" }, "keeps its pages"},
		"a title":             {func(c *site.Config) { c.Title = ` <b>"& ` }, ""},
		"a long title":        {func(c *site.Config) { c.Title = strings.Repeat("x", 61) }, "60 bytes"},
		"a title of lines":    {func(c *site.Config) { c.Title = "a\nb" }, "controls"},
		"a title that turns":  {func(c *site.Config) { c.Title = "a\u202eb" }, "controls"},
		"about":               {func(c *site.Config) { c.Explorer, c.About = true, ` <b>"& ` }, ""},
		"a long about":        {func(c *site.Config) { c.Explorer, c.About = true, strings.Repeat("x", 201) }, "200 bytes"},
		"an about of lines":   {func(c *site.Config) { c.Explorer, c.About = true, "a\nb" }, "200 bytes"},
		"an about that turns": {func(c *site.Config) { c.Explorer, c.About = true, "a\u202eb" }, "controls"},
		"an about cut off":    {func(c *site.Config) { c.Explorer, c.About = true, "\xe2\x80" }, "UTF-8"},
		"a short colour":      {func(c *site.Config) { c.Colour = "#A0f" }, ""},
		"a name of a colour":  {func(c *site.Config) { c.Colour = "red" }, "like #0b5cad"},
		"a colour that ends":  {func(c *site.Config) { c.Colour = "#000}" }, "like #0b5cad"},
		"a logo over http":    {func(c *site.Config) { c.Logo = "http://a.example/x" }, "https://HOST"},
		"a logo with a quote": {func(c *site.Config) { c.Logo = `https://a.example/"x` }, "quotes"},
		"a logo that ends":    {func(c *site.Config) { c.Logo = "https://a.example/;script-src *" }, "logo"},
		"a home":              {func(c *site.Config) { c.Home = "http://a.example/?a=1&b=2#c" }, ""},
		"a home of a script":  {func(c *site.Config) { c.Home = "javascript:alert(1)" }, "home"},
		"a home of nobody":    {func(c *site.Config) { c.Home = "https:///x" }, "home"},
	} {
		c := good
		tc.change(&c)
		got, err := c.WithDefaults()
		if tc.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		if again, err2 := got.WithDefaults(); err == nil && (err2 != nil || again != got) {
			t.Errorf("%s: with defaults twice: got %+v, want %+v", name, again, got)
		}
	}
	if c, err := (site.Config{Title: "x", About: "x", Colour: "#000"}).WithDefaults(); err != nil || c.Title+c.About+c.Colour != "" {
		t.Errorf("a brand that nothing shows: got %+v, %v, want none", c.Title, err)
	}
}

// Pages show pictures only over HTTPS and as Config.Pictures allows.
func TestPictureURL(t *testing.T) {
	for _, tc := range []struct{ pictures, picture, want string }{
		{"", "https://a.example/x.png", "https://a.example/x.png"}, {"", "http://a.example/x.png", ""}, {"", "javascript:alert(1)", ""}, {"", "data:image/png;base64,x", ""},
		{"", "ipfs://x", ""}, {"", "//a.example/x", ""}, {"", "https://u@a.example/x", ""}, {"", "https://a.example/\"<>", "https://a.example/%22%3C%3E"}, {"", "", ""},
		{"off", "https://a.example/x.png", ""}, {"a.example", "https://a.example/x", "https://a.example/x"}, {"a.example", "https://b.example/x", ""},
		{"*.a.example", "https://b.a.example/x", "https://b.a.example/x"}, {"*.a.example", "https://xa.example/x", ""}, {"*.a.example", "https://a.example/x", ""},
		{"https://p.example/{url}", "https://a.example/x y?b=c d", "https://p.example/https%3A%2F%2Fa.example%2Fx%2520y%3Fb%3Dc%20d"},
	} {
		c, err := site.Config{Explorer: true, Pictures: tc.pictures}.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, tc.pictures+": "+tc.picture, page.Picture(c, tc.picture), tc.want)
	}
}
