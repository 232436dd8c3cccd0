package profile

import (
	"fmt"
	"strconv"

	qr "github.com/piglig/go-qr"
)

// quietZone is the light space around a QR code, in modules (ISO/IEC 18004, 9.1).
const quietZone = 4

// qrPicture returns text as a QR code of level M or higher: an SVG, black on white, with the quiet
// zone. Its path has one run of dark modules after the other, row by row. client/qr.js makes the
// same bytes.
func qrPicture(text string) ([]byte, error) {
	code, err := qr.EncodeBinary([]byte(text), qr.Medium)
	if err != nil {
		return nil, fmt.Errorf("make a QR code of %d bytes: %w", len(text), err)
	}
	size := code.GetSize()
	whole := strconv.Itoa(size + 2*quietZone)
	b := []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ` + whole + " " + whole + `" shape-rendering="crispEdges">` +
		`<path fill="#fff" d="M0 0h` + whole + "v" + whole + `H0z"/><path d="`)
	for y := range size {
		for x := 0; x < size; x++ {
			begin := x
			for x < size && code.GetModule(x, y) {
				x++
			}
			if x > begin {
				b = fmt.Appendf(b, "M%d %dh%dv1h-%[3]dz", begin+quietZone, y+quietZone, x-begin)
			}
		}
	}
	return append(b, `"/></svg>`...), nil
}
