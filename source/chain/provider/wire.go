package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-json"
)

// A reader decodes a result while it arrives, so that an answer takes no more memory than its
// wanted parts. Other results are read into memory as JSON first.
type reader interface {
	read(from *jsontext.Decoder) error
}

// A calledError is a JSON-RPC error.
type calledError struct {
	code int
	text string
}

func (e *calledError) Error() string { return e.text }

var (
	errMissing  = errors.New("its answer omits one of the calls")
	errNoResult = errors.New("its answer has no result")
	errNotAList = fail(asked, errors.New("the answer to a batch is not a list"))
)

// post makes a request with calls, as a batch or with a single call, whose answer has at most most
// bytes. It returns an error for each call.
func (n *node) post(ctx context.Context, calls []call, batch bool, most int64) (errs []error, err error) {
	body, err := requestOf(calls, batch)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	answer, err := n.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() {
		// Reading the answer to its end lets the connection be used again.
		_, _ = io.CopyN(io.Discard, answer.Body, maxTail)
		_ = answer.Body.Close()
	}()
	if answer.StatusCode/100 != 2 { // including redirects: a request may carry a key, which other servers must not get
		return nil, failedStatus(answer, n.hide)
	}
	a := answers{
		from:  jsontext.NewDecoder(&boundedBody{answer.Body, most}, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		calls: calls, errs: make([]error, len(calls)), done: make([]bool, len(calls)),
	}
	if batch {
		return a.errs, a.readBatch()
	}
	return a.errs, a.readOne(true)
}

// maxTail limits the bytes read after an answer.
const maxTail = 64 << 10

// requestOf encodes calls; their IDs are their indexes.
func requestOf(calls []call, batch bool) ([]byte, error) {
	type message struct {
		Version string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  []any  `json:"params"`
	}
	all := make([]message, len(calls))
	for i, c := range calls {
		all[i] = message{"2.0", i, c.method, c.args}
		if c.args == nil {
			all[i].Params = []any{}
		}
	}
	if batch {
		return json.Marshal(all)
	}
	return json.Marshal(all[0])
}

type answers struct {
	from  *jsontext.Decoder
	calls []call
	errs  []error
	done  []bool
}

// readBatch decodes a list of answers. An object is the error of all calls.
func (a *answers) readBatch() error {
	switch kind := a.from.PeekKind(); kind {
	case '[':
	case '{':
		a.calls, a.done = []call{{result: new(nothing)}}, make([]bool, 1)
		if err := a.readOne(true); err != nil {
			return err
		}
		if a.errs[0] != nil {
			return a.errs[0]
		}
		return errNotAList
	default:
		return a.otherKind(errNotAList)
	}
	if _, err := a.from.ReadToken(); err != nil {
		return err
	}
	for range a.calls {
		if a.from.PeekKind() == ']' {
			break
		}
		if err := a.readOne(false); err != nil {
			return err
		}
	}
	if a.from.PeekKind() != ']' {
		return a.otherKind(errors.New("more answers than calls"))
	}
	for i, done := range a.done {
		if !done {
			a.errs[i] = errMissing
		}
	}
	return nil
}

// otherKind returns the error for an unexpected kind of value, or err if there is no value.
func (a *answers) otherKind(err error) error {
	if a.from.PeekKind() == 0 {
		if _, cut := a.from.ReadToken(); cut != nil {
			return cut
		}
	}
	return err
}

// readOne decodes an answer, whose ID may come before or after its result. A single answer belongs
// to the first call, regardless of its ID.
func (a *answers) readOne(alone bool) error {
	which := -1
	if alone {
		which = 0
	}
	var early jsontext.Value // a result that came before its ID
	var called error
	hasResult := false
	err := members(a.from, func(name string) error {
		switch {
		case name == "id" && !alone:
			text, err := a.from.ReadValue()
			if err != nil {
				return err
			}
			id, err := strconv.Atoi(string(bytes.Trim(text, `"`)))
			if err == nil && id >= 0 && id < len(a.calls) && !a.done[id] {
				which = id
			}
			return nil
		case name == "error":
			var err error
			called, err = readCalledError(a.from)
			return err
		case name != "result" || hasResult:
			return a.from.SkipValue()
		}
		hasResult = true
		if which >= 0 {
			return readResult(a.from, a.calls[which].result)
		}
		text, err := a.from.ReadValue()
		early = text.Clone()
		return err
	})
	if err != nil {
		return err
	}
	if which < 0 {
		return called // the error of all calls: nodes that reject a batch omit the ID
	}
	a.done[which] = true
	switch {
	case called != nil:
		a.errs[which] = called
	case !hasResult:
		a.errs[which] = errNoResult
	case early != nil:
		from := jsontext.NewDecoder(bytes.NewBuffer(early), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		return readResult(from, a.calls[which].result)
	}
	return nil
}

func readResult(from *jsontext.Decoder, result any) error {
	if r, ok := result.(reader); ok {
		return r.read(from)
	}
	text, err := from.ReadValue()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, result)
}

// readCalledError decodes the error of a call; nil for null. Some nodes send a string.
func readCalledError(from *jsontext.Decoder) (error, error) {
	e := &calledError{}
	switch from.PeekKind() {
	case 'n':
		return nil, from.SkipValue()
	case '{':
	default:
		text, err := from.ReadValue()
		e.text = textOf(text)
		return e, err
	}
	return e, members(from, func(name string) error {
		if name != "code" && name != "message" {
			return from.SkipValue()
		}
		text, err := from.ReadValue()
		if name == "message" {
			e.text = textOf(text)
		} else {
			e.code, _ = strconv.Atoi(string(text)) // an error may lack a code
		}
		return err
	})
}

// maxErrorText limits the inspected bytes of an error.
const maxErrorText = 64 << 10

// textOf returns the content of a string, or the JSON of another value.
func textOf(value jsontext.Value) string {
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		text = value
	}
	return string(text[:min(len(text), maxErrorText)])
}

