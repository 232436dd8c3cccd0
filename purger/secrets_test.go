package purger

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"
)

// No credential appears in the output, wherever the server repeats it: for each service of the
// table, with a secret in each field of Options that can have one.
func TestServersThatRepeatWhatTheyGot(t *testing.T) {
	for kind := range kinds {
		operand := operands[kind]
		if kind == HTTP {
			operand = "%s/secret-before-{path}-secret-after?k=secret-query&u=1"
		}
		for name, shout := range map[string]func(string) string{
			"as it is": func(s string) string { return s }, "in upper case": strings.ToUpper,
			"in base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("it was " + s)) },
		} {
			for place, answer := range echoes {
				t.Run(fmt.Sprintf("%s, %s, %s", kind, place, name), func(t *testing.T) {
					t.Parallel()
					address := repeating(t, func(got string) string { return answer(shout(got)) })
					var told strings.Builder
					o := Options{
						Sites: []string{"https://api.example.org"}, Patience: 20 * time.Millisecond, firstBackoff: time.Millisecond, pollWait: time.Millisecond,
						Log:       slog.New(slog.NewTextHandler(&told, &slog.HandlerOptions{Level: slog.LevelDebug})),
						Tell:      func(line string) { told.WriteString(line) },
						Endpoints: map[Kind]string{kind: address + "/secret-endpoint"},
						AWS: func(context.Context) (Credentials, error) {
							return Credentials{"AKIDEXAMPLE", "secret-of-aws", "secret-session"}, nil
						},
					}
					setSecrets(&o, "secret-token")
					p, err := New(string(kind)+":"+strings.ReplaceAll(operand, "%s", address), o)
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // CloudFront is asked for 15 minutes
					defer cancel()
					r, err := p.Purge(ctx, Purge{Exact: many(2)})
					if err == nil && place != "invalidation" {
						t.Fatal("got no error, want one")
					}
					report, encodeErr := json.Marshal([]Result{p.Plan(some), r})
					if encodeErr != nil {
						t.Fatal(encodeErr)
					}
					all := strings.Join([]string{told.String(), fmt.Sprint(err), r.String(), p.Name(), string(report), fmt.Sprintf("%+v", []any{o.CloudflareToken, o.FastlyToken})}, "\n")
					for _, bad := range []string{"secret-", "c2VjcmV0LW", "NlY3JldC", "zZWNyZXQt", "\x1b", "\u202e"} {
						if strings.Contains(strings.ToLower(all), strings.ToLower(bad)) {
							t.Errorf("got %q in %s", bad, all)
						}
					}
				})
			}
		}
	}
}

// echoes are answers that repeat a request, which is in one line.
var echoes = map[string]func(string) string{
	"status line": func(got string) string { return "HTTP/1.1 403 no " + got + "\r\nContent-Length: 0\r\n\r\n" },
	"no status":   func(got string) string { return "HTTP/1.1 " + got + "\r\n\r\n" },
	"no answer":   func(got string) string { return got + "\r\n\r\n" },
	"header":      func(got string) string { return "HTTP/1.1 403 no\r\n" + got + "\r\nContent-Length: 0\r\n\r\n" },
	"length":      func(got string) string { return "HTTP/1.1 403 no\r\nContent-Length: " + got + "\r\n\r\n" },
	"body":        func(got string) string { return answerOf(http.StatusForbidden, "\x1b]0;"+got+"\x07\u202e") },
	"bad request": func(got string) string { return answerOf(http.StatusBadRequest, got) },
	"success":     func(got string) string { return answerOf(http.StatusTeapot, got) },
	"invalidation": func(got string) string {
		return answerOf(http.StatusOK, "<Invalidation><Id>"+strings.NewReplacer("&", "", "<", "").Replace(got)+"</Id></Invalidation>")
	},
	"redirect": func(got string) string {
		return "HTTP/1.1 302 x\r\nLocation: http://%zz/" + got + "\r\nContent-Length: 0\r\n\r\n"
	},
	"other server": func(got string) string {
		return "HTTP/1.1 302 x\r\nLocation: http://h/" + got + "\r\nContent-Length: 0\r\n\r\n"
	},
}

func answerOf(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// repeating returns the URL of a server that answers each request with a text made from the request.
func repeating(t *testing.T, answer func(got string) string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				for from := bufio.NewReader(c); ; {
					r, err := http.ReadRequest(from)
					if err != nil {
						return
					}
					got, err := httputil.DumpRequest(r, true)
					if err != nil {
						return
					}
					line := strings.Join(strings.Fields(strings.ReplaceAll(string(got), "\r\n", " ")), " ")
					if _, err := fmt.Fprint(c, answer(line)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}
