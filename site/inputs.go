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

// Inputs records the inputs of a site, so that others can reproduce and compare it. Facts of chains can be checked
// against the chains; profiles and badges from services cannot.
type Inputs struct {
	Generator string `json:"generator"` // version of followpress; "" if unknown
	// Tables maps each table of the snapshot to the digest of its rows, in order and in canonical form: see
	// snapshot.Digest. It does not depend on the files that hold them.
	Tables    map[string]SHA256 `json:"tables"`
	ListOps   *uint64           `json:"list_ops,omitempty"`  // from the snapshot's meta.json
	OpsFrom   string            `json:"ops_from,omitempty"`  // from the snapshot's meta.json
	Chains    []ChainInput      `json:"chains,omitempty"`    // sorted by ID; none if the snapshot does not record them
	Profiles  *ServiceInput     `json:"profiles,omitempty"`  // nil if the snapshot does not record it
	Badges    *ServiceInput     `json:"badges,omitempty"`    // nil if the snapshot does not record it
	Refreshed *SHA256           `json:"refreshed,omitempty"` // summary of refreshed data, if any could be merged: see refresh.AppendProfileRow
	// BadgesAsOf is the time that merged badges must be newer than, if it is not the root's as_of; "" without
	// Refreshed.
	BadgesAsOf string  `json:"badges_as_of,omitempty"`
	Ranks      *SHA256 `json:"ranks,omitempty"` // digest of the _ranks of an earlier site, if used
}

// A ChainInput is the block up to which a chain's events were read.
type ChainInput struct {
	ChainID uint64 `json:"chain_id"`
	Block   uint64 `json:"block"`
	Hash    string `json:"hash,omitempty"`   // hash of the block, 0x and 64 hexadecimal digits; "" if unknown
	Events  uint64 `json:"events,omitempty"` // events of all contracts, up to the block; 0 if unknown
}

// A ServiceInput describes a service's answers about accounts.
type ServiceInput struct {
	Source string `json:"source"`          // its URL without user, query and fragment, which may contain secrets
	From   string `json:"from,omitempty"`  // time of the oldest answer, RFC 3339
	Until  string `json:"until,omitempty"` // time of the newest answer, RFC 3339
	Digest SHA256 `json:"digest"`          // digest of the used answers, sorted by account
}

const (
	maxTables    = 32      // in a root
	maxChains    = 64      // in a root
	maxGenerator = 256     // bytes
	maxSource    = 2 << 10 // bytes
)

// maxInputs is the maximum size of Inputs as JSON, in bytes.
const maxInputs = 64 << 10

// UnmarshalJSON decodes and checks the members of a root or a snapshot's meta.json. The size is limited because a few
// bytes can encode many chains.
func (i *Inputs) UnmarshalJSON(data []byte) error {
	if len(data) > maxInputs {
		return fmt.Errorf("%d bytes of inputs, more than %d KiB", len(data), maxInputs>>10)
	}
	type members Inputs
	if err := json.Unmarshal(data, (*members)(i)); err != nil {
		return errors.New(JSONReason(err))
	}
	return i.check()
}

// check returns an error if a member is invalid.
func (i *Inputs) check() error {
	if err := checkLine("generator", i.Generator, maxGenerator); err != nil {
		return err
	}
	if len(i.Tables) > maxTables {
		return fmt.Errorf("tables: %d, more than %d", len(i.Tables), maxTables)
	}
	for name := range i.Tables {
		if len(name) > maxTables || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return fmt.Errorf("tables: %s is not a table", Quoted(name))
		}
	}
	return cmp.Or(checkTime("ops_from", i.OpsFrom), checkTime("badges_as_of", i.BadgesAsOf),
		checkChains(i.Chains), i.Profiles.check("profiles"), i.Badges.check("badges"))
}

// checkChains returns an error unless chains are sorted by ID and unique. Hashes may be missing.
func checkChains(chains []ChainInput) error {
	if len(chains) > maxChains {
		return fmt.Errorf("chains: %d, more than %d", len(chains), maxChains)
	}
	for i, c := range chains {
		if i > 0 && c.ChainID <= chains[i-1].ChainID {
			return fmt.Errorf("chains: %d comes after %d: sort them by chain_id, without duplicates", c.ChainID, chains[i-1].ChainID)
		}
		digits, found := strings.CutPrefix(c.Hash, "0x")
		if c.Hash != "" && (!found || len(digits) != 64 || strings.Trim(digits, "0123456789abcdef") != "") {
			return fmt.Errorf("chains: hash of the block of chain %d: %s is not 0x and 64 hexadecimal digits in lower case", c.ChainID, Quoted(c.Hash))
		}
	}
	return nil
}

// check returns an error if a member is invalid. A nil service is valid.
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

// checkLine returns an error unless text is one line of at most that many bytes.
func checkLine(member, text string, most int) error {
	switch {
	case len(text) > most:
		return fmt.Errorf("%s: %d bytes, more than %d", member, len(text), most)
	case !utf8.ValidString(text), strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%s: %s is not one line of text", member, Quoted(text))
	}
	return nil
}

// checkTime returns an error unless text is empty or an RFC 3339 time.
func checkTime(member, text string) error {
	if text == "" {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return fmt.Errorf("%s: %s is not a time like 2026-01-31T00:00:00Z (RFC 3339)", member, Quoted(text))
	}
	return nil
}
