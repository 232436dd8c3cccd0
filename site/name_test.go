package site_test

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

func TestNormalizeName(t *testing.T) {
	for text, want := range map[string]string{
		"alice.eth":                    "alice.eth",
		"Alice.ETH":                    "alice.eth",
		"a":                            "a",
		"...":                          "...",
		"..a":                          "..a",
		".well-known":                  ".well-known",
		"_site":                        "_site",
		"50$off+1&2=3;~*":              "50$off+1&2=3;~*",
		`"quoted",{}:[]`:               `"quoted",{}:[]`,
		"cafe\u0301.eth":               "café.eth", // NFD
		"CAFÉ.eth":                     "café.eth",
		"CAFE\u0301.eth":               "café.eth",
		"КОТ.eth":                      "кот.eth",
		"ΣΑΣ":                          "σασ", // letter by letter: no final sigma
		"\u212Aelvin":                  "kelvin",
		"\u212Bngstr\u00F6m":           "\u00E5ngström",
		"日本語.eth":                      "日本語.eth",
		"🦊fox.eth":                     "🦊fox.eth",
		"❤\uFE0F.eth":                  "❤.eth",
		"e\uFE0F\u0301":                "é", // U+FE0F goes before composition
		"👨\u200D👩":                     "👨\u200D👩",
		"\u200Fאב":                     "\u200Fאב", // a mark of direction is not a control character
		"\u202Egpj.exe":                "\u202Egpj.exe",
		"0x":                           "0x",
		alice[:41]:                     alice[:41],
		alice + "0":                    alice + "0",
		alice[2:]:                      alice[2:],
		"0x" + strings.Repeat("g", 40): "0x" + strings.Repeat("g", 40),
		strings.Repeat("x", 255):       strings.Repeat("x", 255),
		strings.Repeat("x\uFE0F", 255): strings.Repeat("x", 255), // what counts is the result
		strings.Repeat("e\u0301", 127): strings.Repeat("é", 127),
		strings.Repeat("x", 253) + "\u212A\u212A":      strings.Repeat("x", 253) + "kk",
		strings.Repeat("\uFE0F", 100) + "a" + "\uFE0F": "a",
	} {
		got, ok := site.NormalizeName(text)
		if !ok || got != want {
			t.Errorf("NormalizeName(%q): got %q, %v, want %q", text, got, ok, want)
		}
		if site.LookupName(text) != (text == want) {
			t.Errorf("LookupName(%q): got %v, want the result for its normal form, %q", text, text != want, want)
		}
		checkName(t, text)
	}
}

func TestNormalizeNameRefuses(t *testing.T) {
	for _, text := range []string{
		"", ".", "..", "\uFE0F", "\uFE0F.\uFE0F", ".\uFE0F.",
		"a/b", "/", "../x", `a\b`, "50%off", "a?b", "a#b",
		"a b", " a", "a ", "a\tb", "a\nb", "a\u0085b", "a\u00A0b", "a\u1680b", "a\u2003b", "a\u2028b", "a\u3000b",
		"\x00", "a\x00", "\x01", "\x1F", "\x7F", "\u0080", "\u009F",
		alice, aliceUpper, "0X" + alice[2:], "0x\uFE0F" + alice[2:],
		strings.Repeat("x", 256), strings.Repeat("x", 300), strings.Repeat("é", 128),
		"\xFF", "a\xC3", "\xED\xA0\x80", "\xC0\xAE\xC0\xAE", "a\uFFFEb", "a\uFFFFb",
	} {
		if got, ok := site.NormalizeName(text); ok {
			t.Errorf("NormalizeName(%q): got %q, want none", text, got)
		}
		checkName(t, text)
	}
}

