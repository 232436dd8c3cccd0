package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/klauspost/compress/flate"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/followpress/followpress/site"
)

// Sizes of a card in pixels: half of the largest size that services show, because twice the size
// costs four times as much.
const (
	cardWidth, cardHeight = 600, 315
	cardEdge              = 36
	cardFace              = 110 // diameter of the circle around the letter
	cardLeft              = cardEdge + cardFace + 24
	cardSecond, cardRoom  = cardEdge + 270, 250 // position of the second count, and width of each count
	cardLetters           = 200                 // maximum letters of a text to examine; fewer fit
)

// Color numbers of a card. There are so few that a pixel takes half a byte; each ink has steps from
// the background.
const (
	cardGround  = iota
	cardAccent  // color of the site
	cardText    // three steps
	cardQuiet   = cardText + cardSteps
	cardColour  = cardQuiet + cardSteps  // color of the account
	cardInitial = cardColour + cardSteps // white on the account's color
	cardColours = cardInitial + cardSteps
	cardSteps   = 3
)

// A glyph is a letter as its inked pixels.
type glyph struct {
	dots    []dot
	advance int
	missing bool // missing from the font, which shows a box instead
}

// A dot is a pixel of a glyph, relative to the point where the glyph is drawn.
type dot struct {
	x, y int16
	step uint8 // step of an ink, from 1
}

// A cardFont draws the letters of a font in one size, and caches them.
type cardFont struct {
	mu     sync.Mutex // guards face
	font   *opentype.Font
	face   font.Face
	glyphs sync.Map // by letter; as many as the font has, and one for all others
}

func newCardFont(ttf []byte, size float64) *cardFont {
	parsed, err := opentype.Parse(ttf)
	if err == nil {
		var face font.Face
		if face, err = opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72}); err == nil {
			return &cardFont{font: parsed, face: face}
		}
	}
	panic("render: " + err.Error()) // the font is part of the program
}

const box = '\uffff' // not a letter: shows the font's glyph for missing letters

