package lines

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// compressed is text as Compress compresses it, written row by row.
func compressed(t *testing.T, text string) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := Compress(&file)
	if err != nil {
		t.Fatal(err)
	}
	for row := range strings.Lines(text) {
		if _, err := io.WriteString(w, row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// smallFrames unpacks the small frames at the beginning of a file one by one.
func smallFrames(t *testing.T, file []byte) (texts []string) {
	t.Helper()
	f := &frameReader{frames: make(chan *frame, 100), done: make(chan struct{})}
	var err error
	if f.decoder, err = zstd.NewReader(nil); err != nil {
		t.Fatal(err)
	}
	f.find(bufio.NewReader(bytes.NewReader(file)))
	for next := range f.frames {
		if next.rest == nil {
			<-next.ready
			texts = append(texts, string(next.unpacked))
		}
	}
	return texts
}

// TestFramesOfRows: a written frame ends at the end of a row, and has 4 MiB of rows.
func TestFramesOfRows(t *testing.T) {
	var text strings.Builder
	for i := 0; text.Len() < 3*frameBytes; i++ {
		fmt.Fprintf(&text, "{\"row\":%d,\"of\":\"%s\"}\n", i, strings.Repeat("x", i%5000))
	}
	texts := smallFrames(t, compressed(t, text.String()))
	if len(texts) < 3 || strings.Join(texts, "") != text.String() {
		t.Fatalf("got %d frames with %d bytes, want at least 3 with %d", len(texts), len(strings.Join(texts, "")), text.Len())
	}
	for i, text := range texts {
		if !strings.HasSuffix(text, "}\n") || i < len(texts)-1 && (len(text) < frameBytes || len(text) > frameBytes+5100) {
			t.Errorf("frame %d has %d bytes, and ends with %q", i, len(text), text[len(text)-10:])
		}
	}
}

// randomFile returns a file of zstd: of frames that a Writer makes, and of others; it may be damaged, or cut off.
func randomFile(t *testing.T, r *rand.Rand) (file []byte) {
	t.Helper()
	whole, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(r.IntN(2) == 0))
	if err != nil {
		t.Fatal(err)
	}
	for range 1 + r.IntN(12) {
		text := make([]byte, r.IntN(1<<uint(r.IntN(21))))
		for i := range text {
			text[i] = byte(r.IntN(1 + i%50))
		}
		switch r.IntN(12) {
		case 0: // a frame with its size in the header
			file = whole.EncodeAll(text, file)
		case 1:
			file = append(file, "\x50\x2a\x4d\x18\x03\x00\x00\x00abc"...) // skippable
		case 2: // too large to be small
			file = append(file, compressedAtOnce(t, bytes.Repeat(text[:len(text)/2], 20))...)
		case 3:
			file = append(file, compressedAtOnce(t, bytes.Repeat([]byte{'x'}, r.IntN(3*frameBytes)))...)
		case 4:
			file = append(file, compressed(t, "")...)
		default:
			file = append(file, compressedAtOnce(t, text)...)
		}
	}
	switch r.IntN(9) {
	case 0:
		file = file[:r.IntN(len(file)+1)]
	case 1:
		file[r.IntN(len(file))] ^= 1 << r.IntN(8)
	case 2:
		file = append(file, "more"[:1+r.IntN(4)]...)
	}
	return file
}

// atOnce is one for all, because it takes megabytes. Tests that use it run one after the other.
var atOnce = sync.OnceValues(func() (*zstd.Encoder, error) { return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)) })

func compressedAtOnce(t *testing.T, text []byte) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := atOnce()
	if err != nil {
		t.Fatal(err)
	}
	w.Reset(&file)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestFramesEqualWhole: reading by frames gives the same bytes and the same error as reading sequentially.
func TestFramesEqualWhole(t *testing.T) {
	read := func(file []byte, open func(io.Reader) (io.ReadCloser, error)) (text []byte, said string) {
		rows, err := open(bytes.NewReader(file))
		if err == nil {
			text, err = io.ReadAll(rows)
			if closed := rows.Close(); err == nil {
				err = closed
			}
		}
		if err != nil {
			said = err.Error()
		}
		return text, said
	}
	failed, byFrames := 0, 0
	const files = 150
	for seed := range uint64(files) {
		r := rand.New(rand.NewPCG(seed, 27))
		file := randomFile(t, r)
		want, wantError := read(file, openZstd)
		got, gotError := read(file, OpenFrames(2+r.IntN(7)))
		if !bytes.Equal(got, want) || gotError != wantError {
			t.Fatalf("seed %d: got %d bytes and the error %q, want %d and %q", seed, len(got), gotError, len(want), wantError)
		}
		if wantError != "" {
			failed++
		}
		if len(file) > 0 && len(smallFrames(t, file)) > 1 {
			byFrames++
		}
	}
	if failed < files/10 || failed > 2*files/3 || byFrames < files/2 {
		t.Errorf("%d of %d files were damaged, and %d had several small frames: want some of each", failed, files, byFrames)
	}
}

// TestFramesThatAreNotSmall: a frame that is not small is read sequentially, before more of it is in memory.
func TestFramesThatAreNotSmall(t *testing.T) {
	const magic = "\x28\xb5\x2f\xfd"
	block := func(last, kind, size int) string {
		header := last | kind<<1 | size<<3
		return string([]byte{byte(header), byte(header >> 8), byte(header >> 16)})
	}
	rows := block(1, 0, 4) + "row\n"
	for name, test := range map[string]struct {
		frame string
		small bool
		held  int // bytes at most
	}{
		"a small one":                {magic + "\x00\x70" + rows, true, 13},
		"a dictionary":               {magic + "\x01\x70\x07" + rows, false, 0},
		"a window of 16 MiB":         {magic + "\x00\x70" + rows, true, 13},
		"a window of 18 MiB":         {magic + "\x00\x71" + rows, false, 0},
		"a skippable one":            {"\x50\x2a\x4d\x18\x03\x00\x00\x00abc", false, 0},
		"a block of 128 KiB":         {magic + "\x00\x70" + block(1, 0, 128<<10) + strings.Repeat("x", 128<<10), true, 9 + 128<<10},
		"a block of a byte more":     {magic + "\x00\x70" + block(1, 0, 128<<10+1) + strings.Repeat("x", 128<<10+1), false, 9},
		"the largest block there is": {magic + "\x00\x70" + block(1, 0, 1<<21-1) + strings.Repeat("x", 1<<21-1), false, 9},
		"a block of no kind":         {magic + "\x00\x70" + block(1, 3, 4) + "row\n", false, 9},
	} {
		var f frame
		if small := f.read(bufio.NewReader(strings.NewReader(test.frame))); small != test.small || len(f.packed) > test.held {
			t.Errorf("%s: got %t and %d bytes in memory, want %t and at most %d", name, small, len(f.packed), test.small, test.held)
		}
	}
}

// TestFramesLeftAlone: a reader that stops early leaves no goroutine behind, and may close at any time.
func TestFramesLeftAlone(t *testing.T) {
	file := bytes.Repeat(compressedAtOnce(t, bytes.Repeat([]byte("row\n"), 100_000)), 40)
	for n := range 40 {
		rows, err := OpenFrames(1 + n%4)(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, rows, int64(n)*100_001); err != nil {
			t.Fatal(err)
		}
		if err := rows.Close(); err != nil { // Close waits for all goroutines
			t.Fatal(err)
		}
	}
}
