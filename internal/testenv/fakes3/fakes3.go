// Package fakes3 is a small S3 server in memory that can lack features, as some services do. Tests
// use it where no installable server lacks the feature; internal/testenv/servers has real ones.
package fakes3

import (
	"bytes"
	"cmp"
	"crypto/md5" //nolint:gosec // the ETags of S3
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Conditions select how the server treats If-Match and If-None-Match of a PUT.
type Conditions int

// Ways to treat conditions.
const (
	Kept    Conditions = iota
	Refused            // the answer is 501, as it should be without conditional writes
	Ignored            // the object is put, regardless of the condition
)

// Formats of ETags.
const (
	Quoted   = `"%s"`
	Unquoted = `%s`
	Weak     = `W/"%s"`
	None     = `none of %s` // as a Match, it refuses every ETag
)

// Lacks selects features that the server lacks. The zero value lacks only the unpacking of
// archives.
type Lacks struct {
	Conditions Conditions
	Deletes    int  // status of the answer to DeleteObjects, such as 400; 0 means that it works
	ContentMD5 bool // the digest of a PUT is not compared
	Metadata   bool // x-amz-meta-… is not kept
	ListV2     bool // list-type=2 is answered like version 1
	PutETag    bool // the answer to a PUT has no ETag

	// ETag is the format of ETags in answers; "" means Quoted. Match is the format that If-Match
	// must have; "" means any.
	ETag, Match string

	// OtherETags selects bodies whose ETags are not MD5s; nil selects none.
	OtherETags func(body []byte) bool
	// Store changes the stored body; nil stores it unchanged.
	Store func(key string, body []byte) []byte
}

// A Server has one bucket, which exists under any name. It checks no signatures.
type Server struct {
	Endpoint string

	mu       sync.Mutex
	lacks    Lacks
	objects  map[string]object
	requests map[string]int
}

type object struct {
	body     []byte
	etag     string
	modified time.Time
	header   http.Header
}

// Start starts a server, which ends with the test, and sets credentials for it.
func Start(t testing.TB, lacks Lacks) *Server {
	t.Helper()
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "fake", "AWS_SECRET_ACCESS_KEY": "fakefake", "AWS_SESSION_TOKEN": ""} {
		t.Setenv(name, value)
	}
	s := &Server{lacks: lacks, objects: map[string]object{}, requests: map[string]int{}}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	s.Endpoint = front.URL
	return s
}

// Lack changes what the server lacks.
func (s *Server) Lack(lacks Lacks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lacks = lacks
}

// Requests counts the requests so far, by method.
func (s *Server) Requests(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[method]
}

// Body returns the body stored under a key; nil for none.
func (s *Server) Body(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[key].body
}

// Keys returns the keys of all objects, in order.
func (s *Server) Keys() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.objects {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// ServeHTTP answers requests for the bucket or its objects, in the form /BUCKET/KEY.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[r.Method]++
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodPut && key != "":
		s.put(w, r, key, body)
	case r.Method == http.MethodPut && r.URL.RawQuery == "": // HeadBucket: the bucket exists
	case r.Method == http.MethodDelete && key != "":
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost && query.Has("delete"):
		s.deleteSeveral(w, body)
	case key == "" && r.Method == http.MethodGet:
		s.list(w, query)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		s.get(w, r, key)
	default:
		fail(w, http.StatusNotImplemented, "NotImplemented")
	}
}

// fail answers like S3.
func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}

// matches compares If-Match with an ETag.
func (l Lacks) matches(header, etag string) bool {
	if l.Match == "" {
		return strings.Trim(strings.TrimPrefix(header, "W/"), `"`) == etag
	}
	return header == fmt.Sprintf(l.Match, etag)
}

// tag formats an ETag for an answer.
func (l Lacks) tag(etag string) string { return fmt.Sprintf(cmp.Or(l.ETag, Quoted), etag) }