func (f *cardFont) glyph(letter rune) *glyph {
	if known, ok := f.glyphs.Load(letter); ok {
		return known.(*glyph)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i, err := f.font.GlyphIndex(nil, letter); i == 0 || err != nil {
		letter = box
		if known, ok := f.glyphs.Load(box); ok {
			return known.(*glyph)
		}
	}
	at, mask, point, advance, _ := f.face.Glyph(fixed.P(0, 0), letter)
	g := &glyph{advance: advance.Round(), missing: letter == box}
	for y := range at.Dy() {
		for x := range at.Dx() {
			_, _, _, alpha := mask.At(point.X+x, point.Y+y).RGBA()
			if step := uint8((alpha*cardSteps + 0x7fff) / 0xffff); step > 0 {
				g.dots = append(g.dots, dot{int16(at.Min.X + x), int16(at.Min.Y + y), step})
			}
		}
	}
	f.glyphs.Store(letter, g)
	return g
}

// cardFonts returns the fonts of cards, made once.
var cardFonts = sync.OnceValue(func() (fonts struct{ initial, name, small, count, text *cardFont }) {
	fonts.initial, fonts.name, fonts.small = newCardFont(gobold.TTF, 52), newCardFont(gobold.TTF, 32), newCardFont(gobold.TTF, 22)
	fonts.count, fonts.text = newCardFont(gobold.TTF, 36), newCardFont(goregular.TTF, 16)
	return fonts
})

// A cardDrawer draws cards, sequentially. Its pixels are in the form that PNG compresses: half a
// byte each, in rows that begin with a filter number, 0 for none. image/png would convert from a
// byte per pixel, which takes several times as long as drawing and compressing.
type cardDrawer struct {
	cardPixels
	compressed bytes.Buffer
	deflate    *flate.Writer
}

// cardPixels are the pixels of a card with the two sums of their Adler-32 checksum (RFC 1950), the
// second of which adds up the first after each byte. Few pixels differ from the background, so
// updating the sums costs less than adding all bytes.
type cardPixels struct {
	bytes     [cardHeight * cardRow]byte
	sum, sums int
}

const cardRow = 1 + cardWidth/2

var cardDrawers = sync.Pool{New: func() any {
	d := &cardDrawer{}
	var err error
	if d.deflate, err = flate.NewWriter(&d.compressed, flate.BestSpeed); err != nil {
		panic("render: " + err.Error()) // the level exists
	}
	return d
}}

func (d *cardPixels) set(x, y int, colour uint8) {
	if x < 0 || x >= cardWidth || y < 0 || y >= cardHeight {
		return
	}
	at, shift := y*cardRow+1+x/2, 4*(1-x%2)
	before := d.bytes[at]
	after := before&^(0xf<<shift) | colour<<shift
	d.bytes[at] = after
	change := int(after) - int(before)
	d.sum += change
	d.sums += change * (len(d.bytes) - at)
}

// cardBlank is the common part of all cards.
var cardBlank = sync.OnceValue(func() *cardPixels {
	d, fonts := &cardPixels{sum: 1}, cardFonts()
	d.sums = len(d.bytes)
	for y := cardHeight - 6; y < cardHeight; y++ {
		for x := range cardWidth {
			d.set(x, y, cardAccent)
		}
	}
	d.circle()
	d.write(fonts.text, "following", cardSecond, 246, cardRoom, cardQuiet)
	return d
})

// appendPNG appends the picture.
func (d *cardDrawer) appendPNG(b []byte, palette []byte) []byte {
	const largestPrime = 65521 // below 1<<16
	d.compressed.Reset()
	d.compressed.WriteString("\x78\x01") // zlib (RFC 1950), compressed for speed
	d.deflate.Reset(&d.compressed)
	_, err := d.deflate.Write(d.bytes[:])
	if err = errors.Join(err, d.deflate.Close()); err != nil {
		panic("render: " + err.Error()) // a buffer never fails
	}
	checksum := d.compressed.AvailableBuffer()
	checksum = binary.BigEndian.AppendUint16(checksum, uint16(d.sums%largestPrime))
	d.compressed.Write(binary.BigEndian.AppendUint16(checksum, uint16(d.sum%largestPrime)))
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, cardWidth), cardHeight)
	b = append(b, "\x89PNG\r\n\x1a\n"...)
	b = appendChunk(b, "IHDR", append(header, 4, 3, 0, 0, 0)) // 4 bits, a palette
	b = appendChunk(b, "PLTE", palette)
	b = appendChunk(b, "IDAT", d.compressed.Bytes())
	return appendChunk(b, "IEND", nil)
}

func appendChunk(b []byte, kind string, data []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	start := len(b)
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[start:]))
}

// A card is the content of an account's picture.
type card struct {
	name, foot           string // foot names the site
	address              site.Address
	followers, following uint32
	accent               string // #rrggbb
}

// appendCard appends the picture of an account as PNG. Equal cards give equal bytes, with the same
// library.
func appendCard(b []byte, c card) []byte {
	d := cardDrawers.Get().(*cardDrawer)
	defer cardDrawers.Put(d)
	d.cardPixels = *cardBlank()
	fonts := cardFonts()
	address := checksummed(c.address)
	name := drawable(fonts.name, c.name)
	if name == "" {
		name = address[:6] + "…" + address[len(address)-4:]
	}
	initial := firstLetter(fonts.initial, name)
	d.write(fonts.initial, string(initial), cardEdge+(cardFace-fonts.initial.glyph(initial).advance)/2, cardEdge+cardFace/2+19, cardFace, cardInitial)
	big := fonts.name
	if widthIn(big, name) > cardWidth-cardEdge-cardLeft {
		big = fonts.small
	}
	d.write(big, name, cardLeft, 90, cardWidth-cardEdge-cardLeft, cardText)
	d.write(fonts.text, address[:22]+"…"+address[len(address)-10:], cardLeft, 122, cardWidth-cardEdge-cardLeft, cardQuiet)
	d.write(fonts.count, grouped(c.followers), cardEdge, 222, cardRoom, cardText)
	d.write(fonts.text, followersWord(c.followers), cardEdge, 246, cardRoom, cardQuiet)
	d.write(fonts.count, grouped(c.following), cardSecond, 222, cardRoom, cardText)
	d.write(fonts.text, drawable(fonts.text, c.foot), cardEdge, 288, cardWidth-2*cardEdge, cardQuiet)
	return d.appendPNG(b, c.palette())
}

