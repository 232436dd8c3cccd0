package explorer_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
)

// bomb returns an SVG of less than 2 kB that takes a browser minutes to draw.
func bomb() []byte {
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9"><defs><g id="a0"><circle r="1"/></g>`)
	for i := range 9 {
		fmt.Fprintf(&b, `<g id="a%d">%s</g>`, i+1, strings.Repeat(fmt.Sprintf(`<use href="#a%d"/>`, i), 10))
	}
	b.WriteString(`</defs><use href="#a9"/></svg>`)
	return []byte(b.String())
}

// square returns a small PNG.
func square(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// huge returns a PNG of a few bytes that claims 20,000 by 20,000 pixels.
func huge(t *testing.T) []byte {
	t.Helper()
	body := square(t)
	header := body[12:29] // type and contents
	copy(header[4:12], []byte{0, 0, 0x4e, 0x20, 0, 0, 0x4e, 0x20})
	sum := crc32.ChecksumIEEE(header)
	copy(body[29:], []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	return body
}

// moving returns a GIF that is black first, and white from then on.
func moving(t *testing.T) []byte {
	t.Helper()
	colours := color.Palette{color.Black, color.White}
	first, second := image.NewPaletted(image.Rect(0, 0, 8, 8), colours), image.NewPaletted(image.Rect(0, 0, 8, 8), colours)
	for i := range second.Pix {
		second.Pix[i] = 1
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{first, second}, Delay: []int{1, 1000}}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pictured returns a snapshot of accounts with these avatars, that follow each other.
func pictured(avatars ...string) fstest.MapFS {
	var accounts, lists, records strings.Builder
	for i, avatar := range avatars {
		fmt.Fprintf(&accounts, `{"address":%q,"primary_list":"%d","ens":{"name":"a%d.eth","avatar":%q,"header":%[4]q}}`+"\n", hostileAddress(i), i+1, i, avatar)
		fmt.Fprintf(&lists, `{"token_id":"%d","owner":%q}`+"\n", i+1, hostileAddress(i))
		for j := range avatars {
			if i != j {
				fmt.Fprintf(&records, `{"token_id":"%d","version":1,"record_type":"address","data":%q,"tags":[]}`+"\n", i+1, hostileAddress(j))
			}
		}
	}
	return fstest.MapFS{
		"meta.json":       {Data: []byte(`{"format":1,"as_of":"2026-11-01T00:00:00Z"}`)},
		"accounts.ndjson": {Data: []byte(accounts.String())}, "lists.ndjson": {Data: []byte(lists.String())}, "records.ndjson": {Data: []byte(records.String())},
		"events.ndjson": {}, "badges.ndjson": {},
	}
}

func inline(kind string, body []byte) string {
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(body)
}

// pictures lists the rows of a view that show a picture, by the last digit of the account.
const pictures = `[...document.querySelectorAll('main a.person:has(img)')].filter((a) => a.querySelector('img').naturalWidth > 0).map((a) => a.href.slice(-1)).sort().join('')`

// The explorer shows only small pictures whose bytes are in a plain format, redrawn on a canvas.
// Without the setting, it asks the reader once before it loads pictures from another host.
func TestPictures(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	b.Give("https://img.example/bomb.png", bomb())
	b.Give("https://img.example/huge.png", huge(t))
	b.Give("https://other.example/b.png", square(t))
	snapshot := pictured(
		inline("image/svg+xml", bomb()), inline("image/png", bomb()), "data:image/svg+xml,"+strings.ReplaceAll(string(bomb()), "#", "%23"), // 0 to 2
		inline("image/png", huge(t)), inline("text/html", square(t)), inline("image/png", append(square(t), make([]byte, 64<<10)...)), // 3 to 5
		"https://img.example/bomb.png", "https://img.example/huge.png", "https://img.example/a.png", "https://other.example/b.png", // 6 to 9
	)
	const asked = `document.querySelector('.question')`
	open := func(t *testing.T, choice string) (*host, *browser.Page) {
		t.Helper()
		b.Forget()
		h := serve(t, generate(t, snapshot, site.Config{API: site.APIEFP, Pictures: choice}), "/")
		p := b.Open(t, h.at("#/boards/followers"), browser.View{Size: browser.Desktop, Now: now})
		shown(t, p)
		return h, p
	}
	visit := func(t *testing.T, h *host, p *browser.Page) { // visits every view with pictures, and checks that the page still responds
		t.Helper()
		for i := range 10 {
			p.Go(h.at("#/" + hostileAddress(i)))
			shown(t, p)
		}
		p.Go(h.at("#/a/" + hostileAddress(0) + "/graph"))
		shown(t, p)
		p.Go(h.at("#/boards/followers"))
		shown(t, p)
	}
	requested := func(t *testing.T, want ...string) {
		t.Helper()
		got := map[string]bool{}
		for _, request := range b.Requests() {
			got[request] = true
		}
		for _, one := range want {
			if !got[one] {
				t.Errorf("did not request %s", one)
			}
			delete(got, one)
		}
		if len(got) > 0 {
			t.Errorf("got requests for %v, want %q only", got, want)
		}
	}
	img := []string{"https://img.example/bomb.png", "https://img.example/huge.png", "https://img.example/a.png"}

	t.Run("ask", func(t *testing.T) {
		h, p := open(t, "")
		visit(t, h, p)
		p.Wait(pictures + " === '4'")
		requested(t)
		barriers(t, p)
		fits(t, p)
		p.Click(".question button")
		p.Wait(pictures + " === '489'")
		requested(t, append(img, "https://other.example/b.png")...)
		p.Reload()
		shown(t, p)
		p.Wait("!" + asked + " && " + pictures + " === '489'")
		visit(t, h, p)
	})
	t.Run("refused", func(t *testing.T) {
		h, p := open(t, "")
		p.Wait("!!" + asked)
		p.Click(".question button + button")
		p.Reload()
		shown(t, p)
		visit(t, h, p)
		p.Wait("!" + asked + " && " + pictures + " === '4'")
		requested(t)
	})
	t.Run("off", func(t *testing.T) {
		h, p := open(t, "off")
		visit(t, h, p)
		p.Wait("!" + asked + " && document.images.length === 0")
		requested(t)
		policy(t, p, "img-src blob:;", "connect-src 'self';")
	})
	t.Run("hosts", func(t *testing.T) {
		h, p := open(t, "*.none.example, IMG.example")
		visit(t, h, p)
		p.Wait("!" + asked + " && " + pictures + " === '48'")
		requested(t, img...)
		policy(t, p, "img-src blob: https://*.none.example https://img.example;", "connect-src 'self' https://*.none.example https://img.example;")
	})
	t.Run("proxy", func(t *testing.T) {
		_, p := open(t, "https://proxy.example/w/{url}?w=192")
		p.Wait("!" + asked + " && " + pictures + " === '46789'") // the proxy returns a picture for every URL
		var want []string
		for _, u := range append(img, "https://other.example/b.png") {
			want = append(want, "https://proxy.example/w/"+strings.NewReplacer(":", "%3A", "/", "%2F").Replace(u)+"?w=192")
		}
		requested(t, want...)
		policy(t, p, "img-src blob: https://proxy.example;", "connect-src 'self' https://proxy.example;")
	})
}

func policy(t *testing.T, p *browser.Page, parts ...string) {
	t.Helper()
	got := browser.Eval[string](p, `document.querySelector('meta[http-equiv]').content`)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("got the policy %s, want %s in it", got, part)
		}
	}
}

// Pictures do not move: an animation shows its first frame.
func TestPicturesStandStill(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, generate(t, pictured(inline("image/gif", moving(t)), ""), site.Config{}), "/")
	p := b.Open(t, h.at("#/"+hostileAddress(0)), browser.View{Size: browser.Phone, Now: now})
	p.Wait("document.querySelector('.avatar img')?.naturalWidth > 0")
	got := browser.Eval[[]any](p, `(async () => {
		const image = document.querySelector('.avatar img');
		const bytes = await (await new Promise((done, failed) => {
			const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 });
			const context = canvas.getContext('2d');
			context.drawImage(image, 0, 0, 1, 1);
			done(context.getImageData(0, 0, 1, 1).data);
		}));
		return [bytes[0], image.src.split(':')[0]];
	})()`)
	if fmt.Sprint(got) != "[0 blob]" {
		t.Errorf("got %v, want the first frame, black, redrawn", got)
	}
}
