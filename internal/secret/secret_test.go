package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"testing"
)

const key = "Key-0123/abc+xyz~ü"

// No way of printing or encoding a credential reveals it.
func TestText(t *testing.T) {
	type options struct {
		Token Text
		None  Text
	}
	o := options{Token: key}
	encoded, err := json.Marshal(map[string]any{"o": o, "p": &o.Token})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("began", "token", o.Token, "options", o)
	}
	all := fmt.Sprintf("%s %v %+v %#v %q %x %s", o.Token, o, &o, o, o.Token, o.Token, fmt.Errorf("no: %s", o.Token)) + string(encoded) + log.String()
	if strings.Contains(all, "Key") || strings.Contains(all, hex.EncodeToString([]byte(key))) || !strings.Contains(all, hidden) {
		t.Errorf("got %s, want it hidden", all)
	}
	if o.None.String() != "" {
		t.Errorf("no secret: got %s, want an empty text", o.None)
	}
}

func TestURL(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "",
		"/folder/a@b":                           "/folder/a@b",
		"site.tar":                              "site.tar",
		"s3://bucket/prefix":                    "s3://bucket/prefix",
		"https://host.example":                  "https://host.example",
		"https://host.example:8443/a/b@c":       "https://host.example:8443/a/b@c",
		"http://user:SECRET@host":               "http://host",
		"http://user:SECRET@host/a@b":           "http://host/a@b",
		"http://SECRET@host/":                   "http://host/",
		"https://host/a?key=SECRET#SECRET":      "https://host/a",
		"https://host?key=SECRET":               "https://host",
		"http://user:SEC%zzRET@host/path":       "http://host/path",
		"http://user:SECRET/SECRET@host/path":   "http://host/path",
		"http://user:SECRET?SECRET@host/path":   "http://host/path",
		"http://user:SECRET@SECRET@host/path":   "http://host/path",
		"http://user:SECRET\x00@host/path?x=@y": "http://y",
	} {
		if got := URL(text).String(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// A server may repeat a credential in any spelling, in any case, and within something else that it has encoded.
func TestHider(t *testing.T) {
	h := &Hider{}
	if text := "before the first use of " + key; h.Replace(text) != text {
		t.Errorf("got %s, want all of it", h.Replace(text))
	}
	h.Use(key)
	std := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for name, echo := range map[string]string{
		"as it is": key, "in upper case": strings.ToUpper(key), "in lower case": strings.ToLower(key),
		"in a query": url.QueryEscape(key), "in a path": url.PathEscape(key), "in lower case escapes": strings.ToLower(url.QueryEscape(key)),
		"in hexadecimal": hex.EncodeToString([]byte(key)), "in JSON": strings.ReplaceAll(key, "/", `\/`),
		"in base64": std(key), "after one byte": std("u" + key), "after two": std("u:" + key), "after three": std("us:" + key), "amid": std("user:" + key + ":more"),
		"in base64 of URLs": base64.RawURLEncoding.EncodeToString([]byte("u:" + key)), "in base64 in upper case": strings.ToUpper(std(key)),
	} {
		got := h.Replace("no, not with <" + echo + ">: go away")
		_, rest, _ := strings.Cut(got, "<")
		rest, _, _ = strings.Cut(rest, ">")
		if !strings.Contains(rest, hidden) || len(rest) > len(hidden)+16 || !strings.HasSuffix(got, ">: go away") || strings.Contains(strings.ToLower(got), "0123") {
			t.Errorf("%s: got %q, want it hidden", name, got)
		}
	}
	h.UseURL("https://user-0:password-0@host.example/first-0{path}second-0/x?token=value-0/more-0&short=1")
	got := h.Replace("USER-0 password-0 host.example first-0 second-0 token value-0/more-0 value-0 short=1 1")
	if want := "[hidden] [hidden] host.example [hidden] [hidden] token [hidden] [hidden] short=[hidden] 1"; got != want {
		t.Errorf("parts of a URL: got %q, want %q", got, want)
	}
}

// A credential of a few letters is hidden where a credential stands, and not in every word that has these letters.
func TestShortCredentials(t *testing.T) {
	h := &Hider{}
	h.Use("k3y")
	h.UseURL("https://me:pa55@host.example/purge?all=1")
	for echo, want := range map[string]string{
		"no me:pa55@host, me": "no me:[hidden]@host, me", "https://me:pa55@host.example/purge?all=1": "https://[hidden]:[hidden]@host.example/purge?all=[hidden]",
		"?key=k3y&x=k3yed": "?key=[hidden]&x=k3yed", "Authorization: Bearer K3Y": "Authorization: Bearer [hidden]", `{"key":"k3y"}`: `{"key":"[hidden]"}`,
		"X-API-Key: k3y": "X-API-Key: [hidden]", "monk3y": "monk3y", "11 of 12": "11 of 12", "the name me is taken": "the name me is taken",
	} {
		if got := h.Replace(echo); got != want {
			t.Errorf("%q: got %q, want %q", echo, got, want)
		}
	}
}

// Errors and logs are clean too; what an error wraps stays.
func TestHiderCleansMessages(t *testing.T) {
	h := &Hider{}
	h.Use(key)
	if h.Error(nil) != nil {
		t.Error("no error: got one")
	}
	err := h.Error(fmt.Errorf("no %s: \x1b]0;title\x07 \u009b31m \u202eback: %w", key, io.EOF))
	if !errors.Is(err, io.EOF) || err.Error() != "no [hidden]: \ufffd]0;title\ufffd \ufffd31m \ufffdback: EOF" {
		t.Errorf("got %q, want it clean, and to wrap io.EOF", err)
	}
	var out bytes.Buffer
	log := h.Logger(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	log.Debug("not told")
	log.With("a", key).WithGroup("g").Info("with "+key, "error", fmt.Errorf("no %s", key), slog.Group("inner", "b", key), "n", 7)
	if got := out.String(); strings.Contains(got, "0123") || strings.Count(got, hidden) != 4 || !strings.Contains(got, `"n":7`) || strings.Contains(got, "not told") {
		t.Errorf("log: got %s, want four texts hidden", got)
	}
}
