// Package firefox drives Debian's firefox-esr for tests of pages, by Firefox's own WebDriver BiDi
// (https://w3c.github.io/webdriver-bidi/): it opens pages, presses keys, and receives console
// errors and failed requests. Package browser has more features, with Chromium; this package shows
// that pages also work elsewhere.
//
// Pages reach no host except this machine: all other requests go to a proxy that does not exist.
//
// The API may change at any time: it serves this project only.
package firefox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	json "github.com/goccy/go-json"
	"github.com/gorilla/websocket"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/internal/testenv/process"
)

const (
	patience = 2 * time.Minute       // limit of each step, on a busy machine
	poll     = 20 * time.Millisecond // interval of Wait
)

// preferences cut Firefox off from the network: nothing listens at port 9 of this machine.
const preferences = `user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1");
user_pref("network.proxy.http_port", 9);
user_pref("network.proxy.ssl", "127.0.0.1");
user_pref("network.proxy.ssl_port", 9);
user_pref("network.proxy.no_proxies_on", "127.0.0.1");
user_pref("network.proxy.failover_direct", false);
user_pref("network.trr.mode", 5);
user_pref("ui.prefersReducedMotion", 1);
`

// A Browser is a Firefox with one page, which runs until the end of its test. Only the goroutine of
// its test may call its methods.
type Browser struct {
	t       testing.TB
	socket  *websocket.Conn
	context string // ID of the page
	next    int    // ID of the next command

	mu      sync.Mutex
	answers map[int]chan answer
	faults  []string
	told    int // number of faults reported so far
	ended   chan struct{}
}

// An answer is the answer to a command, or an event.
type answer struct {
	ID      int
	Error   string
	Message string
	Method  string
	Params  json.RawMessage
	Result  json.RawMessage
}

var listening = regexp.MustCompile(`WebDriver BiDi listening on (ws://127\.0\.0\.1:\d+)`)

// Start starts a headless browser. Faults of its page fail the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	path, err := exec.LookPath("firefox-esr")
	if err != nil {
		t.Fatalf("%v: `make test-tools` installs what it needs", err)
	}
	profile := t.TempDir()
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(preferences), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0")
	command.Env = append(os.Environ(), "HOME="+profile, "LANG=C.UTF-8", "TZ=UTC", "MOZ_CRASHREPORTER_DISABLE=1")
	running := process.Start(t, command)
	b := &Browser{t: t, answers: map[int]chan answer{}, ended: make(chan struct{})}
	b.connect(running)
	t.Cleanup(func() {
		b.tell()
		b.send("browser.close", map[string]any{}, nil)
		_ = b.socket.Close() // the browser may have closed it
		<-b.ended
		running.Wait() // only an orderly exit ends its children, so that its folder can be removed
	})
	b.open()
	return b
}

// connect connects to a browser when it has printed its address.
func (b *Browser) connect(running *process.Process) {
	b.t.Helper()
	begun := time.Now()
	for time.Since(begun) < patience {
		if found := listening.FindStringSubmatch(running.Output()); found != nil {
			ctx, cancel := context.WithTimeout(b.t.Context(), patience)
			defer cancel()
			socket, _, err := websocket.DefaultDialer.DialContext(ctx, found[1]+"/session", nil)
			if err != nil {
				b.t.Fatalf("connect to Firefox: %v", err)
			}
			b.socket = socket
			go b.hear()
			return
		}
		time.Sleep(poll)
	}
	b.t.Fatalf("after %v: Firefox does not listen:\n%s", patience, running.Output())
}

// open starts a session with the browser's page.
func (b *Browser) open() {
	b.t.Helper()
	b.send("session.new", map[string]any{"capabilities": map[string]any{}}, nil)
	b.send("session.subscribe", map[string]any{"events": []string{"log.entryAdded", "network.fetchError", "network.responseCompleted"}}, nil)
	var tree struct{ Contexts []struct{ Context string } }
	b.send("browsingContext.getTree", map[string]any{}, &tree)
	if len(tree.Contexts) == 0 {
		b.t.Fatal("Firefox has no page")
	}
	b.context = tree.Contexts[0].Context
}

// hear receives answers and events until the connection ends.
func (b *Browser) hear() {
	defer close(b.ended)
	for {
		_, text, err := b.socket.ReadMessage()
		if err != nil {
			return
		}
		var a answer
		if err := json.Unmarshal(text, &a); err != nil {
			b.fault("Firefox says %.200q: %v", text, err)
			continue
		}
		if a.Method != "" {
			b.event(a)
			continue
		}
		b.mu.Lock()
		waiting := b.answers[a.ID]
		delete(b.answers, a.ID)
		b.mu.Unlock()
		if waiting != nil {
			waiting <- a
		}
	}
}

// ownIcon matches an error of Firefox itself: it requests /favicon.ico although the page's policy
// forbids icons.
var ownIcon = regexp.MustCompile(`^Content-Security-Policy: .* \(img-src\) at http://127\.0\.0\.1:\d+/favicon\.ico `)