// members calls each for the members of an object; each must read the value. It fails before
// reading anything if the value is not an object.
func members(from *jsontext.Decoder, each func(name string) error) error {
	if kind := from.PeekKind(); kind != '{' {
		if kind == 0 || kind == '}' || kind == ']' {
			_, err := from.ReadToken()
			return err
		}
		return fmt.Errorf("want an object, got a value beginning with %q", rune(kind))
	}
	if _, err := from.ReadToken(); err != nil {
		return err
	}
	for from.PeekKind() != '}' {
		name, err := from.ReadValue()
		if err != nil {
			return err
		}
		if err := each(nameOf(name)); err != nil {
			return err
		}
	}
	_, err := from.ReadToken()
	return err
}

// nameOf returns the name of a member. Names with escapes are returned undecoded, since no relevant
// name has any.
func nameOf(quoted jsontext.Value) string {
	if len(quoted) < 2 || len(quoted) > 64 {
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}

// elements calls each for the elements of a list; each must read the element. A null is not a list.
func elements(from *jsontext.Decoder, each func() error) error {
	if kind := from.PeekKind(); kind != '[' {
		if kind == 0 || kind == '}' || kind == ']' {
			_, err := from.ReadToken()
			return err
		}
		return fmt.Errorf("want a list, got a value beginning with %q", rune(kind))
	}
	if _, err := from.ReadToken(); err != nil {
		return err
	}
	for from.PeekKind() != ']' {
		if err := each(); err != nil {
			return err
		}
	}
	_, err := from.ReadToken()
	return err
}

// nothing skips an unwanted result.
type nothing struct{}

func (nothing) read(from *jsontext.Decoder) error { return from.SkipValue() }

// boundedBody fails beyond a number of bytes.
type boundedBody struct {
	io.Reader
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fail(asked, errors.New("the answer is too large"))
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
