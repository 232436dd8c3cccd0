package preview

import (
	"image"
	"image/color"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A QR reader finds the account's page in the QR codes of a user and of a list, as a browser draws
// them, with a quiet zone of four modules.
func TestQRCodesAreRead(t *testing.T) {
	servers.Wanted(t)
	chromium := browser.Start(t, browser.Options{Alone: true})
	snapshot := afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.ConformanceEFP()}, "snapshot")
	const bob, unknown = "0x0202020202020202020202020202020202020202", "0x0000000000000000000000000000000000abcdef"
	for _, template := range []string{
		"", "https://people.example/{address}/?a=b&c={address}#x",
		"https://people.example/" + strings.Repeat("é/", 300) + "{address}",
	} {
		files, _, err := generator.ToMemory(t.Context(), snapshot, generator.Options{NoSync: true, Config: site.Config{API: site.APIEFP, ProfileURL: template}})
		if err != nil {
			t.Fatal(err)
		}
		handler, err := server.New(t.Context(), storage.NewFolder(files), server.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.Handle("/", handler)
		mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }) // Chromium requests it
		host := httptest.NewServer(mux)
		t.Cleanup(host.Close)
		if template == "" {
			template = "https://efp.app/{address}"
		}
		for path, address := range map[string]string{
			"users/bob.eth/qr": bob, "users/" + unknown + "/qr": unknown, "lists/1/qr": "0x0101010101010101010101010101010101010101",
		} {
			page := chromium.Open(t, host.URL+"/api/v1/"+path, browser.View{Size: browser.Size{Width: 1000, Height: 1000}})
			across := browser.Eval[int](page, "document.documentElement.viewBox.baseVal.width")
			picture := page.Screenshot()
			page.Close()
			for i := range across {
				for n := range 4 {
					for _, at := range [][2]int{{i, n}, {n, i}, {i, across - 1 - n}, {across - 1 - n, i}} {
						x, y := (2*at[0]+1)*500/across, (2*at[1]+1)*500/across
						if got := color.GrayModel.Convert(picture.At(x, y)).(color.Gray).Y; got != 255 {
							t.Fatalf("%s: module %v: got %d, want light", path, at, got)
						}
					}
				}
			}
			want := strings.ReplaceAll(template, "{address}", address)
			if got := readQR(t, picture); got != want {
				t.Errorf("%s: got a code of %q, want %q", path, got, want)
			}
		}
	}
}

func readQR(t *testing.T, picture image.Image) string {
	t.Helper()
	bits, err := gozxing.NewBinaryBitmapFromImage(picture)
	if err != nil {
		t.Fatal(err)
	}
	result, err := qrcode.NewQRCodeReader().Decode(bits, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_CHARACTER_SET: "UTF-8"})
	if err != nil {
		t.Fatalf("read the code: %v", err)
	}
	return result.GetText()
}
