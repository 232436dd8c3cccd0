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

// A reader is a result that is read as it comes, so that an answer takes no more memory than what
// is wanted of it. Results that are none are read into memory first, all of their JSON.
type reader interface {
	read(from *jsontext.Decoder) error
}

// A calledError is an error that a node answers to a call.
type calledError struct {
	code int
	text string
}

func (e *calledError) Error() string { return e.text }

var (
	errMissing  = errors.New("its answer lacks that to one of the calls")
	errNoResult = errors.New("its answer has no result")
	errNotAList = fail(asked, errors.New("its answer to several calls is not a list"))
)

// post makes a request with calls, as a batch or with one alone, whose answer has at most that many
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
		// The connection can be used again if the answer was read to its end.
		_, _ = io.CopyN(io.Discard, answer.Body, maxTail)
		_ = answer.Body.Close()
	}()
	if answer.StatusCode/100 != 2 { // also a redirect: a request may carry a key, which is not for other servers
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

// maxTail is how much of an answer is read after its end.
const maxTail = 64 << 10

// requestOf is the text of calls, whose ids are their indexes.
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

// readBatch reads a list of answers. An object is the error of all calls.
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
		return a.otherKind(errors.New("its answer has more answers than calls were made"))
	}
	for i, done := range a.done {
		if !done {
			a.errs[i] = errMissing
		}
	}
	return nil
}

// otherKind is the error where another kind of value comes, unless none comes at all.
func (a *answers) otherKind(err error) error {
	if a.from.PeekKind() == 0 {
		if _, cut := a.from.ReadToken(); cut != nil {
			return cut
		}
	}
	return err
}

// readOne reads an answer, which has an id before or after its result. Alone it is that to the
// first call, whatever its id.
func (a *answers) readOne(alone bool) error {
	which := -1
	if alone {
		which = 0
	}
	var early jsontext.Value // a result that came before its id
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
		return called // of what there was to call: nodes without the id refuse the batch
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

// readCalledError reads the error of a call, nil for null. Some nodes answer a text.
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
			e.code, _ = strconv.Atoi(string(text)) // an error without a code is one too
		}
		return err
	})
}

// maxErrorText is how many bytes of an error are looked at.
const maxErrorText = 64 << 10

// textOf is what a text says, or the JSON of another value.
func textOf(value jsontext.Value) string {
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		text = value
	}
	return string(text[:min(len(text), maxErrorText)])
}

// members calls each for the members of an object; it has to read the value. What is no object is
// an error before anything of it is read.
func members(from *jsontext.Decoder, each func(name string) error) error {
	if kind := from.PeekKind(); kind != '{' {
		if kind == 0 || kind == '}' || kind == ']' {
			_, err := from.ReadToken()
			return err
		}
		return fmt.Errorf("a value that begins with %q where an object belongs", rune(kind))
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

// nameOf is the name of a member, or what is in its quotes if that has escapes, which no name does
// that matters.
func nameOf(quoted jsontext.Value) string {
	if len(quoted) < 2 || len(quoted) > 64 {
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}

// elements calls each for the elements of a list; it has to read the value. A null is no list.
func elements(from *jsontext.Decoder, each func() error) error {
	if kind := from.PeekKind(); kind != '[' {
		if kind == 0 || kind == '}' || kind == ']' {
			_, err := from.ReadToken()
			return err
		}
		return fmt.Errorf("a value that begins with %q where a list belongs", rune(kind))
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

// nothing is a result that is not wanted.
type nothing struct{}

func (nothing) read(from *jsontext.Decoder) error { return from.SkipValue() }

// boundedBody ends with a failure beyond a number of bytes.
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
