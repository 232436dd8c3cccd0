package profile

import (
	"testing"
)

func TestRedirectURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://img.example/a.png":         "https://img.example/a.png",
		"HTTP://img.example":                "HTTP://img.example",
		"https://img.example/日.png":         "https://img.example/%E6%97%A5.png",
		"https://img.example/%E6?a=b#c":     "https://img.example/%E6?a=b#c",
		"https://a.example/\r\nX-Evil: 1":   "https://a.example/%0D%0AX-Evil:%201",
		"https://a.example/\"<>\\^`{|}\x7f": "https://a.example/%22%3C%3E%5C%5E%60%7B%7C%7D%7F",
		"https://":                          "",
		"https:///path":                     "",
		"ipfs://Qm":                         "",
		"javascript:alert(1)":               "",
		" https://a.example":                "",
		"data:image/png;base64,AA":          "",
		"//a.example":                       "",
		"":                                  "",
	} {
		if got, ok := redirectURL(text); got != want || ok != (want != "") {
			t.Errorf("redirectURL(%q): got %q, %v, want %q", text, got, ok, want)
		}
	}
}
