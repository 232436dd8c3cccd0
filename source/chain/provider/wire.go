package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/rawjson"
)

// A reader decodes a result. It keeps only the wanted parts in memory, and stops at the first invalid
// value. Other results are decoded as JSON.
type reader interface {
	read(from *input)
}

// A calledError is a JSON-RPC error.
type calledError struct {
	code int
	text string
}

func (e *calledError) Error() string { return e.text }

var (
	errCut      = errors.New("it does not end like JSON")
	errOther    = errors.New("it is not JSON of the expected form")
	errMissing  = errors.New("its answer omits one of the calls")
	errNoResult = errors.New("its answer has no result")
	errNotAList = fail(asked, errors.New("the answer to a batch is not a list"))
)

// post makes a request with calls, as a batch or with a single call. It returns an error for each call.
func (n *node) post(ctx context.Context, calls []call, batch bool) (errs []error, err error) {
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
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode/100 != 2 { // including redirects: a request may carry a key, which other servers must not get
		return nil, failedStatus(answer, n.hide)
	}
	most := n.o.MaxAnswer
	if calls[0].method == "eth_getBlockReceipts" {
		most *= receiptsFactor
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > most:
		return nil, fail(asked, errors.New("the answer is too large"))
	case batch:
		return readBatch(text, calls)
	}
	from := newInput(text)
	one, err := from.answer(), from.end(errCut)
	if err != nil {
		return nil, err
	}
	return []error{one.take(calls[0].result)}, nil
}

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

// readBatch decodes a list of answers. An object is the error of all calls, and so is an error without
// an ID: nodes that reject a batch omit it.
func readBatch(text []byte, calls []call) (errs []error, err error) {
	if text = bytes.TrimLeft(text, " \t\r\n"); bytes.HasPrefix(text, []byte{'{'}) {
		from := newInput(text)
		one, err := from.answer(), from.end(errCut)
		if err == nil {
			err = one.called()
		}
		if err == nil {
			err = errNotAList
		}
		return nil, err
	}
	var all []rpcAnswer
	from := newInput(text)
	for from.Begin('['); from.More(']') && len(all) <= len(calls); {
		all = append(all, from.answer())
	}
	if len(all) > len(calls) {
		return nil, errors.New("more answers than calls")
	}
	if err := from.end(errCut); err != nil {
		return nil, err
	}
	errs = make([]error, len(calls))
	for i := range errs {
		errs[i] = errMissing
	}
	for _, one := range all {
		i, err := strconv.Atoi(string(bytes.Trim(one.id, `"`)))
		if err == nil && i >= 0 && i < len(calls) {
			errs[i] = one.take(calls[i].result)
		} else if err := one.called(); err != nil {
			return nil, err
		}
	}
	return errs, nil
}

// An rpcAnswer has the parts of an answer to a call.
type rpcAnswer struct{ id, result, err []byte }

// take decodes the result, or returns the error.
func (a *rpcAnswer) take(result any) error {
	if err := a.called(); err != nil {
		return err
	}
	if a.result == nil {
		return errNoResult
	}
	if result, ok := result.(reader); ok {
		from := newInput(a.result)
		result.read(from)
		return from.end(errOther)
	}
	return json.Unmarshal(a.result, result)
}

// called returns the error of the call; nil for none. Some nodes send a string.
func (a *rpcAnswer) called() error {
	e := &calledError{}
	switch {
	case len(a.err) == 0 || string(a.err) == "null":
		return nil
	case a.err[0] != '{':
		e.text = textOf(a.err)
		return e
	}
	from := newInput(a.err)
	for from.Begin('{'); from.More('}'); {
		switch name, value := from.Name(), from.Skip(); string(name) {
		case "message":
			e.text = textOf(value)
		case "code":
			e.code, _ = strconv.Atoi(string(value)) // an error may lack a code
		}
	}
	return e
}

// maxErrorText limits the inspected bytes of an error.
const maxErrorText = 64 << 10

// textOf returns the content of a string, or the JSON of another value.
func textOf(value []byte) (text string) {
	if len(value) > maxErrorText || json.Unmarshal(value, &text) != nil {
		return string(value[:min(len(value), maxErrorText)])
	}
	return text
}

// An input is JSON from a node. After an error it has no more members and elements.
type input struct {
	rawjson.Scanner
	member []byte // name of the member that is being read, for errors
	err    error
}

func newInput(text []byte) *input {
	from := &input{}
	from.Reset(text)
	return from
}

// fail ends the input with an error about a value.
func (from *input) fail(err error) {
	if from.Failed() {
		return
	}
	if from.member != nil {
		err = fmt.Errorf("%s: %w", from.member, err)
	}
	from.err = err
	from.Fail()
}

// end returns the first error, or malformed if the text is not JSON of the expected form.
func (from *input) end(malformed error) error {
	if from.err == nil && !from.Done() {
		if from.err = malformed; from.member != nil {
			from.err = fmt.Errorf("%s: %w", from.member, malformed)
		}
	}
	return from.err
}

// answer reads the parts of an answer.
func (from *input) answer() (a rpcAnswer) {
	for from.Begin('{'); from.More('}'); {
		switch name, value := from.Name(), from.Skip(); string(name) {
		case "id":
			a.id = value
		case "result":
			a.result = value
		case "error":
			a.err = value
		}
	}
	return a
}

// members calls each for the members of an object; each must read the value. It fails without one of
// the needed members. After a failure, from.member stays the one that failed.
func (from *input) members(each func(name []byte), needed ...string) {
	outer := from.member
	for from.Begin('{'); from.More('}'); {
		name := from.Name()
		needed = slices.DeleteFunc(needed, func(n string) bool { return n == string(name) })
		from.member = name
		each(name)
	}
	if from.Failed() {
		return
	}
	from.member = outer
	if len(needed) > 0 {
		from.fail(fmt.Errorf("it has no %s", strings.Join(needed, ", ")))
	}
}
