package purger

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/secret"
)

const hush = "a-secret-that-nobody-may-see"

// A told is a request that a server received.
type told struct {
	method, path, query, host string
	header                    http.Header
	body                      string
}

// A stub is the server of a service; it records requests.
type stub struct {
	*httptest.Server
	mu     sync.Mutex
	told   []told
	log    bytes.Buffer
	answer func(n int, r told, w http.ResponseWriter) // n counts requests from 1
}

func newStub(t *testing.T, answer func(n int, r told, w http.ResponseWriter)) *stub {
	t.Helper()
	s := &stub{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		path, query, _ := strings.Cut(r.RequestURI, "?") // the bytes that were sent
		request := told{r.Method, path, query, r.Host, r.Header.Clone(), string(body)}
		s.told = append(s.told, request)
		s.answer(len(s.told), request, w)
	}))
	t.Cleanup(s.Close)
	return s
}

// ok answers like the service after success.
func ok(_ int, _ told, w http.ResponseWriter) {
	_, _ = io.WriteString(w, `{"success":true,"status":"ok"}`)
}

// open makes a purger whose requests go to the stub, with waits for tests.
func (s *stub) open(t *testing.T, flag string, change ...func(*Options)) *Purger {
	t.Helper()
	o := Options{
		Sites: []string{"https://api.example.org/"}, Patience: 2 * time.Second,
		AWS: func(context.Context) (Credentials, error) {
			return Credentials{"AKIDEXAMPLE", hush, "session-token"}, nil
		},
		Endpoints:    map[Kind]string{},
		Log:          slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		firstBackoff: time.Millisecond, pollWait: time.Millisecond,
	}
	setSecrets(&o, hush)
	for kind := range kinds {
		o.Endpoints[kind] = s.URL
	}
	o.Endpoints[Cloudflare] += "/client/v4"
	for _, c := range change {
		c(&o)
	}
	p, err := New(flag, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// setSecrets sets each field of the options that holds a credential.
func setSecrets(o *Options, to secret.Text) {
	fields := reflect.ValueOf(o).Elem()
	for i := range fields.NumField() {
		if f := fields.Field(i); f.Type() == reflect.TypeFor[secret.Text]() {
			f.SetString(string(to))
		}
	}
}

func (s *stub) noSecret(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range append(texts, s.log.String()) {
		if strings.Contains(text, hush) {
			t.Errorf("text: got the secret in %q, want it hidden", text)
		}
	}
}

func mustPurge(t *testing.T, p *Purger, what Purge) Result {
	t.Helper()
	r, err := p.Purge(t.Context(), what)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// numbered returns n texts that a format makes of numbers, sorted.
func numbered(format string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	slices.Sort(all)
	return all
}

// many returns the URLs of n lists.
func many(n int) []string { return numbered("/api/v1/lists/%d/details", n) }

// checkSignature computes the signature of a request from AWS's documentation (Signature Version
// 4), independently of our code.
func checkSignature(t *testing.T, r told, service, region string) {
	t.Helper()
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	sum := func(text string) string {
		digest := sha256.Sum256([]byte(text))
		return hex.EncodeToString(digest[:])
	}
	auth, found := strings.CutPrefix(r.header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	parts := map[string]string{}
	for part := range strings.SplitSeq(auth, ", ") {
		name, value, _ := strings.Cut(part, "=")
		parts[name] = value
	}
	date := r.header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", date)
	if !found || err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("signature: got %q: %v, want a valid one", auth, err)
		return
	}
	signed := strings.Split(parts["SignedHeaders"], ";")
	for _, header := range []string{"host", "x-amz-date", "x-amz-security-token"} {
		if !slices.Contains(signed, header) {
			t.Errorf("header %s: got it unsigned, want it signed", header)
		}
	}
	canonical := r.method + "\n" + r.path + "\n" + r.query + "\n"
	for _, name := range signed {
		value := r.header.Get(name)
		switch name {
		case "host":
			value = r.host
		case "content-length":
			value = fmt.Sprint(len(r.body))
		}
		canonical += name + ":" + strings.TrimSpace(value) + "\n"
	}
	canonical += "\n" + parts["SignedHeaders"] + "\n" + sum(r.body)
	scope := date[:8] + "/" + region + "/" + service + "/aws4_request"
	key := mac(mac(mac(mac([]byte("AWS4"+hush), date[:8]), region), service), "aws4_request")
	want := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+sum(canonical)))
	if parts["Credential"] != "AKIDEXAMPLE/"+scope || parts["Signature"] != want {
		t.Errorf("signature: got %q, want %s of %s", auth, want, scope)
	}
}