// check compares an object with the conditions of a PUT. It returns the error to answer with, if any.
func (s *Server) check(header http.Header, key string) (status int, code string) {
	was, exists := s.objects[key]
	match, absent := header.Get("If-Match"), header.Get("If-None-Match")
	switch {
	case match+absent == "", s.lacks.Conditions == Ignored:
		return 0, ""
	case s.lacks.Conditions == Refused:
		return http.StatusNotImplemented, "NotImplemented"
	case match != "" && !exists: // as Amazon S3 does
		return http.StatusNotFound, "NoSuchKey"
	case absent == "*" && exists, match != "" && !s.lacks.matches(match, was.etag):
		return http.StatusPreconditionFailed, "PreconditionFailed"
	}
	return 0, ""
}

func (s *Server) put(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	if status, code := s.check(r.Header, key); status != 0 {
		fail(w, status, code)
		return
	}
	sum := md5.Sum(body) //nolint:gosec // as above
	if sent := r.Header.Get("Content-Md5"); !s.lacks.ContentMD5 && sent != "" && sent != base64.StdEncoding.EncodeToString(sum[:]) {
		fail(w, http.StatusBadRequest, "BadDigest")
		return
	}
	if s.lacks.Store != nil {
		body = s.lacks.Store(key, body)
		sum = md5.Sum(body) //nolint:gosec // as above
	}
	if s.lacks.OtherETags != nil && s.lacks.OtherETags(body) {
		sum = md5.Sum(fmt.Append(nil, key, len(s.objects), time.Now())) //nolint:gosec // as above
	}
	o := object{body: body, etag: hex.EncodeToString(sum[:]), modified: time.Now(), header: http.Header{}}
	for name, values := range r.Header {
		if name == "Content-Type" || name == "Cache-Control" || !s.lacks.Metadata && strings.HasPrefix(name, "X-Amz-Meta-") {
			o.header[name] = values
		}
	}
	s.objects[key] = o
	if !s.lacks.PutETag {
		w.Header().Set("ETag", s.lacks.tag(o.etag))
	}
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, key string) {
	o, ok := s.objects[key]
	if !ok {
		fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	for name, values := range o.header {
		w.Header()[name] = values
	}
	w.Header().Set("ETag", s.lacks.tag(o.etag))
	w.Header().Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
	http.ServeContent(w, r, "", o.modified, bytes.NewReader(o.body))
}

func (s *Server) deleteSeveral(w http.ResponseWriter, body []byte) {
	if s.lacks.Deletes != 0 {
		code := "NotImplemented"
		if s.lacks.Deletes == http.StatusMethodNotAllowed {
			code = "MethodNotAllowed"
		}
		fail(w, s.lacks.Deletes, code)
		return
	}
	var asked struct {
		Object []struct{ Key string }
	}
	if xml.Unmarshal(body, &asked) != nil {
		fail(w, http.StatusBadRequest, "MalformedXML")
		return
	}
	type key struct{ Key string }
	answer := struct {
		XMLName xml.Name `xml:"DeleteResult"`
		Deleted []key
	}{}
	for _, o := range asked.Object {
		delete(s.objects, o.Key)
		answer.Deleted = append(answer.Deleted, key(o))
	}
	reply(w, answer)
}

func reply(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(answer) // the client may have gone
}

func (s *Server) list(w http.ResponseWriter, query url.Values) {
	type content struct {
		Key          string
		LastModified string
		ETag         string
		Size         int
	}
	answer := struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		EncodingType          string
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []content
	}{EncodingType: "url"}
	after := max(query.Get("start-after"), query.Get("continuation-token"), query.Get("marker"))
	var keys []string
	for key := range s.objects {
		if strings.HasPrefix(key, query.Get("prefix")) && key > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	const page = 100
	if len(keys) > page {
		keys, answer.IsTruncated = keys[:page], true
		if !s.lacks.ListV2 {
			answer.NextContinuationToken = keys[page-1]
		}
	}
	for _, key := range keys {
		o := s.objects[key]
		answer.Contents = append(answer.Contents, content{url.QueryEscape(key), o.modified.UTC().Format(time.RFC3339), s.lacks.tag(o.etag), len(o.body)})
	}
	reply(w, answer)
}
