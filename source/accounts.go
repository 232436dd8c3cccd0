package source

import (
	"github.com/followpress/followpress/snapshot"
)

// An AccountWriter takes the rows of the table accounts; a snapshot.Writer is one.
type AccountWriter interface {
	WriteAccount(snapshot.Account) error
}

// WriteAccounts writes a row for each account that names a primary list or has a profile, in the
// order of addresses. Of several profiles of an account the freshest counts; of equally fresh ones
// the first. Profiles that are not in order, one for each address, are an error.
func WriteAccounts(w AccountWriter, g *Graph, profiles ...Profiles) error { panic("not yet") }
