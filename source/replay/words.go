package replay

import (
	"fmt"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/source"
)

// Told says in words what an event did. Its texts have no control characters.
type Told struct {
	Action string        // follow, unfollow, tag, untag; operation for one that is ignored; mint, transfer, burn, location, user, manager, metadata, primary-list
	About  *site.Address // the account that the record of an operation is about, or that Action names; nil for none
	Tag    string
	Effect bool // whether anything that snapshots have is another than before

	before, after string // what the text has around About
}

// Text is what happened, with an account as name shows it.
func (t *Told) Text(name func(site.Address) string) string {
	if t.About == nil {
		return t.before + t.after
	}
	return t.before + name(*t.About) + t.after
}

// TellOp is what an operation of the table ops did. It must be valid, as those are.
func TellOp(b []byte) Told {
	o, ignored := parseOp(b)
	if ignored != "" {
		return tellIgnored(b, ignored)
	}
	return tellOperation(o, map[op.Code]effect{op.Follow: added, op.Unfollow: removed, op.Tag: tagged, op.Untag: untagged}[o.Code])
}

func tellIgnored(b []byte, ignored Reason) Told {
	return Told{Action: "operation", before: fmt.Sprintf("operation %s: ignored (%s)", shortened(b), ignored)}
}

func tellOperation(o op.Operation, did effect) Told {
	t := Told{Action: o.Code.String(), Tag: string(o.Tag), Effect: did.visible(), before: o.Code.String() + " "}
	if a, ok := o.Address(); ok {
		t.About = &a
	} else {
		t.before += shortened(o.Record)
	}
	if o.Tag != nil {
		t.after = fmt.Sprintf(" %q", o.Tag)
	}
	t.after += ": " + string(did)
	return t
}

// A narrator tells events in the order of each chain. It needs all transfers of a list to tell its minting, and all
// operations on a record to tell what one did.
type narrator struct {
	known  *Replay // has the contracts
	owners map[source.Word]site.Address
	lists  map[slotKey]*List
}

func newNarrator(known *Replay) *narrator {
	return &narrator{known, map[source.Word]site.Address{}, map[slotKey]*List{}}
}

// tell tells an event, whose contract has this number.
func (n *narrator) tell(e source.Event, contract uint32) Told {
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

func (n *narrator) transfer(e source.Event) Told {
	to, was := site.Address(e.Value), n.owners[e.Subject]
	n.owners[e.Subject] = to
	switch {
	case to == site.Address{}:
		return Told{Action: "burn", Effect: true, before: "burned"}
	case was == site.Address{}:
		return Told{Action: "mint", Effect: true, before: "minted to ", About: &to}
	}
	return Told{Action: "transfer", Effect: true, before: "transferred to ", About: &to}
}

func (n *narrator) location(e source.Event) Told {
	t := Told{Action: "location", Effect: true}
	place, ignored := ParseLocation(e.Value)
	if ignored != "" {
		t.before = fmt.Sprintf("location %s: none (%s)", shortened(e.Value), ignored)
	} else if _, known := n.known.contracts[place.Contract]; !known {
		t.before = fmt.Sprintf("location %s: none (%s)", describe(place), LocationPlace)
	} else {
		t.before = "location " + describe(place)
	}
	return t
}

func tellAccountMetadata(e source.Event) Told {
	account := accountOf(e)
	if e.Key != keyPrimaryList {
		return Told{Action: "metadata", About: &account, before: fmt.Sprintf("metadata %s of ", site.Quoted(e.Key)), after: fmt.Sprintf(": ignored (%s)", OtherKey)}
	}
	t := Told{Action: "primary-list", Effect: true, About: &account, before: "primary list of ", after: ": none"}
	if token, ok := PrimaryList(e.Value); ok {
		t.after = ": " + token
	} else if ignored := primaryIgnored(e.Value); ignored != "" {
		t.after += fmt.Sprintf(", for %s (%s)", shortened(e.Value), ignored)
	}
	return t
}

func tellListMetadata(e source.Event) Told {
	switch e.Key {
	case keyUser:
		user, ok := User(e.Value)
		switch ignored := userIgnored(e.Value); {
		case ignored != "":
			return Told{Action: "user", Effect: true, before: fmt.Sprintf("user %s: none (%s)", shortened(e.Value), ignored)}
		case ok:
			return Told{Action: "user", Effect: true, before: "user ", About: &user}
		}
		return Told{Action: "user", Effect: true, before: "user: none"}
	case keyManager:
		return Told{Action: "manager", before: fmt.Sprintf("manager %s, which is in no snapshot", shortened(e.Value))}
	}
	return Told{Action: "metadata", before: fmt.Sprintf("metadata %s: ignored (%s)", site.Quoted(e.Key), OtherKey)}
}
