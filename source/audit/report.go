package audit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/followpress/followpress/internal/sample"
)

// A Report is the result of an audit.
type Report struct {
	Kind    string  `json:"kind"`    // "site" or "snapshot"
	AsOf    string  `json:"as_of"`   // as_of of the subject
	Seed    uint64  `json:"seed"`    // seed of the sample
	All     bool    `json:"all"`     // whether all lists were compared
	Lists   int     `json:"lists"`   // lists of the subject
	Supply  uint64  `json:"supply"`  // lists according to the registry
	Missing uint64  `json:"missing"` // lists that the subject lacks
	Sampled int     `json:"sampled"` // lists chosen for comparison: the sum of the counts below
	Right   int     `json:"right"`
	Wrong   int     `json:"wrong"`
	LeftOut int     `json:"left_out"` // lists that changed since, if no node has the state of the block
	Untold  int     `json:"untold"`   // lists that the contracts did not answer about completely
	Seconds float64 `json:"seconds"`

	Compared    Compared     `json:"compared"`
	Differences []Difference `json:"differences"` // the first ones
	More        uint64       `json:"more"`        // number of further differences
	Skipped     []string     `json:"skipped"`     // the first lists that were skipped
	Refused     []Difference `json:"refused"`     // the first reasons why something was not answered
	Chains      []Chain      `json:"chains"`
	Bound       *float64     `json:"bound,omitempty"` // upper bound of the share of wrong lists, with sample.Confidence, counting each list not compared as wrong; nil unless a sample was compared
}

// Compared counts the facts that were compared.
type Compared struct {
	Owners     int    `json:"owners"` // for a site, only where they make a difference
	Places     int    `json:"places"`
	Users      int    `json:"users"`
	Primary    int    `json:"primary_lists"`
	Slots      int    `json:"slots"`
	Operations uint64 `json:"operations"` // operations replayed
	Records    uint64 `json:"records"`
}

// A Difference is a fact of a list that differs from the contracts. Its strings have no control
// characters.
type Difference struct {
	List string `json:"list"` // "" if it is not about one list
	Fact string `json:"fact"`
	Text string `json:"text"`
}

func (d Difference) String() string {
	if d.List == "" {
		return d.Fact + ": " + d.Text
	}
	return fmt.Sprintf("list %s, %s: %s", d.List, d.Fact, d.Text)
}

// A Chain describes how one chain was asked.
type Chain struct {
	ID       uint64   `json:"id"`
	Name     string   `json:"name"`
	Block    uint64   `json:"block"` // block of the site
	Time     string   `json:"time"`  // time of that block, RFC 3339
	Hashed   bool     `json:"hash"`  // whether the site names the hash of that block
	After    uint64   `json:"after"` // block after which the contracts were asked last
	Host     string   `json:"host"`  // host asked last
	Requests int64    `json:"requests"`
	Received int64    `json:"received"`         // bytes received
	Untrue   []string `json:"untrue,omitempty"` // hosts that answer after other blocks than requested
}

func (r *Report) differ(d Difference) {
	if len(r.Differences) == mostNamed {
		r.More++
		return
	}
	r.Differences = append(r.Differences, d)
}

func (r *Report) refuse(d Difference) {
	if len(r.Refused) < mostNamed {
		r.Refused = append(r.Refused, d)
	}
}

func (r *Report) leaveOut(list string) {
	r.LeftOut++
	if len(r.Skipped) < mostNamed {
		r.Skipped = append(r.Skipped, list)
	}
}

// mostLeftOut is the largest accepted percentage of skipped lists. Where nodes have lost the state
// of old blocks, an attacker could alter just the lists that changed since.
const mostLeftOut = 5

