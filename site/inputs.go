package site

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	json "github.com/goccy/go-json"
)

// Inputs says what a site was made of, so that others can make it again and compare. Members that are facts of chains
// can be checked against those; what services told of profiles and badges is input as it is.
type Inputs struct {
	Generator string `json:"generator"` // version of followpress; "" if it is not known
	// Tables has a digest of each table of the snapshot that was read, by its name: see snapshot.Digest. It is that of
	// the rows in canonical form, in their order, whatever files have them.
	Tables    map[string]SHA256 `json:"tables"`
	ListOps   *uint64           `json:"list_ops,omitempty"`  // of the snapshot's meta.json
	OpsFrom   string            `json:"ops_from,omitempty"`  // of the snapshot's meta.json
	Chains    []ChainInput      `json:"chains,omitempty"`    // by ID; none if the snapshot does not say
	Profiles  *ServiceInput     `json:"profiles,omitempty"`  // nil if the snapshot does not say
	Badges    *ServiceInput     `json:"badges,omitempty"`    // nil if the snapshot does not say
	Refreshed *SHA256           `json:"refreshed,omitempty"` // of what refreshes kept, if some of it could be merged: see refresh.AppendProfileRow
	// BadgesAsOf is the time that merged badges are newer than, if it is not as_of of the root; "" without Refreshed.
	BadgesAsOf string  `json:"badges_as_of,omitempty"`
	Ranks      *SHA256 `json:"ranks,omitempty"` // of the _ranks of an earlier site, if they were used
}

// A ChainInput is the block up to which the events of a chain were read.
type ChainInput struct {
	ChainID uint64 `json:"chain_id"`
	Block   uint64 `json:"block"`
	Hash    string `json:"hash,omitempty"`   // of the block, 0x and 64 hexadecimal digits; "" if the source does not know it
	Events  uint64 `json:"events,omitempty"` // of all contracts, up to the block; 0 also if the source does not know
}

// A ServiceInput is what a service told of accounts.
type ServiceInput struct {
	Source string `json:"source"`          // its URL without user, query and fragment: secrets may be in those
	From   string `json:"from,omitempty"`  // time of the oldest answer, RFC 3339
	Until  string `json:"until,omitempty"` // time of the newest answer, RFC 3339
	Digest SHA256 `json:"digest"`          // of the answers that were used, by account
}

const (
	maxTables    = 32      // that a root may name
	maxChains    = 64      // that a root may name
	maxGenerator = 256     // bytes
	maxSource    = 2 << 10 // bytes
)

// maxInputs bounds the JSON of Inputs, in bytes.
const maxInputs = 64 << 10

// UnmarshalJSON decodes and checks all members that are there: those of a root, or of a snapshot's meta.json. The size is
// bounded because few bytes can be many chains.
func (i *Inputs) UnmarshalJSON(data []byte) error {
	if len(data) > maxInputs {
		return fmt.Errorf("%d bytes of what it was made of, more than %d KiB", len(data), maxInputs>>10)
	}
	type members Inputs
	if err := json.Unmarshal(data, (*members)(i)); err != nil {
		return errors.New(JSONReason(err))
	}
	return i.check()
}

// check returns an error if a member is not valid.
func (i *Inputs) check() error {
	if err := checkLine("generator", i.Generator, maxGenerator); err != nil {
		return err
	}
	if len(i.Tables) > maxTables {
		return fmt.Errorf("tables: %d, more than %d", len(i.Tables), maxTables)
	}
	for name := range i.Tables {
		if len(name) > maxTables || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return fmt.Errorf("tables: %s is no name of a table", Quoted(name))
		}
	}
	return cmp.Or(checkTime("ops_from", i.OpsFrom), checkTime("badges_as_of", i.BadgesAsOf),
		checkChains(i.Chains), i.Profiles.check("profiles"), i.Badges.check("badges"))
}

// checkChains returns an error unless chains are as a root and meta.json have them: each once, by ID. The hash of
// a block may be missing.
func checkChains(chains []ChainInput) error {
	if len(chains) > maxChains {
		return fmt.Errorf("chains: %d, more than %d", len(chains), maxChains)
	}
	for i, c := range chains {
		if i > 0 && c.ChainID <= chains[i-1].ChainID {
			return fmt.Errorf("chains: %d comes after %d: sort them by chain_id, each once", c.ChainID, chains[i-1].ChainID)
		}
		digits, found := strings.CutPrefix(c.Hash, "0x")
		if c.Hash != "" && (!found || len(digits) != 64 || strings.Trim(digits, "0123456789abcdef") != "") {
			return fmt.Errorf("chains: hash of the block of chain %d: %s is not 0x and 64 hexadecimal digits in lower case", c.ChainID, Quoted(c.Hash))
		}
	}
	return nil
}

// check returns an error unless the service is as a root and meta.json have it. None is valid.
func (s *ServiceInput) check(member string) error {
	if s == nil {
		return nil
	}
	if err := checkLine(member+": source", s.Source, maxSource); err != nil {
		return err
	}
	if u, err := url.Parse(s.Source); err == nil && (u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		return fmt.Errorf("%s: source has a user, a query or a fragment, which may be secrets: leave them out", member)
	}
	if s.Digest == (SHA256{}) {
		return fmt.Errorf("%s: digest: missing", member)
	}
	return cmp.Or(checkTime(member+": from", s.From), checkTime(member+": until", s.Until))
}

// checkLine returns an error unless a text is one line of at most that many bytes.
func checkLine(member, text string, most int) error {
	switch {
	case len(text) > most:
		return fmt.Errorf("%s: %d bytes, more than %d", member, len(text), most)
	case !utf8.ValidString(text), strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%s: %s is not one line of text", member, Quoted(text))
	}
	return nil
}

// checkTime returns an error unless a text is empty or a time.
func checkTime(member, text string) error {
	if text == "" {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return fmt.Errorf("%s: %s is not a time like 2026-01-31T00:00:00Z (RFC 3339)", member, Quoted(text))
	}
	return nil
}
