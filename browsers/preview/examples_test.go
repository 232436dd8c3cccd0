// Package preview tests pages of followpress other than the explorer in a browser: pages, examples,
// and pictures.
package preview

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// start starts the preview of the demo, and returns its URL.
func start(t *testing.T) (base string) {
	servers.Wanted(t)
	program := filepath.Join(t.TempDir(), "followpress")
	if text, err := exec.Command("go", "build", "-C", "../..", "-o", program, "./cmd/followpress").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	address := servers.FreeAddress(t)
	servers.Program(t, address, program, "preview", "--addr", address)
	return "http://" + address
}

// The complete pages that docs/client.md names work in a browser, over the preview.
func TestExamplePages(t *testing.T) {
	base := start(t)
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