// drawable returns a text in the letters of a font: without combining marks, which the font lacks
// and which could be any number, with a box for each missing letter, and "" if most letters are
// missing.
func drawable(f *cardFont, text string) string {
	var b strings.Builder
	letters, missing := 0, 0
	for _, letter := range text {
		if letters == cardLetters {
			break
		}
		if unicode.In(letter, unicode.M, unicode.C) {
			continue
		}
		if unicode.IsSpace(letter) {
			letter = ' '
		}
		letters++
		if f.glyph(letter).missing {
			letter = box
			missing++
		}
		b.WriteRune(letter)
	}
	if 2*missing >= letters {
		return ""
	}
	return b.String()
}

// firstLetter returns the first letter or digit of a text, as a capital.
func firstLetter(f *cardFont, text string) rune {
	for _, letter := range strings.TrimPrefix(text, "0x") {
		if capital := unicode.ToUpper(letter); (unicode.IsLetter(letter) || unicode.IsDigit(letter)) && !f.glyph(capital).missing {
			return capital
		}
	}
	return '@'
}

func widthIn(f *cardFont, text string) (width int) {
	for _, letter := range text {
		width += f.glyph(letter).advance
	}
	return width
}

// write draws a text to the right of a point. A text that is too wide ends in an ellipsis.
func (d *cardPixels) write(f *cardFont, text string, x, y, most int, ink uint8) {
	end := x + most
	if widthIn(f, text) > most {
		end -= f.glyph('…').advance
	}
	for _, letter := range text {
		g := f.glyph(letter)
		if x+g.advance > end {
			d.draw(f.glyph('…'), x, y, ink)
			return
		}
		d.draw(g, x, y, ink)
		x += g.advance
	}
}

func (d *cardPixels) draw(g *glyph, x, y int, ink uint8) {
	for _, dot := range g.dots {
		d.set(x+int(dot.x), y+int(dot.y), ink+dot.step-1)
	}
}

// circle draws the background of the letter.
func (d *cardPixels) circle() {
	const r = cardFace / 2
	for y := range cardFace {
		for x := range cardFace {
			// In half pixels, from the center of the circle to the center of the pixel.
			dx, dy := 2*x+1-2*r, 2*y+1-2*r
			if over := 4*r*r - dx*dx - dy*dy; over > 0 {
				step := min(cardSteps-1, over/(2*r)) // the edge is a pixel wide
				d.set(cardEdge+x, cardEdge+y, cardColour+uint8(step))
			}
		}
	}
}

// palette returns the colors of a card, three bytes each.
func (c card) palette() []byte {
	white, text, quiet, own := rgb{0xff, 0xff, 0xff}, rgbOf("#17222e"), rgbOf("#51606f"), hueOf(c.address)
	accent := rgbOf(c.accent)
	p := append(append(make([]byte, 0, 3*cardColours), white[:]...), accent[:]...)
	for _, ink := range [...][2]rgb{{white, text}, {white, quiet}, {white, own}, {own, white}} {
		for step := 1; step <= cardSteps; step++ {
			for i := range ink[0] {
				p = append(p, uint8((int(ink[0][i])*(cardSteps-step)+int(ink[1][i])*step)/cardSteps))
			}
		}
	}
	return p
}

type rgb [3]uint8

func rgbOf(text string) rgb {
	n, err := strconv.ParseUint(text[1:], 16, 32)
	if err != nil {
		return rgb{} // impossible: site.Config checks colors
	}
	return rgb{uint8(n >> 16), uint8(n >> 8), uint8(n)}
}

// hueOf returns the color that the explorer gives an account without a picture, hsl(hue 45% 30%),
// from digits of its address.
func hueOf(address site.Address) rgb {
	hue := (int(address[0])<<16 | int(address[1])<<8 | int(address[2])) % 360
	// Lightness 30 % and saturation 45 %: channels from 42 to 111 of 255.
	channel := func(at int) uint8 {
		at = (hue + at) % 360
		switch {
		case at < 60:
			return uint8(42 + 69*at/60)
		case at < 180:
			return 111
		case at < 240:
			return uint8(42 + 69*(240-at)/60)
		}
		return 42
	}
	return rgb{channel(120), channel(0), channel(240)}
}
