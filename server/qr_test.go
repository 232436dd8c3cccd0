package server_test

import (
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"regexp"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A reader of QR codes finds the address of the person's page in the picture of each user and list, by any way
// to name it, and of an address that the graph does not know.
func TestQRCodesAreRead(t *testing.T) {
	t.Parallel()
	snapshot := afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.ConformanceEFP()}, "snapshot")
	const bob, unknown = "0x0202020202020202020202020202020202020202", "0x0000000000000000000000000000000000abcdef"
	long := "https://people.example/" + strings.Repeat("é/", 300) + site.AddressPlaceholder
	for _, config := range []site.Config{
		{API: site.APIEFP}, {API: site.APIEFP, Names: site.NamesLookup, ProfileURL: "https://people.example/{address}/?a=b&c={address}#x"},
		{API: site.APIEFP, ProfileURL: long},
	} {
		files, _, err := generator.ToMemory(t.Context(), snapshot, generator.Options{NoSync: true, Config: config})
		if err != nil {
			t.Fatal(err)
		}
		handler := newHandler(t, storage.NewFolder(files), server.Options{})
		for path, address := range map[string]string{
			"users/bob.eth/qr": bob, "users/BOB.eth/qr?x=1": bob, "users/" + bob + "/qr": bob, "users/0X" + bob[2:] + "/qr": bob,
			"users/" + strings.ToUpper(unknown) + "/qr": unknown, "lists/1/qr": "0x0101010101010101010101010101010101010101",
		} {
			got := ask(handler, "/api/v1/"+path)
			if contentType := got.Header().Get("Content-Type"); got.Code != 200 || contentType != "image/svg+xml" {
				t.Fatalf("%s: got %d, %s, want a picture: %s", path, got.Code, contentType, got.Body)
			}
			template := config.ProfileURL
			if template == "" {
				template = "https://efp.app/{address}"
			}
			want := strings.ReplaceAll(template, site.AddressPlaceholder, address)
			if text := readQR(t, got.Body.Bytes()); text != want {
				t.Errorf("%s: got a code of %q, want %q", path, text, want)
			}
		}
		for path, status := range map[string]int{"users/nobody.eth/qr": 404, "lists/424242/qr": 404, "lists/01/qr": 400, "users/100%25/qr": 404} {
			if got := ask(handler, "/api/v1/"+path); got.Code != status || got.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: got %d, %s, want the problem %d", path, got.Code, got.Header().Get("Content-Type"), status)
			}
		}
	}
}

var run = regexp.MustCompile(`M(\d+) (\d+)h(\d+)v(\d+)(?:h-\d+|H0)z`)

// readQR draws a picture of rectangles, five pixels a module, and reads the code in it.
func readQR(t *testing.T, svg []byte) string {
	t.Helper()
	var picture struct {
		ViewBox string `xml:"viewBox,attr"`
		Paths   []struct {
			Fill string `xml:"fill,attr"`
			D    string `xml:"d,attr"`
		} `xml:"path"`
	}
	if err := xml.Unmarshal(svg, &picture); err != nil {
		t.Fatal(err)
	}
	var width, height int
	if _, err := fmt.Sscanf(picture.ViewBox, "0 0 %d %d", &width, &height); err != nil || width != height {
		t.Fatalf("viewBox: got %q, %v, want a square", picture.ViewBox, err)
	}
	const scale = 5
	canvas := image.NewGray(image.Rect(0, 0, scale*width, scale*height))
	draw.Draw(canvas, canvas.Rect, image.NewUniform(color.Gray{128}), image.Point{}, draw.Src)
	for _, path := range picture.Paths {
		shade := map[string]color.Gray{"#fff": {255}, "": {0}}[path.Fill]
		if rest := run.ReplaceAllString(path.D, ""); rest != "" {
			t.Fatalf("path: got %.100q besides rectangles", rest)
		}
		for _, match := range run.FindAllString(path.D, -1) {
			var x, y, w, h int
			if _, err := fmt.Sscanf(match, "M%d %dh%dv%d", &x, &y, &w, &h); err != nil {
				t.Fatal(err)
			}
			draw.Draw(canvas, image.Rect(scale*x, scale*y, scale*(x+w), scale*(y+h)), image.NewUniform(shade), image.Point{}, draw.Src)
		}
	}
	for i := range width { // the quiet zone is four modules of light
		for n := range 4 {
			for _, at := range [][2]int{{i, n}, {n, i}, {i, height - 1 - n}, {width - 1 - n, i}} {
				if got := canvas.GrayAt(scale*at[0]+2, scale*at[1]+2).Y; got != 255 {
					t.Fatalf("module %v: got %d, want light", at, got)
				}
			}
		}
	}
	bits, err := gozxing.NewBinaryBitmapFromImage(canvas)
	if err != nil {
		t.Fatal(err)
	}
	result, err := qrcode.NewQRCodeReader().Decode(bits, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_CHARACTER_SET: "UTF-8"})
	if err != nil {
		t.Fatalf("read the code: %v", err)
	}
	return result.GetText()
}
