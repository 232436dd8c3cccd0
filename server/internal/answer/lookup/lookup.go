// Package lookup finds users and lists in the objects of a site: the account, its list, and the
// records of the list.
package lookup

import (
	"errors"

	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// A Subject is the account that a request asks about, with one of its lists.
type Subject struct {
	Address   string
	List      string // token ID of the list that the path names, or of the user's primary list; "" for none
	Primary   bool   // whether List is the primary list
	Held      int    // number of accounts in the list
	Followers int    // number of primary lists that hold the account
}

// Asked finds the list or the user that the path names.
func Asked(a *compute.Answer) (Subject, error) {
	if a.Ask.TokenID != "" {
		return List(a, a.Ask.TokenID)
	}
	return User(a, a.Ask.User)
}

// AskedList returns the list that the path names, or the user's primary list, with its number of
// records; "" for none. Records reports whether a list named by the path exists.
func AskedList(a *compute.Answer) (tokenID string, held int, err error) {
	if a.Ask.TokenID != "" {
		return a.Ask.TokenID, AnyNumber, nil
	}
	s, err := User(a, a.Ask.User)
	return s.List, s.Held, err
}

// User finds a user by address or name. For an unknown address it returns a Subject without a list.
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

// List finds a list by token ID.
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

// Address returns the address of a user, given by address or name.
func Address(a *compute.Answer, user string) (string, error) {
	if IsAddress(user) {
		return user, nil
	}
	s, err := User(a, user)
	return s.Address, err
}

// IsAddress reports whether user is an address rather than a name.
func IsAddress(user string) bool {
	_, err := site.ParseAddress(user)
	return err == nil
}

// UserBucket returns the key of the object that maps users to accounts.
func UserBucket(a *compute.Answer, user string) site.Key {
	return site.UserBucketKey(site.UserBucket(user, a.Root.BucketDigits))
}

// ListBucket returns the key of the object that maps lists to accounts.
func ListBucket(a *compute.Answer, tokenID string) site.Key {
	return site.TokenBucketKey(site.UserBucket(tokenID, a.Root.TokenDigits))
}

// AnyNumber stands for an unknown number of records.
const AnyNumber = -1

// Records calls f for each record of a list, in list order. held is the expected number of records.
// It does nothing for the list "".
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

// States sets the state of each address to the one that a list records.
func States(a *compute.Answer, list string, held int, states map[string]rules.State) error {
	return Records(a, list, held, func(r scan.HeldRecord) error {
		if _, asked := states[string(r.Address)]; asked {
			states[string(r.Address)] = scan.StateOf(r.Tags)
		}
		return nil
	})
}

// ListOrNull returns a token ID as JSON; null for "".
func ListOrNull(tokenID string) string {
	if tokenID == "" {
		return "null"
	}
	return `"` + tokenID + `"`
}
