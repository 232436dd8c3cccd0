package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-json"
	"github.com/gorilla/websocket"

	"github.com/followpress/followpress/internal/secret"
)

const (
	largestMessage = 256 << 10        // bytes of a message; a header has some 2,000
	silence        = 90 * time.Second // without a block: chains have one every few seconds
	greeting       = 15 * time.Second // for connecting and subscribing
)

// A socket is a ws or wss URL.
type socket struct {
	host   string
	name   string // host name with the scheme
	url    string // may contain a key
	header http.Header
	hide   *secret.Hider
}

// newSocket parses a URL; ok is false if it is not a ws or wss URL.
func newSocket(text string) (s *socket, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return nil, false
	}
	s = &socket{host: u.Host, name: u.Scheme + "://" + u.Host, header: http.Header{}, hide: hiding(u)}
	if u.User != nil { // the library rejects it
		password, _ := u.User.Password()
		r := http.Request{Header: s.header}
		r.SetBasicAuth(u.User.Username(), password)
		u.User = nil
	}
	s.url = u.String()
	return s, true
}

// Sockets returns the number of URLs for Watch.
func (c *Chain) Sockets() int { return len(c.sockets) }

// Watch subscribes to new blocks at ws or wss URL number i, modulo their number, and calls each
// with every received header until it fails or ctx ends. Like those of Latest, headers are claims
// of one node. There must be at least one URL.
func (c *Chain) Watch(ctx context.Context, i int, each func(Header)) error {
	s := c.sockets[i%len(c.sockets)]
	err := s.watch(ctx, c.id, func(h Header) {
		c.hear(s.name, nil)
		each(h)
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err // its URL may contain a key
	}
	err = fmt.Errorf("%s: %s", s.host, quote(s.hide.Replace(err.Error())))
	c.hear(s.name, err)
	return fmt.Errorf("chain %d: %w", c.id, err)
}

func (s *socket) watch(ctx context.Context, chain uint64, each func(Header)) error {
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: greeting}
	// The dialer follows no redirects, so a key reaches no other server.
	conn, answer, err := dialer.DialContext(ctx, s.url, s.header)
	if answer != nil {
		_ = answer.Body.Close() // the library has read it
	}
	if err != nil {
		if answer != nil {
			err = fmt.Errorf("status %d: %w", answer.StatusCode, err)
		}
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // ends reads
	conn.SetReadLimit(largestMessage)
	var id hexutil.Big
	if err := s.call(conn, "eth_chainId", []any{}, &id); err != nil {
		return err
	}
	if got := id.ToInt(); !got.IsUint64() || got.Uint64() != chain {
		return fmt.Errorf("it is a node of chain %s, not of chain %d", got, chain)
	}
	var subscription string
	if err := s.call(conn, "eth_subscribe", []any{"newHeads"}, &subscription); err != nil {
		return err
	}
	for {
		if err := conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
		_, text, err := conn.ReadMessage()
		if err != nil {
			return err
		}
		h, ok, err := headerOf(text)
		if err != nil {
			return err
		}
		if ok {
			each(h)
		}
	}
}

// call makes a call, whose answer is the next message.
func (s *socket) call(conn *websocket.Conn, method string, params []any, result any) error {
	deadline := time.Now().Add(greeting)
	if err := errors.Join(conn.SetWriteDeadline(deadline), conn.SetReadDeadline(deadline)); err != nil {
		return err
	}
	if err := conn.WriteJSON(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}); err != nil {
		return err
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	_, text, err := conn.ReadMessage()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if answer.Error != nil {
		return fmt.Errorf("%s: error %d: %s", method, answer.Error.Code, quote(answer.Error.Message))
	}
	if len(answer.Result) == 0 {
		return fmt.Errorf("%s: %w", method, errNoResult)
	}
	return json.Unmarshal(answer.Result, result)
}

// headerOf decodes the message of a subscription; ok is false for other messages.
func headerOf(text []byte) (h Header, ok bool, err error) {
	from := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var answer headerAnswer
	err = members(from, func(name string) error {
		if name != "params" {
			return from.SkipValue()
		}
		return members(from, func(name string) error {
			if name != "result" {
				return from.SkipValue()
			}
			return answer.read(from)
		})
	})
	return answer.header(), answer.found, err
}
