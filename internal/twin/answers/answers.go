// Package answers has the JSON shapes of the API that no program decodes; package site has the
// others. Members are in the order of section 2 of the specification. Tests compare encoders and
// scanners, byte by byte, with the JSON of these types.
package answers

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

// ListRecords is the answer to /records.
type ListRecords struct {
	Records []Record `json:"records"`
}

// A SearchEntry is a followed account in a search (2.4).
type SearchEntry struct {
	Record
	ENS SearchProfile `json:"ens"`
}

// A SearchProfile is the part of a profile that searches show.
type SearchProfile struct {
	Name   string `json:"name"`
	Avatar string `json:"avatar"`
}

// FollowingPage is the answer to /searchFollowing.
type FollowingPage struct {
	Following []SearchEntry `json:"following"`
}
