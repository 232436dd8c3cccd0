package replay

import (
	"fmt"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/source"
)

func tellIgnored(b []byte, ignored Reason) string {
	return fmt.Sprintf("operation %s: ignored (%s)", shortened(b), ignored)
}

func tellOperation(o op.Operation, did effect) string {
	about := shortened(o.Record)
	if a, ok := o.Address(); ok {
		about = a.String()
	}
	if o.Tag != nil {
		about += fmt.Sprintf(" %q", o.Tag)
	}
	return fmt.Sprintf("%s %s: %s", o.Code, about, did)
}

// A narrator describes events in words, in the order of each chain, without control characters. It
// needs all transfers of a list to recognize its minting, and all operations on a record to tell
// the effect of one.
type narrator struct {
	known  *Replay // has the contracts
	owners map[source.Word]site.Address
	lists  map[slotKey]*List
}

func newNarrator(known *Replay) *narrator {
	return &narrator{known, map[source.Word]site.Address{}, map[slotKey]*List{}}
}

// tell describes an event of the contract with the given number.
func (n *narrator) tell(e source.Event, contract uint32) string {
	switch e.Kind {
	case source.Transfer:
		return n.transfer(e)
	case source.Location:
		return n.location(e)
	case source.AccountMetadata:
		return tellAccountMetadata(e)
	case source.ListMetadata:
		return tellListMetadata(e)
	}
	o, ignored := parseOp(e.Value)
	if ignored != "" {
		return tellIgnored(e.Value, ignored)
	}
	key := slotKey{contract, e.Subject}
	if n.lists[key] == nil {
		n.lists[key] = &List{}
	}
	return tellOperation(o, n.lists[key].apply(o, e.Time))
}

func (n *narrator) transfer(e source.Event) string {
	to, was := site.Address(e.Value), n.owners[e.Subject]
	n.owners[e.Subject] = to
	switch {
	case to == site.Address{}:
		return "burned"
	case was == site.Address{}:
		return "minted to " + to.String()
	}
	return "transferred to " + to.String()
}

func (n *narrator) location(e source.Event) string {
	place, ignored := ParseLocation(e.Value)
	if ignored != "" {
		return fmt.Sprintf("location %s: none (%s)", shortened(e.Value), ignored)
	}
	if _, known := n.known.contracts[place.Contract]; !known {
		return fmt.Sprintf("location %s: none (%s)", describe(place), LocationPlace)
	}
	return "location " + describe(place)
}

func tellAccountMetadata(e source.Event) string {
	account := accountOf(e)
	if e.Key != keyPrimaryList {
		return fmt.Sprintf("metadata %s of %s: ignored (%s)", site.Quoted(e.Key), account, OtherKey)
	}
	named, ok := PrimaryList(e.Value)
	if !ok {
		named = "none"
		if ignored := primaryIgnored(e.Value); ignored != "" {
			named = fmt.Sprintf("none, for %s (%s)", shortened(e.Value), ignored)
		}
	}
	return fmt.Sprintf("primary list of %s: %s", account, named)
}

func tellListMetadata(e source.Event) string {
	switch e.Key {
	case keyUser:
		user, ok := User(e.Value)
		switch ignored := userIgnored(e.Value); {
		case ignored != "":
			return fmt.Sprintf("user %s: none (%s)", shortened(e.Value), ignored)
		case ok:
			return "user " + user.String()
		}
		return "user: none"
	case keyManager:
		return fmt.Sprintf("manager %s, which is in no snapshot", shortened(e.Value))
	}
	return fmt.Sprintf("metadata %s: ignored (%s)", site.Quoted(e.Key), OtherKey)
}
