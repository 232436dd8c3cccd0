package browser

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/page"
)

// Screenshot returns a picture of the window.
func (p *Page) Screenshot() image.Image {
	p.t.Helper()
	data := command(p, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}).Data
	got, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		p.t.Fatalf("screenshot: %v", err)
	}
	return got
}

// Golden compares a picture of the window with the one in a folder, within the tolerance of
// Compare. It always keeps the picture in Artefacts. With update it writes the picture into the
// folder.
func (p *Page) Golden(folder, name string, update bool) {
	p.t.Helper()
	p.Settle()
	got := p.Screenshot()
	if err := write(filepath.Join(Artefacts(), name+".png"), got); err != nil {
		p.t.Fatalf("keep a screenshot: %v", err)
	}
	file := filepath.Join(folder, name+".png")
	want, err := read(file)
	switch {
	case update && (err != nil || Compare(got, want) != nil):
		if err := write(file, got); err != nil {
			p.t.Fatalf("update a screenshot: %v", err)
		}
	case err != nil:
		p.t.Errorf("%v: -update writes it", err)
	default:
		if err := Compare(got, want); err != nil {
			different := filepath.Join(Artefacts(), name+"-different.png")
			if err := write(different, marked(got, want)); err != nil {
				p.t.Errorf("keep a screenshot: %v", err)
			}
			p.t.Errorf("%s: %v; see %s. -update writes it again", file, err, different)
		}
	}
}

// Artefacts returns the folder for pictures to look at: SCREENSHOTS, or .tools/screenshots at the
// top of the repository.
func Artefacts() string {
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		return dir
	}
	return filepath.Join(here(), "../../../.tools/screenshots")
}

// Tolerances of Compare. Another version of a font or of Chromium draws the edges of letters
// differently, or moves a line of text by less than a pixel. Then the mean of a cell hardly
// changes: by 9 of 255 for the darkest text without hinting. The mean of a tile, with hundreds of
// letters, changes by less than 1. A missing word, or one in another color, changes its cells by 20
// and more; another background changes its tiles.
const (
	cell     = 8     // pixels in each direction
	tile     = 64    // pixels in each direction
	cellMost = 16    // tolerated difference of a cell's mean in a channel, of 255
	tileMost = 3     // tolerated difference of a tile's mean
	cellsOff = 0.001 // share of cells that may differ by more: the caret, a single glyph
)

// Compare returns an error that describes how a picture differs from the wanted one. It returns nil
// if only the rendering differs, as between versions of a browser. It does not read text: another
// word of the same length may pass.
func Compare(got, want image.Image) error {
	if got.Bounds().Size() != want.Bounds().Size() {
		return fmt.Errorf("got a picture of %v pixels, want %v", got.Bounds().Size(), want.Bounds().Size())
	}
	a, b := plain(got), plain(want)
	cells, all := differing(a, b, cell, cellMost)
	if most := int(cellsOff * float64(all)); len(cells) > most {
		return fmt.Errorf("got %d of %d cells of another colour, the first at %v, want at most %d", len(cells), all, cells[0].Min, most)
	}
	if tiles, all := differing(a, b, tile, tileMost); len(tiles) > 0 {
		return fmt.Errorf("got %d of %d tiles of another colour, the first at %v, want none", len(tiles), all, tiles[0].Min)
	}
	return nil
}

// differing cuts two pictures of one size into squares. It returns the squares whose means differ
// by more than most in a channel, and the number of all squares.
func differing(got, want *image.RGBA, side int, most float64) (squares []image.Rectangle, all int) {
	for y := 0; y < got.Rect.Max.Y; y += side {
		for x := 0; x < got.Rect.Max.X; x += side {
			all++
			square := image.Rect(x, y, x+side, y+side).Intersect(got.Rect)
			a, b := mean(got, square), mean(want, square)
			for channel := range a {
				if d := a[channel] - b[channel]; d > most || -d > most {
					squares = append(squares, square)
					break
				}
			}
		}
	}
	return squares, all
}

// mean returns the mean of each channel, of 255.
func mean(picture *image.RGBA, part image.Rectangle) (m [3]float64) {
	for y := part.Min.Y; y < part.Max.Y; y++ {
		row := picture.Pix[picture.PixOffset(part.Min.X, y):picture.PixOffset(part.Max.X, y)]
		for i := 0; i < len(row); i += 4 {
			m[0], m[1], m[2] = m[0]+float64(row[i]), m[1]+float64(row[i+1]), m[2]+float64(row[i+2])
		}
	}
	for channel := range m {
		m[channel] /= float64(part.Dx() * part.Dy())
	}
	return m
}

// plain returns a copy of a picture with direct access to pixels, from (0, 0).
func plain(picture image.Image) *image.RGBA {
	copied := image.NewRGBA(image.Rectangle{Max: picture.Bounds().Size()})
	draw.Draw(copied, copied.Rect, picture, picture.Bounds().Min, draw.Src)
	return copied
}

// marked returns a pale copy of a picture with the differences in red.
func marked(got, want image.Image) image.Image {
	out := plain(got)
	for i := 0; i < len(out.Pix); i += 4 {
		grey := 128 + out.Pix[i+1]/2
		out.Pix[i], out.Pix[i+1], out.Pix[i+2] = grey, grey, grey
	}
	if got.Bounds().Size() != want.Bounds().Size() {
		return out
	}
	paint := func(squares []image.Rectangle, every int) {
		for _, square := range squares {
			for y := square.Min.Y; y < square.Max.Y; y++ {
				for x := square.Min.X; x < square.Max.X; x++ {
					if (x+y)%every == 0 {
						out.Set(x, y, color.RGBA{220, 0, 0, 255})
					}
				}
			}
		}
	}
	tiles, _ := differing(plain(got), plain(want), tile, tileMost)
	cells, _ := differing(plain(got), plain(want), cell, cellMost)
	paint(tiles, 8)
	paint(cells, 2)
	return out
}

func read(file string) (image.Image, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no picture to compare with", file)
	} else if err != nil {
		return nil, err
	}
	return png.Decode(bytes.NewReader(data))
}

func write(file string, picture image.Image) error {
	var data bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&data, picture); err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, data.Bytes(), 0o644))
}
