package site

import "time"

// A Header is an HTTP header of an answer.
type Header struct{ Name, Value string }

// Headers of the answers of a live site: the time of the graph, how far its chains were read, and up to where that is
// confirmed.
const (
	HeaderAsOf      = "X-As-Of"
	HeaderHeads     = "X-Heads"
	HeaderFinalized = "X-Finalized"
)

// EveryHeader lists the headers of every answer, from the fallback and from edges alike. They let
// pages of any origin read the answer (CORS) and keep browsers from guessing its type.
func EveryHeader() []Header {
	return []Header{
		{"Access-Control-Allow-Origin", "*"},
		{"Access-Control-Expose-Headers", "ETag, X-Refresh, X-Request-Id, Retry-After, X-As-Of, X-Heads, X-Finalized, Accept-Ranges, Content-Range"},
		{"X-Content-Type-Options", "nosniff"},
	}
}

// PreflightHeaders lists the headers of answers to OPTIONS, in addition to EveryHeader.
func (c Config) PreflightHeaders() []Header {
	methods := AllowedMethods
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

// RetryAfter is how long a client should wait after a 503.
const RetryAfter = 5 * time.Second
