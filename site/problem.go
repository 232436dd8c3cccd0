package site

import (
	"maps"
	"net/http"
	"slices"

	json "github.com/goccy/go-json"
)

// A Problem is an error response (RFC 9457). Its text is fixed, so that any edge can serve its body as an object.
type Problem struct {
	Name         string // last segment of its key
	Status       int    // HTTP status
	Detail       string // one or two sentences for developers of clients
	CacheControl string // Cache-Control of the response
}

// The problems of the API.
var (
	BadTokenID = &Problem{"bad-token-id", http.StatusBadRequest,
		"The token_id must be a whole decimal number without sign or leading zeros, of at most 78 digits.", cacheError}
	badLimit = &Problem{"bad-limit", http.StatusBadRequest,
		"The limit must be a whole number of at least 1, digits only, at most 18 of them.", cacheError}
	badOffset = &Problem{"bad-offset", http.StatusBadRequest,
		"The offset must be a whole number of at least 0, digits only, at most 18 of them.", cacheError}
	badIncludeTags = &Problem{"bad-include-tags", http.StatusBadRequest,
		"includeTags must be true or false.", cacheError}
	badTerm = &Problem{"bad-term", http.StatusBadRequest,
		"The term must not be longer than 255 bytes.", cacheError}
	NoSuchList = &Problem{"no-such-list", http.StatusNotFound,
		"There is no list with this token_id.", cacheError}
	NoSuchName = &Problem{"no-such-name", http.StatusNotFound,
		"No account has this name. An address is 0x and 40 hexadecimal digits.", cacheError}
	NoSuchRoute = &Problem{"no-such-route", http.StatusNotFound,
		"There is nothing at this path.", cacheError}
	MethodNotAllowed = &Problem{"method-not-allowed", http.StatusMethodNotAllowed,
		"Only GET, HEAD and OPTIONS are allowed.", cacheNever}
	TooManyRefreshes = &Problem{"too-many-refreshes", http.StatusTooManyRequests,
		"This was refreshed a moment ago, or too much is being refreshed. Try again later.", cacheNever}
	InternalError = &Problem{"internal-error", http.StatusInternalServerError,
		"The request could not be answered.", cacheNever}
	Unavailable = &Problem{"unavailable", http.StatusServiceUnavailable,
		"The data cannot be read at the moment. Try again in a few seconds.", cacheNever}
)

// Problems of APIEFP only.
var (
	badLeader = &Problem{"bad-leader", http.StatusBadRequest,
		"The leader must be an address or a name.", cacheError}
	BadRelationships = &Problem{"bad-relationships", http.StatusBadRequest,
		"The tag must not be empty, and the direction must be in, incoming, out or outgoing.", cacheError}
	NoAvatar = &Problem{"no-avatar", http.StatusNotFound,
		"The account has no avatar with an http or https URL.", cacheError}
	BadBatch = &Problem{"bad-batch", http.StatusBadRequest,
		"The body must be a JSON array of 1 to 1,000 addresses, names or nulls.", cacheNever}
	PostOnly = &Problem{"post-only", http.StatusMethodNotAllowed,
		"Only POST and OPTIONS are allowed.", cacheNever}
	BodyTooLarge = &Problem{"body-too-large", http.StatusRequestEntityTooLarge,
		"The body must not be longer than 131,072 bytes.", cacheNever}
)

// Problems returns all problems in the order in which the generator renders them.
func (c Config) Problems() []*Problem {
	all := []*Problem{
		BadTokenID, badLimit, badOffset, badIncludeTags, badTerm, NoSuchList, NoSuchName, NoSuchRoute,
		MethodNotAllowed, TooManyRefreshes, InternalError, Unavailable,
	}
	if c.EFP() {
		all = append(all, badLeader, BadRelationships, NoAvatar, BadBatch, BodyTooLarge, PostOnly)
	}
	known := c.Params()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if p := known[name].Problem; p != nil && !slices.Contains(all, p) {
			all = append(all, p) // defined in the table of parameters only
		}
	}
	return all
}

// Allow returns the value of the Allow header of a 405 response.
func (p *Problem) Allow() string {
	if p == PostOnly {
		return postMethods
	}
	return allowedMethods
}

// Key returns the key of the object that holds the body.
func (p *Problem) Key() Key { return Key(errorPrefix + p.Name) }

// Title returns the standard text of the status.
func (p *Problem) Title() string { return http.StatusText(p.Status) }

// Body returns the JSON body of the response.
func (p *Problem) Body() []byte {
	body, err := json.MarshalWithOption(struct {
		Type     string `json:"type"`
		Title    string `json:"title"`
		Status   int    `json:"status"`
		Detail   string `json:"detail"`
		Response string `json:"response"` // the member that clients of the original service read
	}{"about:blank", p.Title(), p.Status, p.Detail, p.Detail}, json.DisableHTMLEscape())
	if err != nil {
		panic("site: " + err.Error()) // strings and a number always encode
	}
	return body
}
