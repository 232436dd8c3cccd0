// Package lookup finds what the objects of a site say of users and lists: who is meant, which list is
// theirs, what the list holds.
package lookup

import (
	"errors"
	"strings"

	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// A Subject is an account and one of its lists, about which a request asks.
type Subject struct {
	Address   string
	List      string // token ID: the list that the path names, or the primary list of the user; "" for none
	Primary   bool   // List is the primary list
	Held      int    // accounts that the list holds
	Followers int    // primary lists that hold the account
}

// Asked looks up the list or the user that the path names.
func Asked(a *compute.Answer) (Subject, error) {
	if a.Ask.TokenID != "" {
		return List(a, a.Ask.TokenID)
	}
	return User(a, a.Ask.User)
}

// AskedList returns the list that the path names, or the primary list of the user; "" for none, and how much
// it holds. Whether a list that the path names exists, Records tells.
func AskedList(a *compute.Answer) (tokenID string, held int, err error) {
	if a.Ask.TokenID != "" {
		return a.Ask.TokenID, AnyNumber, nil
	}
	s, err := User(a, a.Ask.User)
	return s.List, s.Held, err
}

// User looks up an address or a name. An address that the graph does not know has nothing.
func User(a *compute.Answer, user string) (s Subject, err error) {
	err = a.UseKnown(UserBucket(a, user), func(bucket []byte) error {
		node, known, err := scan.FindUserNode(bucket, user)
		switch {
		case err != nil:
			return err
		case known:
			s = Subject{Address: node.Address, List: node.List, Primary: node.List != "", Held: node.Held, Followers: node.Followers}
		case IsAddress(user):
			s = Subject{Address: user}
		default:
			return &compute.ProblemError{Problem: site.NoSuchName}
		}
		return nil
	})
	return s, err
}

// List looks up a list.
func List(a *compute.Answer, tokenID string) (s Subject, err error) {
	err = a.UseKnown(ListBucket(a, tokenID), func(bucket []byte) error {
		node, known, err := scan.FindListNode(bucket, tokenID)
		if err == nil && !known {
			err = &compute.ProblemError{Problem: site.NoSuchList}
		}
		s = Subject{Address: node.Account, List: tokenID, Primary: node.Primary, Held: node.Held, Followers: node.Followers}
		return err
	})
	return s, err
}

// Address is the address of a user.
func Address(a *compute.Answer, user string) (string, error) {
	if IsAddress(user) {
		return user, nil
	}
	s, err := User(a, user)
	return s.Address, err
}

// IsAddress reports whether a user is given by address, not by name.
func IsAddress(user string) bool {
	_, err := site.ParseAddress(user)
	return err == nil
}

// UserBucket is the key of the object that says who a user is.
func UserBucket(a *compute.Answer, user string) site.Key {
	return site.UserBucketKey(site.UserBucket(user, a.Root.BucketDigits))
}

// ListBucket is the key of the object that says whose a list is.
func ListBucket(a *compute.Answer, tokenID string) site.Key {
	return site.TokenBucketKey(site.UserBucket(tokenID, a.Root.TokenDigits))
}

// AnyNumber is a number of records that nothing is known about.
const AnyNumber = -1

// Records calls f for what a list holds, in its order. held says how many that should be. It does nothing
// for the list "".
func Records(a *compute.Answer, list string, held int, f func(scan.HeldRecord) error) error {
	if list == "" {
		return nil
	}
	err := a.Use(a.Root.Config.ListKey(list, site.Records), func(records []byte) error {
		n := 0
		for r := range scan.HeldRecords(records) {
			if err := f(r); err != nil {
				return err
			}
			n++
		}
		if held != AnyNumber && n != held {
			return fetch.ErrMixed
		}
		return nil
	})
	if list == a.Ask.TokenID && errors.Is(err, storage.ErrNotFound) && held == AnyNumber {
		return &compute.ProblemError{Problem: site.NoSuchList}
	}
	return fetch.MixedIfAbsent(err)
}

// States sets the states of addresses to what a list says of them.
func States(a *compute.Answer, list string, held int, states map[string]rules.State) error {
	return Records(a, list, held, func(r scan.HeldRecord) error {
		if _, asked := states[string(r.Address)]; asked {
			states[string(r.Address)] = scan.StateOf(r.Tags)
		}
		return nil
	})
}

// Page is the address of the page that shows an account to people.
func Page(a *compute.Answer, address string) string {
	return strings.ReplaceAll(a.Root.Config.ProfileURL, site.AddressPlaceholder, address)
}

// ListOrNull is a token ID as JSON; null for "".
func ListOrNull(tokenID string) string {
	if tokenID == "" {
		return "null"
	}
	return `"` + tokenID + `"`
}
