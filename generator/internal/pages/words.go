package pages

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/crypto/keccak"
	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/plain"
	"github.com/followpress/followpress/site"
)

// checksummed returns an address with the letter case that detects typing errors (EIP-55), like the
// explorer.
func checksummed(address site.Address) string {
	text := []byte(address.String())
	hash := keccak.NewLegacyKeccak256()
	_, _ = hash.Write(text[2:]) // a hash never fails
	sum := hash.Sum(nil)
	for i, digit := range text[2:] {
		if half := sum[i/2] >> (4 * (1 - i%2)); digit >= 'a' && half&8 != 0 {
			text[2+i] = digit - 'a' + 'A'
		}
	}
	return string(text)
}

// shortenedTo returns the beginning of a text, up to this many characters.
func shortenedTo(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	n := 0
	for at := range text {
		if n++; n == most {
			return strings.TrimSpace(text[:at]) + "…"
		}
	}
	return text
}

func followersWord(n uint32) string {
	if n == 1 {
		return "follower"
	}
	return "followers"
}

// grouped writes a number with commas between thousands.
func grouped(n uint32) string {
	digits := strconv.FormatUint(uint64(n), 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// textOf returns the text of a JSON string, "" for any other value.
func textOf(encoded []byte) string {
	if len(encoded) <= len(`""`) || encoded[0] != '"' {
		return ""
	}
	if inner := encoded[1 : len(encoded)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var text string
	if json.Unmarshal(encoded, &text) != nil {
		return ""
	}
	return text
}

// webPage returns the URL of a web page that is safe to link, "" for anything else.
func webPage(text string) string {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(text) > 1_024 {
		return ""
	}
	shown := u.String()
	if !utf8.ValidString(shown) || plain.Text(shown) != shown {
		return ""
	}
	return shown
}