// event records faults of the page.
func (b *Browser) event(a answer) {
	var e struct {
		Level, Text, ErrorText string
		Request                struct{ URL string }
		Response               struct{ Status int }
	}
	if err := json.Unmarshal(a.Params, &e); err != nil {
		b.fault("%s: %v", a.Method, err)
		return
	}
	switch {
	case a.Method == "log.entryAdded" && slices.Contains([]string{"error", "warn"}, e.Level) && !ownIcon.MatchString(e.Text):
		b.fault("console: %s: %s", e.Level, e.Text)
	case a.Method == "network.fetchError" && !strings.Contains(e.ErrorText, "ABORT"): // navigation cancels requests
		b.fault("request failed: %s: %s", e.Request.URL, e.ErrorText)
	case a.Method == "network.responseCompleted" && e.Response.Status >= 400:
		b.fault("status %d: %s", e.Response.Status, e.Request.URL)
	}
}

func (b *Browser) fault(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// For reports later faults to a subtest, until its end.
func (b *Browser) For(t testing.TB) {
	whole := b.t
	b.tell()
	b.t = t
	t.Cleanup(func() {
		b.tell()
		b.t = whole
	})
}

// tell reports new faults to the test.
func (b *Browser) tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults[b.told:] {
		b.t.Errorf("fault in the page: %s", fault)
	}
	b.told = len(b.faults)
}

// send sends a command, and stores its result unless into is nil.
func (b *Browser) send(method string, parameters map[string]any, into any) {
	b.t.Helper()
	if err := b.try(method, parameters, into); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

func (b *Browser) try(method string, parameters map[string]any, into any) error {
	waiting := make(chan answer, 1)
	b.next++
	b.mu.Lock()
	b.answers[b.next] = waiting
	b.mu.Unlock()
	if err := b.socket.WriteJSON(map[string]any{"id": b.next, "method": method, "params": parameters}); err != nil {
		return err
	}
	select {
	case a := <-waiting:
		if a.Error != "" {
			return fmt.Errorf("%s: %s", a.Error, a.Message)
		}
		if into == nil {
			return nil
		}
		return json.Unmarshal(a.Result, into)
	case <-b.ended:
		return fmt.Errorf("firefox has ended")
	case <-time.After(patience):
		return fmt.Errorf("no answer after %v", patience)
	}
}

// Go goes to a URL and waits for the load event, and until the page has drawn something afterwards.
func (b *Browser) Go(url string) {
	b.t.Helper()
	b.send("browsingContext.navigate", map[string]any{"context": b.context, "url": url, "wait": "complete"}, nil)
	Eval[any](b, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))")
}

// Resize changes the size of the page.
func (b *Browser) Resize(s browser.Size) {
	b.t.Helper()
	b.send("browsingContext.setViewport", map[string]any{"context": b.context, "viewport": map[string]int{"width": s.Width, "height": s.Height}}, nil)
}

// Press presses keys, one after the other, wherever the focus is. Special keys have WebDriver's
// codes (https://w3c.github.io/webdriver/#keyboard-actions).
func (b *Browser) Press(keys string) {
	b.t.Helper()
	var actions []map[string]string
	for _, key := range keys {
		actions = append(actions, map[string]string{"type": "keyDown", "value": string(key)}, map[string]string{"type": "keyUp", "value": string(key)})
	}
	b.send("input.performActions", map[string]any{"context": b.context, "actions": []map[string]any{{"type": "key", "id": "keyboard", "actions": actions}}}, nil)
}

// Keys of WebDriver.
const (
	Tab       = "\ue004"
	Enter     = "\ue007"
	ArrowDown = "\ue015"
)

// Eval evaluates an expression in the page, waits if it is a promise, and returns its value.
func Eval[V any](b *Browser, expression string) V {
	b.t.Helper()
	value, err := evaluate[V](b, expression)
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// evaluate returns values as JSON, because BiDi has its own encoding of values.
func evaluate[V any](b *Browser, expression string) (value V, err error) {
	var result struct {
		Type             string
		Result           struct{ Value string }
		ExceptionDetails struct{ Text string }
	}
	parameters := map[string]any{
		"expression":   "Promise.resolve(" + expression + ").then((value) => JSON.stringify(value ?? null))",
		"target":       map[string]string{"context": b.context},
		"awaitPromise": true,
	}
	if err := b.try("script.evaluate", parameters, &result); err != nil {
		return value, err
	}
	if result.Type == "exception" {
		return value, fmt.Errorf("%s", result.ExceptionDetails.Text)
	}
	return value, json.Unmarshal([]byte(result.Result.Value), &value)
}

// Wait waits until an expression, or the value of its promise, is true.
func (b *Browser) Wait(expression string) {
	b.t.Helper()
	var last error
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(poll) {
		var ok bool
		// Evaluating fails during a navigation.
		if ok, last = evaluate[bool](b, "Promise.resolve("+expression+").then(Boolean)"); ok {
			return
		}
	}
	text, _ := evaluate[string](b, "location.href + ' ' + document.body.innerText.slice(0, 1500)")
	b.t.Fatalf("after %v: got no %s (%v)\nthe page: %s", patience, expression, last, text)
}

// Text returns the visible text of an element.
func (b *Browser) Text(selector string) string {
	b.t.Helper()
	return Eval[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}
