package site

import "time"

// A Header is one of an answer.
type Header struct{ Name, Value string }

// EveryHeader are the headers of every answer, whoever gives it: pages of any origin
// may read it, and no browser shall guess what it is.
func EveryHeader() []Header {
	return []Header{
		{"Access-Control-Allow-Origin", "*"},
		{"Access-Control-Expose-Headers", "ETag, X-Refresh, X-Request-Id, Retry-After"},
		{"X-Content-Type-Options", "nosniff"},
	}
}

// PreflightHeaders are those of answers to OPTIONS, beside EveryHeader.
func PreflightHeaders() []Header {
	return []Header{
		{"Allow", AllowedMethods},
		{"Access-Control-Allow-Methods", AllowedMethods},
		{"Access-Control-Allow-Headers", "*"},
		{"Access-Control-Max-Age", "86400"},
		{"Cache-Control", "public, max-age=86400"},
	}
}

// RetryAfter is when a client may ask again after a 503.
const RetryAfter = 5 * time.Second
