package render

import (
	"bytes"
	"fmt"
	"time"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/snapshot"
)

// The encoders append JSON to a buffer, which is reused for the next object, because a site has
// hundreds of thousands of them. Their output equals go-json's for the shapes of package site;
// tests compare the two.

// Estimated sizes of parts of objects, needed before rendering.
const (
	ObjectBytes = 512 // without listed items
	UserBytes   = 128 // address or name, and a number
)

// WithoutComma removes a comma at the end.
func WithoutComma(b []byte) []byte { return bytes.TrimSuffix(b, []byte(",")) }

func appendTags(b []byte, tags []string) []byte {
	b = append(b, '[')
	for _, tag := range tags {
		b = append(rawjson.AppendString(b, tag), ',')
	}
	return append(WithoutComma(b), ']')
}

// AppendTexts appends JSON strings, each after a comma.
func AppendTexts(b []byte, texts ...[]byte) []byte {
	for _, text := range texts {
		b = append(append(b, ','), text...)
	}
	return b
}

func appendMember(b []byte, name, value string) []byte {
	return rawjson.AppendString(fmt.Appendf(b, `,"%s":`, name), value)
}

// appendJoined appends texts with commas between them.
func appendJoined(b []byte, texts [][]byte) []byte {
	for _, text := range texts {
		b = append(append(b, text...), ',')
	}
	return WithoutComma(b)
}

// appendTime appends a time in milliseconds since the Unix epoch.
func appendTime(b []byte, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
}

// ShownTime returns a time as the API shows it. An unknown time is 0: the API shows 1970.
func ShownTime(added int64) int64 {
	if added == snapshot.NoTime {
		return 0
	}
	return added
}
