package site

import json "github.com/goccy/go-json"

// JSON shapes of the API that programs decode, with members in the order of section 2 of the specification. Tests
// compare the generator's encoders with these types and those of internal/twin/answers.

// ListDetails is the answer to /details (2.5).
type ListDetails struct {
	Address     string  `json:"address"`
	ENS         Profile `json:"ens"`
	Ranks       Ranks   `json:"ranks"`
	PrimaryList *string `json:"primary_list"`
}

// A Profile is a name-service profile. Records, Chains and Errors are JSON objects; Normalize reduces them to texts.
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

	NoTexts int `json:"-"` // entries dropped by Normalize that are neither texts nor null
}

// Ranks are the positions of an account in the leaderboards, as decimals from "1"; "0" means unranked.
type Ranks struct {
	Mutuals   string `json:"mutuals_rank"`
	Followers string `json:"followers_rank"`
	Following string `json:"following_rank"`
	Top8      string `json:"top8_rank"`
	Blocks    string `json:"blocks_rank"`
}

// An Event describes an event, in snapshots and answers.
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