// checkName checks what NormalizeName and LookupName promise for any text.
func checkName(t testing.TB, text string) {
	t.Helper()
	name, ok := site.NormalizeName(text)
	if site.LookupName(text) != (ok && name == text) {
		t.Errorf("LookupName(%q): got %v, want the result for its normal form, %q, %v", text, site.LookupName(text), name, ok)
	}
	if !ok {
		return
	}
	if again, ok := site.NormalizeName(name); !ok || again != name || !site.LookupName(name) {
		t.Errorf("NormalizeName(%q) = %q, normalized again: got %q, %v, want the same", text, name, again, ok)
	}
	if name == "" || name == "." || name == ".." || len(name) > site.MaxNameBytes || !utf8.ValidString(name) {
		t.Errorf("NormalizeName(%q): got %q, want a segment of a path", text, name)
	}
	if bad := strings.IndexFunc(name, func(r rune) bool {
		return strings.ContainsRune(`/\%?#`+"\uFE0F", r) || unicode.IsSpace(r) || unicode.IsControl(r) || unicode.ToLower(r) != r
	}); bad >= 0 {
		t.Errorf("NormalizeName(%q): got %q, want no bad character at %d", text, name, bad)
	}
	if _, err := site.ParseAddress(name); err == nil {
		t.Errorf("NormalizeName(%q): got %q, want no address", text, name)
	}
	c := defaultConfig(t)
	if route, ok := c.RouteOf(c.UserKey(name)); !ok || route.ID != routes.UserSearch {
		t.Errorf("NormalizeName(%q): got %q, want a name that has a key", text, name)
	}
}

// Names contain only characters that an S3 listing, which is XML 1.0, can hold. Others would come back changed, as
// another key.
func TestEveryNameCanBeListed(t *testing.T) {
	names := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		name, ok := site.NormalizeName("a" + string(r))
		if !ok {
			continue
		}
		names++
		var listed bytes.Buffer
		if err := xml.EscapeText(&listed, []byte(name)); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsRune(name, utf8.RuneError) != strings.ContainsRune(listed.String(), utf8.RuneError) {
			t.Errorf("NormalizeName(a%U): got %+q, want %+q as in a listing", r, name, &listed)
		}
	}
	if names < 1_000_000 {
		t.Errorf("characters of names: got %d, want at least a million for a meaningful test", names)
	}
}

func TestFold(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "Fox": "fox", "ÉTÉ": "été", "E\u0301": "é", "a b": "a b", "100%": "100%", "Ω\u2126": "ωω", "❤\uFE0F": "❤\uFE0F", "ẞ": "ß",
	} {
		equal(t, "Fold("+text+")", site.Fold(text), want)
	}
}

// Two spellings of one character are one text.
func TestFoldIgnoresComposition(t *testing.T) {
	for r := rune(0); r <= 0x1FFFF; r++ {
		text := string(r)
		if !utf8.ValidRune(r) {
			continue
		}
		if folded := site.Fold(text); folded != site.Fold(norm.NFD.String(text)) || folded != site.Fold(folded) {
			t.Errorf("Fold(%U): got %+q, decomposed %+q, again %+q, want the same three times", r, folded, site.Fold(norm.NFD.String(text)), site.Fold(folded))
		}
	}
}

func TestParseAddress(t *testing.T) {
	for _, text := range []string{alice, aliceUpper, "0x" + aliceUpper[2:], "0X" + alice[2:]} {
		address, err := site.ParseAddress(text)
		if err != nil || address.String() != alice {
			t.Errorf("ParseAddress(%q): got %s, %v, want %s", text, address, err, alice)
		}
		if again, err := site.ParseAddress([]byte(text)); err != nil || again != address {
			t.Errorf("ParseAddress of the bytes %q: got %s, %v, want %s", text, again, err, address)
		}
		equal(t, "Append", string(address.Append([]byte("to "))), "to "+alice)
	}
	for _, text := range []string{
		"", "0", "0x", alice[:41], alice + "0", " " + alice[1:], alice[2:] + "00", "1x" + alice[2:], "0y" + alice[2:], "x0" + alice[2:],
		"0x" + strings.Repeat("g", 40), "0x" + strings.Repeat("@", 40), "0x" + strings.Repeat("`", 40), "0x" + strings.Repeat("\x10", 40),
		"0x" + strings.Repeat("/", 40), "0x" + strings.Repeat(":", 40), "0x" + strings.Repeat("é", 20), "0x" + strings.Repeat("\x00", 40),
		"0x" + strings.Repeat("\xE1", 40),
	} {
		if address, err := site.ParseAddress(text); err == nil || address != (site.Address{}) {
			t.Errorf("ParseAddress(%q): got %s, %v, want an error", text, address, err)
		}
	}
}

func TestAddressRoundTrip(t *testing.T) {
	random := newRandom()
	for range 1000 {
		address := randomAddress(random)
		text := address.String()
		if again, err := site.ParseAddress(text); err != nil || again != address || len(text) != site.AddressTextLen {
			t.Fatalf("ParseAddress(%q): got %s, %v, want the same address", text, again, err)
		}
	}
}
