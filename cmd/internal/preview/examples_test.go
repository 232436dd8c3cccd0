package preview

import (
	"testing"

	"github.com/followpress/followpress/internal/testenv/browser"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
)

// The complete pages that docs/client.md names work in a browser, over the preview.
func TestExamplePages(t *testing.T) {
	servers.Wanted(t)
	run := Command{Addr: "127.0.0.1:0"}
	run.API = string(site.APIEFP)
	base, _ := preview(t, run)
	chromium := browser.Start(t, browser.Options{Alone: true})

	page := chromium.Open(t, base+"/_preview/client.html", browser.View{Size: browser.Desktop})
	page.WaitForText("10 of 18")
	page.Click("#more")
	page.WaitForText("18 of 18")
	page.Close()

	page = chromium.Open(t, base+"/_preview/fetch.html", browser.View{Size: browser.Desktop})
	page.WaitForText("everyonesfriend.eth holds 34 accounts")
	page.WaitForText("0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd (18)")
	page.Close()
}