// Err returns an error unless everything compared is equal and nearly all chosen lists were
// compared.
func (r *Report) Err() error {
	n := len(r.Differences) + int(r.More)
	switch {
	case r.Wrong == 1:
		return fmt.Errorf("1 of %d lists differs from the contracts", r.Sampled)
	case r.Wrong > 1:
		return fmt.Errorf("%d of %d lists differ from the contracts", r.Wrong, r.Sampled)
	case n > 0:
		return errors.New("the " + r.Kind + " differs from the contracts: " + r.Differences[0].String())
	case r.Untold > 0:
		return fmt.Errorf("cannot check %d of %d lists: %s; try another node (--rpc)", r.Untold, r.Sampled, r.Refused[0])
	case r.Right == 0 && r.Sampled > 0:
		return errors.New("no list compared: all changed since the block, whose state no node has; add an archive node (--rpc)")
	case r.LeftOut*100 > r.Sampled*mostLeftOut:
		return fmt.Errorf("cannot compare %d of %d lists, more than %d %%: they changed since the block, whose state no node has; add an archive node (--rpc)", r.LeftOut, r.Sampled, mostLeftOut)
	}
	return nil
}

// mostShownLines is the number of differences that String lists.
const mostShownLines = 20

// lines is a text for people: a name and its values per line.
type lines struct{ strings.Builder }

func (b *lines) add(name, format string, args ...any) {
	fmt.Fprintf(b, "%-15s %s\n", name, fmt.Sprintf(format, args...))
}

// String returns the report as text for people.
func (r *Report) String() string {
	var b lines
	for i := range r.Chains {
		r.Chains[i].tell(&b)
	}
	r.tellCompared(&b)
	r.tellDifferences(&b)
	r.tellResult(&b)
	return b.String()
}

func (c *Chain) tell(b *lines) {
	text := fmt.Sprintf("%d, after block %d, by %s in %d requests", c.ID, c.After, c.Host, c.Requests)
	if c.After != c.Block {
		text += fmt.Sprintf(": no node has the state of block %d, so logs tell what changed since", c.Block)
	}
	b.add("chain", "%s", text)
	if !c.Hashed {
		b.add("", "block %d is of %s; without its hash nothing says that as_of fits it", c.Block, c.Time)
	}
}

func (r *Report) tellCompared(b *lines) {
	if r.All {
		b.add(r.Kind, "as of %s: all %d lists", r.AsOf, r.Lists)
	} else {
		b.add(r.Kind, "as of %s: %d of %d lists, --seed=%d", r.AsOf, r.Sampled, r.Lists, r.Seed)
	}
	c := r.Compared
	b.add("compared", "%d owners, %d places, %d users, %d primary lists, %d records with %d operations of %d slots", c.Owners, c.Places, c.Users, c.Primary, c.Records, c.Operations, c.Slots)
	if r.LeftOut > 0 {
		b.add("left out", "%d lists that changed since: %s", r.LeftOut, someOf(r.Skipped, r.LeftOut))
	}
	if r.Untold > 0 {
		b.add("not told", "%d lists", r.Untold)
		for _, d := range r.Refused[:min(len(r.Refused), mostShownLines)] {
			b.add("", "%s", d)
		}
	}
}

func (r *Report) tellDifferences(b *lines) {
	name := "differs"
	for _, d := range r.Differences[:min(len(r.Differences), mostShownLines)] {
		b.add(name, "%s", d)
		name = ""
	}
	if n := uint64(len(r.Differences)) + r.More; n > mostShownLines {
		b.add("", "and %d more", n-mostShownLines)
	}
}

func (r *Report) tellResult(b *lines) {
	switch {
	case r.Wrong > 0:
		b.add("wrong", "%d lists", r.Wrong)
	case len(r.Differences) == 0 && r.Right > 0 && r.Right < r.Sampled:
		b.add("equal", "%d lists of %d; %d could not be compared", r.Right, r.Sampled, r.Sampled-r.Right)
	case len(r.Differences) == 0 && r.Right > 0:
		b.add("equal", "%d lists", r.Right)
	}
	if r.Bound != nil {
		text := ""
		if r.LeftOut+r.Untold > 0 {
			text = ", counting lists that could not be compared as wrong"
		}
		b.add("confidence", "at most %.2g %% of all lists are wrong, with a probability of %.0f %%%s", *r.Bound*100, sample.Confidence*100, text)
	}
}

// someOf names the first of n lists.
func someOf(lists []string, n int) string {
	shown := lists[:min(len(lists), mostShownLines)]
	text := strings.Join(shown, ", ")
	if n > len(shown) {
		text += fmt.Sprintf(" and %d more", n-len(shown))
	}
	return text
}
