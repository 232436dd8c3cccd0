package rawjson_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	gojson "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/rawjson"
)

func TestAppendString(t *testing.T) {
	for text, want := range texts {
		if got := string(rawjson.AppendString(nil, text)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
		checkAppendString(t, text)
	}
}

// texts are texts and their JSON.
var texts = map[string]string{
	"":                         `""`,
	"alice.eth":                `"alice.eth"`,
	`say "hi" \o/`:             `"say \"hi\" \\o/"`,
	"<b>&amp;</b>":             `"<b>&amp;</b>"`,
	"\b\f\n\r\t":               `"\b\f\n\r\t"`,
	"\x00\x01\x1f\x7f":         `"\u0000\u0001\u001f` + "\x7f" + `"`,
	"é日本🦊\uFFFD":               `"é日本🦊` + "\uFFFD" + `"`,
	"\u2027\u2028\u2029\u202A": `"` + "\u2027" + `\u2028\u2029` + "\u202A" + `"`,
	"\xff":                     `"\ufffd"`,
	"a\xc3":                    `"a\ufffd"`,
	"\xed\xa0\x80b":            `"\ufffd\ufffd\ufffdb"`,
}

func TestAppendStringIsGoJSON(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := slices.Sorted(maps.Keys(texts))
	for range 2000 {
		var text strings.Builder
		for range random.IntN(8) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		checkAppendString(t, text.String())
		noise := make([]byte, random.IntN(24))
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		checkAppendString(t, string(noise))
	}
	for r := rune(0); r < 0x3000; r++ {
		checkAppendString(t, string(r))
	}
	for b := range 256 {
		checkAppendString(t, "a"+string([]byte{byte(b)})+"b")
		for at := range 20 { // whichever place it has in a word
			text := bytes.Repeat([]byte("]"), 20)
			text[at] = byte(b)
			checkAppendString(t, string(text))
		}
	}
}

func checkAppendString(t testing.TB, text string) {
	t.Helper()
	got := string(rawjson.AppendString([]byte("x"), text))
	if want, err := gojson.MarshalWithOption(text, gojson.DisableHTMLEscape()); err != nil || got != "x"+string(want) {
		t.Errorf("AppendString(%q): got %s, %v, want %s", text, got[1:], err, want)
	}
	var back string
	if err := json.Unmarshal([]byte(got[1:]), &back); err != nil || utf8.ValidString(text) && back != text {
		t.Errorf("AppendString(%q), read again: got %q, %v, want the same", text, back, err)
	}
}

func FuzzAppendString(f *testing.F) {
	for text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkAppendString(t, text) })
}

// BenchmarkAppendString compares the encoder with go-json's on a text of a profile.
func BenchmarkAppendString(b *testing.B) {
	const text = `https://img.example/93ef6d42.png, likes "dusk" & <kelp>`
	b.Run("own", func(b *testing.B) {
		var buf []byte
		for b.Loop() {
			buf = rawjson.AppendString(buf[:0], text)
		}
	})
	b.Run("go-json", func(b *testing.B) {
		for b.Loop() {
			if _, err := gojson.MarshalWithOption(text, gojson.DisableHTMLEscape()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// FuzzSkip: Skip ends where a value of valid JSON ends, and does not go beyond the end of other texts.
func FuzzSkip(f *testing.F) {
	for _, text := range []string{`{"a\\"":[1,{"b":"]"}],"c":null}`, ` [ ] `, `-1.5e3`, `"\u0041\\"`, `true`, ``, `}`, `,`, `[[`, `"`, `"\`, `{"a":1]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, after := range []string{"", " ", ",1", "}"} {
			var s rawjson.Scanner
			s.Reset(append(bytes.Clone(text), after...))
			if got := s.Skip(); json.Valid(text) && !bytes.Equal(got, bytes.TrimSpace(text)) {
				t.Errorf("%q before %q: got %q", text, after, got)
			}
		}
	})
}
