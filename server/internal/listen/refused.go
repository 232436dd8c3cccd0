package listen

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/followpress/followpress/server/internal/reply"
	"github.com/followpress/followpress/site"
)

// net/http rejects what it cannot parse, such as malformed percent-encoding, before any handler
// runs, and writes plain text to the connection. This file replaces that text by a problem, so that
// API clients always get one.

// A problemListener accepts connections that send problems instead of the error texts of net/http.
type problemListener struct{ net.Listener }

func (l problemListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return problemConn{c}, nil
}

type problemConn struct{ net.Conn }

// Write writes p, or a problem instead of it.
func (c problemConn) Write(p []byte) (int, error) {
	instead := problemFor(p)
	if instead == nil {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(instead); err != nil {
		return 0, err
	}
	return len(p), nil
}

// ReadFrom lets the kernel copy files to the connection.
func (c problemConn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

// CloseWrite closes the sending side, if the connection can, while the client still sends.
func (c problemConn) CloseWrite() error {
	if closer, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return closer.CloseWrite()
	}
	return nil
}

// The parts of an error answer by net/http itself, written in one call (conn.serve in server.go).
// No answer of a handler looks like this: it has a Date header, and JSON without line ends.
const (
	ownStatus  = "HTTP/1.1 "
	ownHeaders = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	mostOwn    = 512 // bytes
)

// problemFor returns the problem that replaces an error answer of net/http; nil if p is not one.
// For other answers it only inspects the status.
func problemFor(p []byte) []byte {
	const digits = len("400")
	if len(p) <= len(ownStatus)+digits || len(p) > mostOwn || p[len(ownStatus)] < '4' || !bytes.HasPrefix(p, []byte(ownStatus)) {
		return nil
	}
	line, reason, own := bytes.Cut(p, []byte(ownHeaders))
	status, err := strconv.Atoi(string(p[len(ownStatus) : len(ownStatus)+digits]))
	if !own || err != nil || bytes.Contains(line, []byte("\n")) {
		return nil
	}
	detail := "The request is malformed: its URL, a header or the framing of its body."
	if _, why, told := bytes.Cut(reason, []byte(": ")); told {
		detail = "The request is malformed: " + string(why) + "."
	}
	switch status {
	case http.StatusRequestHeaderFieldsTooLarge:
		detail = "The URL and the headers are too long."
	case http.StatusNotImplemented:
		detail = "Only the transfer encoding chunked is known."
	}
	header, body := reply.ProblemResponse(&site.Problem{Status: status, Detail: detail, CacheControl: site.NoStore})
	response := http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Close: true, Header: header,
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}
	var whole bytes.Buffer
	_ = response.Write(&whole) // neither buffer fails
	return whole.Bytes()
}
