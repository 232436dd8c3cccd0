package site

import "time"

// A Header is an HTTP header of a response.
type Header struct{ Name, Value string }

// EveryHeader returns the headers of every response of the fallback and of edges. They let pages of any origin read
// it (CORS) and keep browsers from guessing its type.
func EveryHeader() []Header {
	return []Header{
		{"Access-Control-Allow-Origin", "*"},
		{"Access-Control-Expose-Headers", "ETag, X-Refresh, X-Request-Id, Retry-After, X-As-Of, X-Heads, X-Finalized, Accept-Ranges, Content-Range"},
		{"X-Content-Type-Options", "nosniff"},
	}
}

// PreflightHeaders returns the headers of responses to OPTIONS, in addition to EveryHeader.
func (c Config) PreflightHeaders() []Header {
	methods := allowedMethods
	if c.EFP() {
		methods = allMethods
	}
	return []Header{
		{"Allow", methods},
		{"Access-Control-Allow-Methods", methods},
		{"Access-Control-Allow-Headers", "*"},
		{"Access-Control-Max-Age", "86400"},
		{"Cache-Control", "public, max-age=86400"},
	}
}

// RetryAfter is the value of Retry-After in a 503 response.
const RetryAfter = 5 * time.Second
