package site

import json "github.com/goccy/go-json"

// The JSON shapes of the API, members in the order of the specification's
// section 2. The generator's encoders are tested against these.

// A FollowersEntry is a row of the followers leaderboard (2.1).
type FollowersEntry struct {
	Rank      int    `json:"rank"`
	Address   string `json:"address"`
	Followers string `json:"followers_count"`
}

// A FollowingEntry is a row of the following leaderboard (2.2).
type FollowingEntry struct {
	Rank      int    `json:"rank"`
	Address   string `json:"address"`
	Following string `json:"following_count"`
}

// A Record is an entry of a list (2.3).
type Record struct {
	Version    uint32   `json:"version"`
	RecordType string   `json:"record_type"`
	Data       string   `json:"data"`
	Tags       []string `json:"tags"`
}

// ListRecords answers /records.
type ListRecords struct {
	Records []Record `json:"records"`
}

// A SearchEntry is a followed account (2.4).
type SearchEntry struct {
	Record
	ENS SearchProfile `json:"ens"`
}

// A SearchProfile is the part of a profile that a search shows.
type SearchProfile struct {
	Name   string `json:"name"`
	Avatar string `json:"avatar"`
}

// FollowingPage answers /searchFollowing.
type FollowingPage struct {
	Following []SearchEntry `json:"following"`
}

// ListDetails answers /details (2.5).
type ListDetails struct {
	Address     string  `json:"address"`
	ENS         Profile `json:"ens"`
	Ranks       Ranks   `json:"ranks"`
	PrimaryList *string `json:"primary_list"`
}

// A Profile is a name-service profile. Records, Chains and Errors hold JSON
// objects, passed through.
type Profile struct {
	Name     string          `json:"name"`
	Avatar   string          `json:"avatar"`
	Header   string          `json:"header"`
	Display  string          `json:"display"`
	Records  json.RawMessage `json:"records"`
	Chains   json.RawMessage `json:"chains"`
	Fresh    int64           `json:"fresh"` // milliseconds since the Unix epoch
	Resolver string          `json:"resolver"`
	Errors   json.RawMessage `json:"errors"`
}

// Ranks are the positions of an account, as decimals; "0" is unranked.
type Ranks struct {
	Mutuals   string `json:"mutuals_rank"`
	Followers string `json:"followers_rank"`
	Following string `json:"following_rank"`
	Top8      string `json:"top8_rank"`
	Blocks    string `json:"blocks_rank"`
}

// A Badge is a badge item (2.6).
type Badge struct {
	EventID      string      `json:"eventId"`
	Participated bool        `json:"participated"`
	Collection   *Collection `json:"collection"`
}

// A Collection is the token that an account holds of an event.
type Collection struct {
	Event   Event  `json:"event"`
	TokenID string `json:"tokenId"`
	Owner   string `json:"owner"`
}

// An Event describes an event, in a snapshot as in an answer.
type Event struct {
	ID          uint64 `json:"id"`
	FancyID     string `json:"fancy_id"`
	Name        string `json:"name"`
	EventURL    string `json:"event_url"`
	ImageURL    string `json:"image_url"`
	Country     string `json:"country"`
	City        string `json:"city"`
	Description string `json:"description"`
	Year        int    `json:"year"`
	StartDate   string `json:"start_date"`
	EndDate     string `json:"end_date"`
	ExpiryDate  string `json:"expiry_date"`
}
