// Package profile answers requests about one user: name, avatar, primary list.
package profile

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/lookup"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// userFile calls f with a file of the user that the path names, or with nil for an address not in
// the graph.
func userFile(a *compute.Answer, object site.ListObject, f func(body []byte) error) error {
	user := a.Ask.User
	if !lookup.IsAddress(user) && a.Root.Config.Names == site.NamesLookup {
		s, err := lookup.User(a, user)
		if err != nil {
			return err
		}
		return a.UseKnown(a.Root.Config.UserObjectKey(s.Address, object), f)
	}
	err := a.Use(a.Root.Config.UserObjectKey(user, object), f)
	switch {
	case !errors.Is(err, storage.ErrNotFound):
		return err
	case lookup.IsAddress(user):
		return f(nil)
	}
	return &compute.ProblemError{Problem: site.NoSuchName}
}

// ENS answers with the name of a user.
func ENS(a *compute.Answer) error {
	return userFile(a, site.Account, func(body []byte) error {
		address := a.Ask.User
		if body != nil {
			account, err := scan.ParseAccount(body)
			if err != nil {
				return err
			}
			if account.HasName() {
				return a.AddEntry(true, len(body), func(b []byte) []byte {
					return append(account.AppendEntry(append(b, `{"ens":`...)), '}')
				})
			}
			address = string(account.Address)
		}
		return a.AddText(`{"ens":{"name":null,"address":"` + address + `","avatar":null,"records":null,"updated_at":null}}`)
	})
}

// noStats are the counts of an address not in the graph.
const noStats = `{"followers_count":0,"following_count":0}`

// Simple answers with the name, avatar and counts of a user.
func Simple(a *compute.Answer) error {
	var address string
	err := userFile(a, site.Account, func(body []byte) error {
		address = a.Ask.User
		name, avatar := rawjson.AppendString(nil, address), []byte(`""`)
		if body != nil {
			account, err := scan.ParseAccount(body)
			if err != nil {
				return err
			}
			address, avatar = string(account.Address), account.Avatar
			if name = account.Name; !account.HasName() {
				name = rawjson.AppendString(nil, address)
			}
		}
		return a.Add([]byte(`{"address":"`+address+`","display_name":`), name, []byte(`,"avatar":`), avatar)
	})
	if err != nil {
		return err
	}
	err = userFile(a, site.Stats, func(stats []byte) error {
		if stats == nil {
			stats = []byte(noStats)
		}
		return a.Add([]byte(`,`), bytes.Trim(stats, "{}"))
	})
	if err != nil {
		return err
	}
	return a.Add([]byte(`,"url":`), rawjson.AppendString(nil, a.Root.Config.ProfilePage(address)), []byte(`}`))
}

// QR answers with a QR code of the URL of the account's page.
func QR(a *compute.Answer) error {
	var address string
	var err error
	if a.Ask.TokenID != "" {
		var s lookup.Subject
		s, err = lookup.List(a, a.Ask.TokenID)
		address = s.Address
	} else {
		address, err = lookup.Address(a, a.Ask.User)
	}
	if err != nil {
		return err
	}
	picture, err := qrPicture(a.Root.Config.ProfilePage(address))
	if err != nil {
		return err
	}
	return a.Add(picture)
}

// PrimaryList answers with the user's primary list.
func PrimaryList(a *compute.Answer) error {
	s, err := lookup.User(a, a.Ask.User)
	if err != nil {
		return err
	}
	return a.AddText(fmt.Sprintf(`{"primary_list":%s}`, lookup.ListOrNull(s.List)))
}

// Avatar answers with the URL of the user's avatar.
func Avatar(a *compute.Answer) error {
	return userFile(a, site.Account, func(body []byte) error {
		if body == nil {
			return &compute.ProblemError{Problem: site.NoAvatar}
		}
		account, err := scan.ParseAccount(body)
		if err != nil {
			return err
		}
		location, ok := redirectURL(string(scan.Text(account.Avatar)))
		if !ok {
			return &compute.ProblemError{Problem: site.NoAvatar}
		}
		return a.AddText(location)
	})
}
