package replay

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// Explain writes the effect of each event that concerns a list, in event order, and the resulting
// state. These are the events of the token, of all slots where the list ever was, and of the
// primary lists of all accounts that the list ever belonged to or that ever named it.
//
// It marks an event in a slot that is not the list's final location as "former slot".
//
// It reads the events twice. Memory is in proportion to the users that slots ever had, and to the
// operations of this list.
func Explain(events func() source.Events, d *source.Deployment, token source.Word, out io.Writer) error {
	x := explainer{
		all: New(d), own: New(d), token: token, out: bufio.NewWriter(out), accounts: map[site.Address]bool{},
	}
	x.narrator = newNarrator(x.all)
	users := map[slotKey][]site.Address{}
	for e, err := range events() {
		if err == nil {
			err = x.survey(e, users)
		}
		if err != nil {
			return err
		}
	}
	for key := range x.lists {
		for _, user := range users[key] {
			x.accounts[user] = true
		}
	}
	fmt.Fprintf(x.out, "%10s %10s %6s  %-24s  %s\n", "chain", "block", "log", "time", "event")
	for e, err := range events() {
		if err == nil {
			err = x.explain(e)
		}
		if err != nil {
			return err
		}
	}
	x.state()
	return x.out.Flush()
}

// formerSlot marks events in a slot that is not the list's final location.
const formerSlot = " (former slot)"

type explainer struct {
	all, own  *Replay // all numbers contracts and validates; own has the events that concern the list
	token     source.Word
	last      *slotKey              // last location; nil for none
	*narrator                       // assigns the list to each location it ever had
	accounts  map[site.Address]bool // accounts whose primary lists concern the list
	out       *bufio.Writer
}

// survey collects the slots and accounts that concern the list. It records the users of all slots,
// because a user may be set before the list is there.
func (x *explainer) survey(e source.Event, users map[slotKey][]site.Address) error {
	contract, err := x.all.checkContract(e)
	if err != nil {
		return err
	}
	switch {
	case e.Kind == source.ListMetadata && e.Key == keyUser:
		if user, ok := User(e.Value); ok {
			key := slotKey{contract, e.Subject}
			users[key] = append(users[key], user)
		}
	case e.Kind == source.Transfer && e.Subject == x.token:
		x.accounts[site.Address(e.Value)] = true
	case e.Kind == source.Location && e.Subject == x.token:
		var t token
		x.last = nil
		if x.all.locate(&t, e.Value) == "" {
			x.last = &t.slot
			x.lists[t.slot] = &List{}
		}
	}
	return nil
}

func (x *explainer) explain(e source.Event) error {
	contract, err := x.all.checkContract(e)
	if err != nil {
		return err
	}
	key := slotKey{contract, e.Subject}
	former := ""
	switch e.Kind {
	case source.Transfer, source.Location:
		if e.Subject != x.token {
			return nil
		}
	case source.AccountMetadata:
		if !x.concernsPrimary(e) {
			return nil
		}
	case source.Op, source.ListMetadata:
		if x.lists[key] == nil {
			return nil
		}
		if x.last == nil || *x.last != key {
			former = formerSlot
		}
	}
	what := x.tell(e, contract) + former
	at := "not known"
	if e.Time != source.NoTime {
		at = time.UnixMilli(e.Time).UTC().Format(time.RFC3339Nano)
	}
	if _, err := fmt.Fprintf(x.out, "%10d %10d %6d  %-24s  %s\n", e.Contract.Chain, e.Block, e.Index, at, what); err != nil {
		return err
	}
	return x.own.Add(e)
}

// concernsPrimary reports whether an account metadata event sets the primary list of an account of
// the list, or of an account that names the list or once did.
func (x *explainer) concernsPrimary(e source.Event) bool {
	if e.Key != keyPrimaryList {
		return false
	}
	if named, ok := primary(e.Value); ok && named == x.token {
		x.accounts[accountOf(e)] = true
	}
	return x.accounts[accountOf(e)]
}

// state writes the final state.
func (x *explainer) state() {
	fmt.Fprintf(x.out, "\nlist      %s\n", x.token.Decimal())
	t, ok := x.own.tokens[x.token]
	if !ok || t.owner == (site.Address{}) {
		fmt.Fprintf(x.out, "does not exist: it was never minted, or was burned\n")
		return
	}
	account, user, location, records := t.owner, "none", "none", 0
	if t.placed {
		location = describe(x.place(t.slot))
		records = len(x.lists[t.slot].Records())
		if s, ok := x.own.slots[t.slot]; ok && s.user != (site.Address{}) {
			account, user = s.user, s.user.String()
		}
	}
	fmt.Fprintf(x.out, "owner     %s\nuser      %s\nlocation  %s\nrecords   %d\n", t.owner, user, location, records)
	switch named, ok := x.own.primary[account]; {
	case !ok:
		fmt.Fprintf(x.out, "primary   no: %s names no primary list\n", account)
	case named != x.token:
		fmt.Fprintf(x.out, "primary   no: %s names list %s\n", account, named.Decimal())
	default:
		fmt.Fprintf(x.out, "primary   yes, of %s\n", account)
	}
}

// place converts a slotKey to a source.Place.
func (x *explainer) place(key slotKey) source.Place {
	p := source.Place{Slot: key.slot}
	for contract, n := range x.own.contracts {
		if n == key.contract {
			p.Contract = contract
		}
	}
	return p
}

func describe(p source.Place) string {
	return fmt.Sprintf("chain %d, contract %s, slot %s", p.Chain, p.Address, p.Slot)
}

// shortened formats bytes in hexadecimal, and cuts long ones.
func shortened(b []byte) string {
	const most = 100
	if len(b) > most {
		return fmt.Sprintf("0x%x… (%d bytes)", b[:most], len(b))
	}
	return fmt.Sprintf("0x%x", b)
}
